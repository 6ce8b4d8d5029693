/** Turns what the operating system and SQLite say into the storage errors of the table. */
import { StorageError, errnoOf, isFull, isLooprigError } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { SqliteFailure } from "./sqlite.js";

/** The storage error for `error`, or `error` itself when it is one already or none of the system's. */
export function storageFailure(error: unknown, operation: string, path: string, fileSystem: FileSystem): unknown {
  if (isLooprigError(error)) return error;
  if (error instanceof SqliteFailure) return sqliteFailure(error, operation, path, fileSystem);
  if (isFull(error)) return full(operation, path, error);
  const errno = errnoOf(error);
  if (errno === undefined) return error;
  return failed(operation, path, errno, error);
}

export const storageDamaged = (path: string, reason: string, cause?: unknown): StorageError =>
  new StorageError(
    "storage.damaged",
    `Cannot use the state in "${path}": ${reason}; copy the state directory away before anything else, then restore it from a backup or name another`,
    { path, reason },
    { cause },
  );

function sqliteFailure(error: SqliteFailure, operation: string, path: string, fileSystem: FileSystem): StorageError {
  switch (error.kind) {
    case "busy":
      return storageBusy(operation, path, error);
    case "full":
      return full(operation, path, error);
    case "damaged":
      return storageDamaged(path, `SQLite finds it damaged (${error.code})`, error);
    case "io":
    case "other":
      // A full disk met while growing the shared-memory file, or while opening, is reported as an I/O error.
      return isDiskFull(path, fileSystem) ? full(operation, path, error) : failed(operation, path, error.code, error);
  }
}

export const storageBusy = (operation: string, path: string, cause?: unknown): StorageError =>
  new StorageError(
    "storage.busy",
    `Cannot do ${operation} in "${path}": other processes kept it locked for too long; repeat it`,
    { operation },
    { cause, retryable: true },
  );

const full = (operation: string, path: string, cause: unknown): StorageError =>
  new StorageError(
    "storage.full",
    `Cannot do ${operation} in "${path}": the disk or quota is full; free some space and repeat it`,
    { path },
    { cause, retryable: true },
  );

const failed = (operation: string, path: string, errno: string, cause: unknown): StorageError =>
  new StorageError(
    "storage.failed",
    `Cannot do ${operation} in "${path}": the system answered ${errno}; nothing of it was kept; see to the disk or the permissions and repeat it`,
    { operation, path, errno },
    { cause },
  );

function isDiskFull(path: string, fileSystem: FileSystem): boolean {
  try {
    const { bavail, bsize } = fileSystem.statfs(path);
    return bavail * bsize < 64 * 1024;
  } catch {
    return false;
  }
}
