/** Real processes in tests: started on the current sources, spoken with line by line, never left behind. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { builtFile } from "./build.js";

export interface TestProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The next line of standard output; rejects when the process ends first, with what it wrote to standard error. */
  line(): Promise<string>;
  /** Writes a line to standard input. */
  say(text: string): void;
  kill(signal: NodeJS.Signals): void;
  /** How it ended, once its output is read too. Lines that were not taken are in `lines`. */
  readonly ended: Promise<{
    code: number | null;
    signal: NodeJS.Signals | null;
    lines: readonly string[];
    stderr: string;
  }>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Runs `source` ("tests/processes/x.ts", "src/cli/main.ts") with Node. */
export function startProcess(
  source: string,
  args: readonly string[] = [],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
): TestProcess {
  const child = spawn(process.execPath, [builtFile(source), ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: options.env ?? process.env,
    cwd: options.cwd,
  });
  running.add(child);
  // A process that was killed does not read what is still said to it.
  child.stdin.on("error", () => undefined);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));

  const lines: string[] = [];
  const waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  let over = false;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const waiter = waiting.shift();
    if (waiter) waiter.resolve(line);
    else lines.push(line);
  });
  const gone = (): Error => new Error(`${source} ended without another line; it wrote: ${stderr}`);
  const ended = new Promise<Awaited<TestProcess["ended"]>>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      running.delete(child);
      over = true;
      for (const { reject: refuse } of waiting.splice(0)) refuse(gone());
      resolve({ code, signal, lines, stderr });
    });
  });

  return {
    child,
    pid: child.pid ?? -1,
    line() {
      const line = lines.shift();
      if (line !== undefined) return Promise.resolve(line);
      if (over) return Promise.reject(gone());
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    say: (text) => void child.stdin.write(`${text}\n`),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}
