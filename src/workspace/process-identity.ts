/**
 * Proof that a process is the one we recorded (G5): pid, start time and boot id together. A pid alone is reused; a pid
 * that started at the same tick of the same boot is the same process.
 */
import { execFileSync } from "node:child_process";
import type { FileSystem } from "../core/index.js";
import { readSmallFile } from "./small-file.js";

export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
  readonly bootId: string;
}

const linux = process.platform === "linux";

/** Undefined when the process is gone, or is a zombie that only waits to be reaped. */
export function identifyProcess(fileSystem: FileSystem, pid: number): ProcessIdentity | undefined {
  const startTime = linux ? linuxStartTime(fileSystem, pid) : psStartTime(pid);
  return startTime === undefined ? undefined : { pid, startTime, bootId: bootId(fileSystem) };
}

/** Whether the recorded process still runs. A record without proof counts as dead only when no process has that pid. */
export function isSameProcess(fileSystem: FileSystem, recorded: ProcessIdentity): boolean {
  const now = identifyProcess(fileSystem, recorded.pid);
  return now !== undefined && now.startTime === recorded.startTime && now.bootId === recorded.bootId;
}

function linuxStartTime(fileSystem: FileSystem, pid: number): string | undefined {
  try {
    const stat = readSmallFile(fileSystem, `/proc/${pid}/stat`);
    // The command name stands in parentheses and may hold any character; the fields after the last one are fixed.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTime] = [fields[0], fields[19]];
    return state === "Z" || state === "X" ? undefined : startTime;
  } catch {
    return undefined;
  }
}

function psStartTime(pid: number): string | undefined {
  try {
    const [state, ...started] = execFileSync("ps", ["-o", "state=,lstart=", "-p", String(pid)], { encoding: "utf8" })
      .trim()
      .split(/\s+/);
    return state === undefined || state.startsWith("Z") || started.length === 0 ? undefined : started.join(" ");
  } catch {
    return undefined;
  }
}

/** Changes with every boot. Where the system has none, start times (dates there) tell boots apart by themselves. */
function bootId(fileSystem: FileSystem): string {
  if (!linux) return "";
  try {
    return readSmallFile(fileSystem, "/proc/sys/kernel/random/boot_id").trim();
  } catch {
    return "";
  }
}
