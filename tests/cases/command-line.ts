/** The command line as people run it: a real process on the current sources, without a terminal. */
import type { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

export interface Told {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `looprig ...args` in the root of `place`, with its state directory. */
export async function looprig(
  place: Playground,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Told> {
  const running = startProcess("src/cli/main.ts", args, {
    cwd: options.cwd ?? place.root,
    env: { ...process.env, LOOPRIG_HOME: place.stateDir, LOOPRIG_SESSION: undefined, ...options.env },
  });
  running.child.stdin?.end();
  const { code, lines, stderr } = await running.ended;
  return { code, stdout: lines.join("\n"), stderr };
}
