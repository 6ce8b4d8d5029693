/**
 * Blobs as files. Write order: bytes to a new file in `tmp/`, sync, link to the blob's name (which never replaces one),
 * sync the directory that holds the name. A crash leaves a file in `tmp/`, which `strays.ts` removes, and nothing else.
 *
 * Directories below `blobs/` are made when needed and never removed, so that one known to be durable stays so.
 */
import fs from "node:fs";
import path from "node:path";
import { errnoOf, isMissing, pacer, writeAll } from "../core/index.js";
import type { Abortable, FileSystem } from "../core/index.js";
import { blobMissing, checkCount, checkKey, checkPrefix, checkPut } from "../storage/index.js";
import type { Blobs, StorageKey } from "../storage/index.js";
import { blobPath, keyOf, keyPrefixOf } from "./blob-paths.js";
import type { DiskReserve } from "./disk-reserve.js";
import { storageFailure } from "./failures.js";
import type { StateDatabase } from "./state-database.js";
import type { StateDirectory } from "./state-directory.js";
import { temporaryNames } from "./strays.js";

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY } = fs.constants;

/** Bytes moved between two looks at the clock. */
const sliceBytes = 1024 * 1024;

export function createLocalBlobs(
  fileSystem: FileSystem,
  directory: StateDirectory,
  guard: StateDatabase["guard"],
  reserve: DiskReserve,
): Blobs {
  const root = directory.blobsDir;
  const fileOf = (key: StorageKey): string => path.join(root, ...blobPath(key));
  const durable = new Set<string>([root]);
  const temporaryName = temporaryNames(fileSystem, process.pid);

  /** Runs a call on the disk: refuses a state directory that went away, and names what the system said. */
  const onDisk = async <T>(
    operation: string,
    file: string,
    signal: AbortSignal | undefined,
    call: () => T | Promise<T>,
  ) => {
    guard(operation, signal);
    try {
      directory.assertPresent();
      return await call();
    } catch (error) {
      if (signal?.aborted && error === signal.reason) throw error;
      if (isMissing(error)) directory.assertPresent();
      throw storageFailure(error, operation, file, fileSystem);
    }
  };

  const syncNames = async (dir: string): Promise<void> => {
    const fd = fileSystem.open(dir, O_RDONLY | O_DIRECTORY);
    try {
      await fileSystem.fsyncLater(fd);
    } finally {
      fileSystem.close(fd);
    }
  };

  const makeDurableDirectory = async (dir: string): Promise<void> => {
    if (durable.has(dir)) return;
    const parent = path.dirname(dir);
    await makeDurableDirectory(parent);
    try {
      fileSystem.mkdir(dir, 0o700);
      fileSystem.chmod(dir, 0o700);
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    // Also where it was there: whoever made it may not have come to this line.
    await syncNames(parent);
    durable.add(dir);
  };

  const writeTemporary = async (chunks: readonly Uint8Array[], signal: AbortSignal | undefined): Promise<string> => {
    const temporary = path.join(directory.temporaryDir, temporaryName());
    const fd = fileSystem.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      try {
        fileSystem.fchmod(fd, 0o600);
        const pace = pacer(signal);
        for (const chunk of chunks) {
          for (let at = 0; at < chunk.length; at += sliceBytes) {
            writeAll(fileSystem, fd, chunk.subarray(at, at + sliceBytes));
            await pace();
          }
        }
        await fileSystem.fsyncLater(fd);
        signal?.throwIfAborted();
      } finally {
        fileSystem.close(fd);
      }
    } catch (error) {
      discard(temporary);
      throw error;
    }
    return temporary;
  };

  const discard = (temporary: string): void => {
    try {
      fileSystem.unlink(temporary);
    } catch {
      // Swept from `tmp/` later.
    }
  };

  const sizeOf = (file: string): number | undefined => {
    try {
      return Number(fileSystem.lstat(file).size);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  };

  return {
    async put(key, chunks, options) {
      checkPut(key, chunks);
      const file = fileOf(key);
      return onDisk("blobs.put", file, options?.signal, async () => {
        const dir = path.dirname(file);
        let created = false;
        if (sizeOf(file) === undefined) {
          if (options?.sparing === true) {
            reserve.assertRoom(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
            reserve.ensureFile();
          }
          const temporary = await writeTemporary(chunks, options?.signal);
          try {
            await makeDurableDirectory(dir);
            fileSystem.link(temporary, file);
            created = true;
          } catch (error) {
            if (errnoOf(error) !== "EEXIST") throw error;
          } finally {
            discard(temporary);
          }
        }
        // Also where it was there: whoever created it may not have come to this line, and "exists" promises durable bytes.
        await makeDurableDirectory(dir);
        await syncNames(dir);
        return created;
      });
    },

    async get(key, options: Abortable & { readonly offset?: number; readonly length?: number } = {}) {
      const { offset = 0, signal } = options;
      checkKey(key);
      checkCount(key, "offset", offset, 0);
      if (options.length !== undefined) checkCount(key, "length", options.length, 0);
      const file = fileOf(key);
      return onDisk("blobs.get", file, signal, async () => {
        let fd: number;
        try {
          fd = fileSystem.open(file, O_RDONLY | O_NOFOLLOW);
        } catch (error) {
          if (isMissing(error)) throw blobMissing(key);
          throw error;
        }
        try {
          const rest = Math.max(0, Number(fileSystem.fstat(fd).size) - offset);
          const bytes = Buffer.allocUnsafe(Math.min(rest, options.length ?? rest));
          const pace = pacer(signal);
          let done = 0;
          while (done < bytes.length) {
            const read = fileSystem.read(fd, bytes, done, Math.min(sliceBytes, bytes.length - done), offset + done);
            if (read === 0) break;
            done += read;
            await pace();
          }
          return bytes.subarray(0, done);
        } finally {
          fileSystem.close(fd);
        }
      });
    },

    async stat(key, options) {
      checkKey(key);
      const file = fileOf(key);
      return onDisk("blobs.stat", file, options?.signal, () => {
        const size = sizeOf(file);
        return size === undefined ? undefined : { key, size };
      });
    },

    async *list(prefix, options) {
      checkPrefix(prefix);
      const signal = options?.signal;
      const keys = await onDisk("blobs.list", root, signal, () => findKeys(fileSystem, root, prefix, signal));
      for (const key of keys) {
        const file = fileOf(key);
        const size = await onDisk("blobs.list", file, signal, () => sizeOf(file));
        if (size !== undefined) yield { key, size };
      }
    },

    async delete(key, options) {
      checkKey(key);
      const file = fileOf(key);
      await onDisk("blobs.delete", file, options?.signal, () => {
        try {
          fileSystem.unlink(file);
        } catch (error) {
          if (!isMissing(error)) throw error;
        }
      });
    },
  };
}

/** The keys starting with `prefix`, sorted. All are held at once: directory order is not key order ("a-b" < "a/b" < "a0"). */
async function findKeys(
  fileSystem: FileSystem,
  root: string,
  prefix: string,
  signal: AbortSignal | undefined,
): Promise<StorageKey[]> {
  const keys: StorageKey[] = [];
  const pace = pacer(signal);
  const pending: string[][] = [[]];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    for (const name of namesIn(fileSystem, path.join(root, ...at), at.length > 0)) {
      const key = keyOf(at, name);
      if (key !== undefined) {
        if (key.startsWith(prefix)) keys.push(key);
      } else {
        const below = keyPrefixOf([...at, name]);
        if (below.startsWith(prefix) || prefix.startsWith(below)) pending.push([...at, name]);
      }
    }
    await pace();
  }
  return keys.sort();
}

function namesIn(fileSystem: FileSystem, dir: string, mayBeNone: boolean): readonly string[] {
  try {
    return fileSystem.readdir(dir).map(String);
  } catch (error) {
    // A file that somebody put there; it is no blob.
    if (mayBeNone && isMissing(error)) return [];
    throw error;
  }
}
