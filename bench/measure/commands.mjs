/** Commands of other programs, and of ours. */
import { spawnSync } from "node:child_process";

export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (result.error) throw result.error;
  if (result.status !== 0)
    throw new Error(`${command} ${args.join(" ")} ended with ${result.status}: ${result.stderr || result.stdout}`);
  return result.stdout.trim();
}

/** The first line of `--version`; undefined where there is no such program. */
export function versionOf(command) {
  const { error, status, stdout } = spawnSync(command, ["--version"], { encoding: "utf8" });
  return error === undefined && status === 0 ? stdout.trim().split("\n")[0] : undefined;
}

/** Time of work that is done by other processes and waited for. */
export function timed(work) {
  const start = performance.now();
  work();
  return { ms: performance.now() - start };
}
