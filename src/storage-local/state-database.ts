/**
 * The SQLite database of a state directory: many processes at once, short transactions, no waiting inside SQLite.
 *
 * Rules:
 *  1. A body runs in one piece, synchronously, in one transaction; writes take the write lock first (BEGIN IMMEDIATE).
 *  2. Where another process holds a lock, nothing has happened yet: the call waits on a timer, at random, and begins anew.
 *     The event loop is never held by a lock. After `busyMs` it gives up with `storage.busy`.
 *  3. A commit counts only if the file it went to still bears its name afterwards; a deleted database is never written to in silence.
 */
import type { FileSystem } from "../core/index.js";
import { storageClosed } from "../storage/index.js";
import { delay, jitter } from "./delay.js";
import { storageBusy, storageFailure } from "./failures.js";
import { SqliteFailure, openSqlite } from "./sqlite.js";
import type { SqliteDatabase } from "./sqlite.js";
import type { StateDirectory } from "./state-directory.js";
import { formatVersion, unsupportedVersion } from "./state-directory.js";

export const defaultBusyMs = 15_000;

const schema = `
  CREATE TABLE IF NOT EXISTS ledgers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    head INTEGER NOT NULL,
    epoch INTEGER NOT NULL
  );
  CREATE TABLE IF NOT EXISTS records (
    ledger INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (ledger, seq)
  );
  CREATE TABLE IF NOT EXISTS dropped_ledgers (id INTEGER PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS kv (
    key TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    value BLOB,
    checksum BLOB
  );
  CREATE TABLE IF NOT EXISTS leases (
    name TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    record TEXT
  );
  PRAGMA user_version = ${formatVersion};
`;

export interface StateDatabase {
  /** Throws `storage.closed` or the signal's reason. What a method calls before it does anything. */
  guard(operation: string, signal: AbortSignal | undefined): void;
  read<T>(operation: string, signal: AbortSignal | undefined, body: (sql: SqliteDatabase) => T): Promise<T>;
  write<T>(operation: string, signal: AbortSignal | undefined, body: (sql: SqliteDatabase) => T): Promise<T>;
  /** From now on every call is refused, except `tryWrite`: what remains is to let go. */
  seal(): void;
  /** A write that is tried once and whose failure is of no consequence. */
  tryWrite(body: (sql: SqliteDatabase) => void): void;
  close(): void;
}

export interface StateDatabaseOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long a call waits for other processes. Default 15 s. */
  readonly busyMs?: number | undefined;
}

export async function openStateDatabase(
  fileSystem: FileSystem,
  directory: StateDirectory,
  options: StateDatabaseOptions = {},
): Promise<StateDatabase> {
  const file = directory.databaseFile;
  const busyMs = options.busyMs ?? defaultBusyMs;
  let sealed = false;
  let closed = false;

  const attempting = async <T>(operation: string, signal: AbortSignal | undefined, attempt: () => T): Promise<T> => {
    const deadline = performance.now() + busyMs;
    for (let waitMs = 2; ; waitMs = Math.min(waitMs * 2, 64)) {
      guard(operation, signal);
      try {
        return attempt();
      } catch (error) {
        if (!(error instanceof SqliteFailure) || error.kind !== "busy") {
          throw storageFailure(error, operation, file, fileSystem);
        }
        if (performance.now() >= deadline) throw storageBusy(operation, file, error);
      }
      await delay(jitter(1, waitMs), signal);
    }
  };

  const guard = (operation: string, signal: AbortSignal | undefined): void => {
    if (sealed) throw storageClosed(operation);
    signal?.throwIfAborted();
  };

  const sql = await attempting("open", options.signal, () => openSqlite(file));
  const transact = <T>(begin: string, body: (sql: SqliteDatabase) => T): T => {
    directory.assertPresent();
    sql.exec(begin);
    try {
      const result = body(sql);
      sql.exec("COMMIT");
      return result;
    } finally {
      // SQLite ends the transaction itself after some failures, a full disk among them.
      if (sql.inTransaction) sql.exec("ROLLBACK");
    }
  };
  const write = <T>(body: (sql: SqliteDatabase) => T): T => {
    const result = transact("BEGIN IMMEDIATE", body);
    directory.assertPresent();
    return result;
  };

  try {
    await attempting("open", options.signal, () => {
      const found = Number(sql.rows("PRAGMA user_version")[0]?.[0] ?? 0);
      if (found > formatVersion) throw unsupportedVersion(directory.dir, found);
      sql.rows("PRAGMA journal_mode = WAL");
      sql.exec("PRAGMA synchronous = FULL");
      sql.exec("PRAGMA journal_size_limit = 16777216");
      if (found < formatVersion) write(() => sql.exec(schema));
    });
  } catch (error) {
    sql.close();
    throw error;
  }

  return {
    guard,
    read: (operation, signal, body) => attempting(operation, signal, () => transact("BEGIN", body)),
    write: (operation, signal, body) => attempting(operation, signal, () => write(body)),
    seal() {
      sealed = true;
    },
    tryWrite(body) {
      if (closed) return;
      try {
        write(body);
      } catch {
        // Said by the name: the caller's state is right without it.
      }
    },
    close() {
      sealed = true;
      closed = true;
      sql.close();
    },
  };
}

/** The bound that, with `>= prefix`, selects the keys starting with `prefix`: "{" is the first character after "z", the last a key may hold. */
export const afterPrefix = (prefix: string): string => `${prefix}{`;
