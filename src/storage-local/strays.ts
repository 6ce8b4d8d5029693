/**
 * Files that killed writers left in `tmp/`. A writer on Linux puts its mark into the names of its files: boot and pid
 * namespace, pid and start time. A file whose writer can be proven to be gone is removed at once; one that bears no mark,
 * or that of another boot or namespace, once it is older than any write that could still be at it.
 */
import { hash, randomBytes } from "node:crypto";
import path from "node:path";
import { errnoOf, isMissing, temporaryPrefix } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { readSmallFile } from "./small-file.js";
import type { StateDirectory } from "./state-directory.js";

const ageMs = 24 * 60 * 60 * 1000;
const marked = new RegExp(`^${temporaryPrefix.replaceAll(".", "\\.")}([0-9a-f]{16})-(\\d{1,10})-(\\d{1,20})-`);

/** Names for files that one process writes. */
export function temporaryNames(fileSystem: FileSystem, pid: number): () => string {
  let prefix: string | undefined;
  return () => {
    prefix ??= `${temporaryPrefix}${markOf(fileSystem, pid) ?? ""}`;
    return `${prefix}${randomBytes(9).toString("hex")}`;
  };
}

/** Returns how many were removed. Failures do not matter: it is tried again at the next opening or collection. */
export function removeStrays(fileSystem: FileSystem, directory: StateDirectory, now: number): number {
  let removed = 0;
  for (const dir of [directory.dir, directory.temporaryDir, directory.leasesDir]) {
    for (const file of straysIn(fileSystem, dir, now)) {
      try {
        fileSystem.unlink(file);
        removed++;
      } catch (error) {
        if (!isMissing(error) && errnoOf(error) === undefined) throw error;
      }
    }
  }
  return removed;
}

/** The files of killed writers in a directory. */
export function straysIn(fileSystem: FileSystem, dir: string, now: number): readonly string[] {
  const world = worldOf(fileSystem);
  const names = fileSystem.readdir(dir).map(String);
  return names
    .filter((name) => name.startsWith(temporaryPrefix))
    .filter((name) => isStray(fileSystem, world, name) || isOld(fileSystem, path.join(dir, name), now))
    .map((name) => path.join(dir, name));
}

function isOld(fileSystem: FileSystem, file: string, now: number): boolean {
  try {
    return now - Number(fileSystem.lstat(file).mtimeMs) > ageMs;
  } catch (error) {
    if (!isMissing(error) && errnoOf(error) === undefined) throw error;
    return false;
  }
}

function isStray(fileSystem: FileSystem, world: string | undefined, name: string): boolean {
  const [, of, pid, start] = marked.exec(name) ?? [];
  return of !== undefined && of === world && startOf(fileSystem, pid ?? "") !== start;
}

function markOf(fileSystem: FileSystem, pid: number): string | undefined {
  const world = worldOf(fileSystem);
  if (world === undefined) return undefined;
  try {
    const start = startOf(fileSystem, String(pid));
    return start === undefined ? undefined : `${world}-${pid}-${start}-`;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/** What pids mean here: this boot and this pid namespace. Undefined where the system does not say. */
function worldOf(fileSystem: FileSystem): string | undefined {
  try {
    const boot = readSmallFile(fileSystem, "/proc/sys/kernel/random/boot_id", 64);
    const namespace = fileSystem.readlink("/proc/self/ns/pid");
    return boot === undefined ? undefined : hash("sha256", Buffer.concat([boot, namespace])).slice(0, 16);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/** When the process with this pid began, in ticks since boot; undefined when there is none, or it only waits to be buried. */
function startOf(fileSystem: FileSystem, pid: string): string | undefined {
  const stat = readSmallFile(fileSystem, `/proc/${pid}/stat`, 4096);
  if (stat === undefined) return undefined;
  const text = Buffer.from(stat).toString("latin1");
  // The name in parentheses may hold anything; the state is the first field after it, the start time the twentieth.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}
