/**
 * A shell command in a process group of its own (G5).
 *
 * 1. The shell waits at a pipe until its guardian stands; if we die before, the pipe closes and the command never runs.
 * 2. The guardian is a second process. It holds a pipe to us, and ends the group when that closes: so also when we are
 *    killed. It is in no group of the command's, where the command could end it unawares.
 * 3. The group is ended before `run` resolves: asked first, killed after the grace.
 * 4. Output is read until the pipe closes or the group is gone, whichever is first: a process that left the group may hold
 *    the pipe for ever.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import os from "node:os";
import type { Readable, Writable } from "node:stream";
import { onAbort } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { endGroup } from "../workspace/index.js";

const drainMs = 200;

export interface GroupCommand {
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onOutput: (piece: Buffer) => void;
  /** Awaited right before the command may begin; what it rejects with is what `run` rejects with. */
  readonly beforeStart: (group: number) => Promise<void>;
}

export interface GroupExit {
  readonly exitCode: number | undefined;
  readonly killedBy: NodeJS.Signals | undefined;
  readonly ended: "itself" | "timeout" | "abort";
  /** Where the shell stood in the end, as it says; undefined when it did not. */
  readonly cwd: string | undefined;
  /** Whether processes of the group had to be ended after the shell was gone. */
  readonly leftovers: boolean;
}

// Errors go where output goes, in the order they were written. The shell reports where it stands when it exits; a child that is
// ended between its fork and its program has the trap still, and no say in this.
const report = `trap 'if [ "$BASHPID" = "$$" ]; then pwd -P >&3; fi 2>/dev/null' EXIT`;
const script = ["read -r _ <&4 || exit 125", "exec 4<&- 2>&1", report, 'eval "$1"'].join("\n");
const guard = 'read -r _; kill -TERM -"$1"; sleep 2; kill -KILL -"$1"';

const cwdBytesMax = 8 * 1024;

export async function runInGroup(fileSystem: FileSystem, options: GroupCommand): Promise<GroupExit> {
  const { command, cwd, env, timeoutMs, signal } = options;
  const child = spawn("bash", ["--noprofile", "--norc", "-c", script, "bash", command], {
    ...{ cwd, env, detached: true },
    stdio: ["ignore", "pipe", "ignore", "pipe", "pipe"],
  });
  const exited = exitOf(child);
  await started(child);
  const group = child.pid as number;
  const [output, place, gate] = [child.stdout, child.stdio[3], child.stdio[4]] as [Readable, Readable, Writable];
  gate.on("error", () => undefined); // The shell may be gone before it reads; its exit says so.
  output.on("data", options.onOutput);
  let reported = "";
  place.on("data", (piece: Buffer) => {
    if (reported.length < cwdBytesMax) reported += piece.toString("latin1");
  });
  const closed = Promise.all([output, place].map((stream) => new Promise((done) => stream.once("close", done))));

  let ended: GroupExit["ended"] = "itself";
  let guardian: ChildProcess | undefined;
  const stop = new AbortController();
  const timer = setTimeout(() => {
    ended = "timeout";
    stop.abort();
  }, timeoutMs);
  const forget = onAbort(signal, () => {
    ended = "abort";
    stop.abort();
  });
  try {
    guardian = spawn("sh", ["-c", guard, "sh", String(group)], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    guardian.stdin?.on("error", () => undefined);
    await started(guardian);
    if (signal.aborted) ended = "abort";
    else {
      await options.beforeStart(group);
      // An abort may have come meanwhile; then the command is not begun.
      if (!stop.signal.aborted) gate.end("go\n");
    }
    if (ended === "itself") await Promise.race([exited, aborted(stop.signal)]);
    // How it ended is settled now; ending what it left takes its own time.
    clearTimeout(timer);
    forget();
    const leftovers = await endGroup(fileSystem, group);
    const { code, by } = await exited;
    await Promise.race([closed, sleep(drainMs)]);
    return {
      exitCode: code,
      killedBy: by,
      ended,
      cwd: reported.endsWith("\n") ? Buffer.from(reported.slice(0, -1), "latin1").toString("utf8") : undefined,
      leftovers: leftovers && ended === "itself",
    };
  } catch (error) {
    await endGroup(fileSystem, group);
    throw error;
  } finally {
    clearTimeout(timer);
    forget();
    gate.destroy();
    output.destroy();
    place.destroy();
    guardian?.kill("SIGKILL");
  }
}

const exitOf = (child: ChildProcess): Promise<{ code: number | undefined; by: NodeJS.Signals | undefined }> =>
  new Promise((resolve) => {
    child.once("exit", (code, by) => resolve({ code: code ?? undefined, by: by ?? undefined }));
  });

const started = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else onAbort(signal, resolve);
  });

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** 128 + n when signal n ended it, as shells say it. */
export const exitStatus = ({ exitCode, killedBy }: GroupExit): number =>
  exitCode ?? 128 + (killedBy === undefined ? 0 : os.constants.signals[killedBy]);
