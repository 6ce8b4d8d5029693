/**
 * Write, then publish: bytes go to a unique name beside the target, are synced, and one atomic step makes them visible.
 * A crash leaves the old file or the new one, and at worst a file named `.tmp-*` that whoever owns the directory sweeps.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { errnoOf } from "./file-system.js";
import type { FileSystem } from "./file-system.js";
import { toFsPath } from "./names.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_DIRECTORY } = fs.constants;

/** Prefix of files being written. Nothing that bears it was ever published. */
export const temporaryPrefix = ".tmp-";

export interface AtomicWriteOptions {
  /** Permission bits of the new file. Default 0o600. */
  readonly mode?: number;
  /** Sync file and directory before returning. Default true; false for caches that can be made anew. */
  readonly durable?: boolean;
}

/**
 * Replaces `file` by `chunks` in one step. On an error the old file stands and nothing else is left; only when the last
 * step fails, syncing the directory, the new one stands and may not survive a crash.
 */
export function writeFileAtomic(
  fileSystem: FileSystem,
  file: string,
  chunks: readonly Uint8Array[],
  options: AtomicWriteOptions = {},
): void {
  const temporary = writeTemporary(fileSystem, file, chunks, options);
  try {
    fileSystem.rename(toFsPath(temporary), toFsPath(file));
  } catch (error) {
    discard(fileSystem, temporary);
    throw error;
  }
  if (options.durable ?? true) syncDirectory(fileSystem, path.dirname(file));
}

/** Publishes `chunks` as `file` unless something has that name: then returns false and changes nothing. */
export function publishNoReplace(
  fileSystem: FileSystem,
  file: string,
  chunks: readonly Uint8Array[],
  options: AtomicWriteOptions = {},
): boolean {
  const temporary = writeTemporary(fileSystem, file, chunks, options);
  try {
    // link(2) is the portable step that creates a name and never replaces one.
    fileSystem.link(toFsPath(temporary), toFsPath(file));
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    discard(fileSystem, temporary);
  }
  if (options.durable ?? true) syncDirectory(fileSystem, path.dirname(file));
  return true;
}

/** Makes the names in a directory durable. */
export function syncDirectory(fileSystem: FileSystem, dir: string): void {
  const fd = fileSystem.open(toFsPath(dir), O_RDONLY | O_DIRECTORY);
  try {
    fileSystem.fsync(fd);
  } catch (error) {
    // Some file systems cannot sync a directory; they order names themselves.
    if (errnoOf(error) !== "EINVAL") throw error;
  } finally {
    fileSystem.close(fd);
  }
}

/** Writes all of `bytes` at the descriptor's position, however the system splits it. */
export function writeAll(fileSystem: FileSystem, fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length;) {
    done += fileSystem.write(fd, bytes, done, bytes.length - done, null);
  }
}

function writeTemporary(
  fileSystem: FileSystem,
  file: string,
  chunks: readonly Uint8Array[],
  options: AtomicWriteOptions,
): string {
  const temporary = path.join(path.dirname(file), `${temporaryPrefix}${randomBytes(9).toString("hex")}`);
  const fd = fileSystem.open(toFsPath(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, options.mode ?? 0o600);
  try {
    try {
      for (const chunk of chunks) writeAll(fileSystem, fd, chunk);
      if (options.durable ?? true) fileSystem.fsync(fd);
    } finally {
      fileSystem.close(fd);
    }
  } catch (error) {
    discard(fileSystem, temporary);
    throw error;
  }
  return temporary;
}

function discard(fileSystem: FileSystem, temporary: string): void {
  try {
    fileSystem.unlink(toFsPath(temporary));
  } catch {
    // A name that cannot be removed now is swept by its prefix later; the error that brought us here matters more.
  }
}
