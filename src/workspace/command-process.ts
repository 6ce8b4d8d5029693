/**
 * Starts the command of `exec` so that it never runs unrecorded (G5).
 *
 * 1. A shell is started in the command's place; it waits at a pipe before it becomes the command by `exec`. Its pid and
 *    start time are therefore the command's own, and known before the command's first instruction.
 * 2. The caller makes the record durable, then calls `release`.
 * 3. If we die in between, the pipe closes and the shell exits; the command never ran.
 *
 * The command stays in our process group and keeps the terminal: it is signalled alone, never its group.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Writable } from "node:stream";
import { LooprigError, errnoOf, invariant } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { identifyProcess } from "./process-identity.js";
import type { ProcessIdentity } from "./process-identity.js";

export interface CommandOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdio: "inherit" | "ignore";
}

export interface CommandExit {
  /** 128 + n when signal n ended it, as shells say it. */
  readonly exitCode: number;
  readonly signal: NodeJS.Signals | undefined;
}

export interface GatedCommand {
  readonly identity: ProcessIdentity;
  /** Lets the command begin. */
  release(): void;
  /** Gives up before the beginning; the command never runs. */
  abandon(): void;
  signal(name: NodeJS.Signals): void;
  readonly exit: Promise<CommandExit>;
}

const gate = 'read -r _ <&3 || exit 125; exec 3<&-; exec "$@"';
const shellName = /^[A-Za-z_][A-Za-z0-9_]*$/;

export async function startGated(
  fileSystem: FileSystem,
  command: readonly [string, ...string[]],
  options: CommandOptions,
): Promise<GatedCommand> {
  // A shell drops variables whose names it could not write (exported functions of bash, say); `env` hands them on.
  const unspeakable = Object.entries(options.env).filter(
    ([name, value]) => value !== undefined && !shellName.test(name),
  );
  const argv =
    unspeakable.length === 0
      ? command
      : ["env", ...unspeakable.map(([name, value]) => `${name}=${value ?? ""}`), ...command];
  const child: ChildProcess = spawn("/bin/sh", ["-c", gate, "looprig", ...argv], {
    cwd: options.cwd,
    env: options.env,
    stdio: [options.stdio, options.stdio, options.stdio, "pipe"],
  });
  const exit = new Promise<CommandExit>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve({
        exitCode: code ?? 128 + (signal === null ? 0 : os.constants.signals[signal]),
        signal: signal ?? undefined,
      }),
    );
  });
  exit.catch(() => undefined); // Reported to whoever awaits it; a failed spawn rejects below as well.
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  const pipe = child.stdio[3] as Writable;
  // The shell may be gone before it reads; its exit says so, the pipe's error adds nothing.
  pipe.on("error", () => undefined);
  invariant(child.pid !== undefined, "BUG: a spawned process has no pid");
  const identity = identifyProcess(fileSystem, child.pid) ?? { pid: child.pid, startTime: "", bootId: "" };
  return {
    identity,
    release: () => pipe.end("\n"),
    abandon: () => pipe.destroy(),
    signal: (name) => void child.kill(name),
    exit,
  };
}

/**
 * Finds the executable as the shell would, so that a wrong name is an error before anything is captured or journaled.
 * Throws `exec.not_found` or `exec.not_executable`.
 */
export function assertRunnable(name: string, cwd: string, searchPath: string | undefined): void {
  const candidates = name.includes("/")
    ? [path.resolve(cwd, name)]
    : (searchPath ?? "/usr/local/bin:/usr/bin:/bin").split(":").map((dir) => path.resolve(cwd, dir, name));
  let seen = false;
  for (const candidate of candidates) {
    try {
      fs.accessSync(candidate, fs.constants.X_OK);
      if (fs.statSync(candidate).isFile()) return;
      seen = true;
    } catch (error) {
      if (errnoOf(error) === "EACCES") seen = true;
    }
  }
  if (seen) {
    throw new LooprigError("exec.not_executable", `Cannot run ${JSON.stringify(name)}: it is not an executable file`, {
      command: name,
    });
  }
  throw new LooprigError(
    "exec.not_found",
    `Cannot run ${JSON.stringify(name)}: no such command${name.includes("/") ? "" : " on the PATH"}`,
    { command: name },
  );
}
