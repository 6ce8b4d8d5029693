/**
 * The operating system's part of a lease: POSIX locks on an empty file, taken through SQLite (Node has no call for them).
 * They are freed the moment the process that holds them ends, however it ends, and kept while it is stopped (G4).
 *
 * Invariant: closing any descriptor of a file drops every POSIX lock the process has on it. So a process opens a lock file
 * only through here, and never while a lease of its own on that file stands in the registry (`lease-registry.ts`).
 */
import { SqliteFailure, openSqlite } from "./sqlite.js";
import type { SqliteDatabase } from "./sqlite.js";

export interface LeaseLock {
  /** Whether the lock is ours now. Never waits. */
  tryLock(): boolean;
  /** Idempotent. Frees the lock. */
  close(): void;
}

/** Opens a lock file that exists. */
export function openLeaseLock(file: string): LeaseLock {
  const sql = openSqlite(file);
  return {
    // The journal stays in memory: on disk it would be a second file that a killed holder leaves behind. Nothing is ever
    // committed, so the lock file stays empty. No statement is prepared: `close` then closes the file at once.
    tryLock: () => !isBusy(() => sql.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")),
    close: () => sql.close(),
  };
}

/**
 * Whether somebody holds the lock. Takes a shared lock for an instant: probes do not disturb each other, and an acquirer
 * that meets one tries again. It is also true for the instant in which another acquirer is trying.
 */
export function probeLeaseLock(file: string): boolean {
  let sql: SqliteDatabase | undefined;
  try {
    const opened = (sql = openSqlite(file));
    return isBusy(() => opened.exec("PRAGMA schema_version"));
  } finally {
    sql?.close();
  }
}

function isBusy(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    if (error instanceof SqliteFailure && error.kind === "busy") return true;
    throw error;
  }
}
