/**
 * What is kept of the disk for the worst day. Two things:
 *
 * 1. *The reserve*: space that captures leave free (`storage.reserve`), so that what a restore is about to overwrite can
 *    still be stored, and journals can still be written (U4).
 * 2. *The reserve file*: space that is taken already, and given up when the disk is full all the same, so that SQLite can
 *    open its log and a deletion or collection can free the rest. It is made anew when there is room.
 *
 * Its bytes are random, for file systems that store zeros in nothing.
 */
import { randomFillSync } from "node:crypto";
import path from "node:path";
import { StorageError, isFull, isMissing, publishNoReplace } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import type { StateDirectory } from "./state-directory.js";

const mebibyte = 1024 * 1024;
/** The default is this part of the volume, and at most so much. */
const volumePart = 0.02;
const reserveBytesMax = 256 * mebibyte;
/** Room for a full write-ahead log of SQLite; on small volumes a part of them. */
const fileBytesMax = 4 * mebibyte;
const fileVolumePart = 1 / 32;
/** Less than this is no help to anybody. */
const fileBytesMin = 64 * 1024;

export interface DiskReserve {
  /** Throws `storage.reserve` unless `bytes` more leave the reserve alone. */
  assertRoom(bytes: number): void;
  /** Makes the reserve file unless it is there, or there is no room to speak of. */
  ensureFile(): void;
  /** Takes back what was given up and is left over, if that is worth having. */
  takeBackFile(): void;
  /** Gives the reserve file up. Returns whether there was one. */
  releaseFile(): boolean;
  /** Gives it up if less than its size is free. */
  releaseFileIfFull(): void;
}

/** What is left free of a volume of that size unless told otherwise. */
export const defaultReserveBytes = (volumeBytes: number): number =>
  Math.min(reserveBytesMax, Math.floor(volumeBytes * volumePart));

/** `reserveBytes`: default a part of the volume. */
export function createDiskReserve(
  fileSystem: FileSystem,
  directory: StateDirectory,
  reserveBytes: number | undefined,
): DiskReserve {
  const file = path.join(directory.dir, "reserve");
  let ensured = false;

  const volume = (): { readonly free: number; readonly size: number } => {
    const { bavail, bsize, blocks } = fileSystem.statfs(directory.dir);
    return { free: bavail * bsize, size: blocks * bsize };
  };
  const fileBytes = (size: number): number => Math.min(fileBytesMax, Math.floor(size * fileVolumePart));

  const sizeOfFile = (): number => {
    try {
      return Number(fileSystem.lstat(file).size);
    } catch (error) {
      if (isMissing(error)) return 0;
      throw error;
    }
  };
  const releaseFile = (): boolean => {
    ensured = false;
    try {
      fileSystem.unlink(file);
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  };

  const makeFile = (bytes: number): void => {
    releaseFile();
    if (bytes === 0) return;
    const random = randomFillSync(Buffer.allocUnsafe(Math.min(mebibyte, bytes)));
    const chunks: Buffer[] = [];
    for (let left = bytes; left > 0; left -= random.length) chunks.push(random.subarray(0, left));
    try {
      // Not synced: an empty or absent one after a power loss is found by its size and made anew.
      publishNoReplace(fileSystem, file, chunks, { durable: false });
      ensured = true;
    } catch (error) {
      if (!isFull(error)) throw error;
    }
  };

  return {
    assertRoom(bytes) {
      const { free, size } = volume();
      const reserve = reserveBytes ?? defaultReserveBytes(size);
      const wanted = reserve + bytes;
      if (free >= wanted) return;
      throw new StorageError(
        "storage.reserve",
        `Cannot store ${bytes} bytes in "${directory.dir}": ${free} bytes of the disk are free and ${wanted} are wanted, so that ${reserve} stay ` +
          "for restores and for freeing space; free some space, or let go of old sessions and collect",
        { path: directory.dir, free, wanted },
        { retryable: true, hint: "looprig gc frees what no session keeps" },
      );
    },
    ensureFile() {
      if (ensured) return;
      const { free, size } = volume();
      const bytes = fileBytes(size);
      if (sizeOfFile() === bytes) ensured = true;
      else if (free >= 2 * bytes) makeFile(bytes);
    },
    takeBackFile() {
      const { free, size } = volume();
      const there = sizeOfFile();
      const bytes = Math.min(fileBytes(size), there + free);
      if (bytes > there && bytes >= fileBytesMin) makeFile(bytes - (bytes % fileBytesMin));
    },
    releaseFile,
    releaseFileIfFull() {
      const { free, size } = volume();
      if (free < fileBytes(size)) releaseFile();
    },
  };
}
