/**
 * The one seam to SQLite: everything the local storage asks of a driver. The driver is `libsql`; `node:sqlite` fits the
 * same shape (decision record 0002). Calls are synchronous and never wait for a lock: whoever meets one decides what to do.
 *
 * Two copies of the SQLite library in one process would drop each other's POSIX locks, so the driver first loaded is
 * shared through `globalThis` by every install of looprig in the process.
 */
import { createRequire } from "node:module";

export type SqliteValue = string | number | Uint8Array | null;
export type SqliteRow = readonly SqliteValue[];

export interface SqliteDatabase {
  readonly inTransaction: boolean;
  /** Runs statements that return nothing. */
  exec(sql: string): void;
  /** Runs one statement that returns no rows. */
  run(sql: string, parameters: readonly SqliteValue[]): void;
  /** Every row of one statement that returns rows, as arrays of its columns. It is finished on return and holds no lock. */
  rows(sql: string, parameters?: readonly SqliteValue[]): readonly SqliteRow[];
  /** Idempotent. Rolls back what is open and lets go of every lock. */
  close(): void;
}

export type SqliteFailureKind = "busy" | "full" | "damaged" | "io" | "other";

/** What the driver refused, by what a caller can do about it. `code` is SQLite's own name or number. */
export class SqliteFailure extends Error {
  override readonly name = "SqliteFailure";
  readonly kind: SqliteFailureKind;
  readonly code: string;

  constructor(kind: SqliteFailureKind, code: string, cause: unknown) {
    super(`SQLite says ${code}${cause instanceof Error ? `: ${cause.message}` : ""}`, { cause });
    this.kind = kind;
    this.code = code;
  }
}

interface DriverStatement {
  readonly reader: boolean;
  raw(): DriverStatement;
  run(parameters: readonly SqliteValue[]): unknown;
  all(parameters: readonly SqliteValue[]): SqliteRow[];
}
interface DriverDatabase {
  readonly inTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): DriverStatement;
  close(): void;
}
type Driver = new (path: string) => DriverDatabase;

/** Opens a database file that exists. The caller made it, with the mode it wants: SQLite gives that mode to its side files. */
export function openSqlite(file: string): SqliteDatabase {
  const Database = loadDriver();
  const database = translated(() => new Database(file));
  const statements = new Map<string, DriverStatement>();
  let open = true;

  const statement = (sql: string): DriverStatement => {
    let found = statements.get(sql);
    if (found === undefined) {
      found = database.prepare(sql);
      if (found.reader) found.raw();
      statements.set(sql, found);
    }
    return found;
  };

  return {
    get inTransaction() {
      return database.inTransaction;
    },
    exec: (sql) => translated(() => database.exec(sql)),
    // Parameters go as one array: the driver takes a lone buffer for named parameters, and aborts the process over it.
    run: (sql, parameters) => void translated(() => statement(sql).run(parameters)),
    rows: (sql, parameters = []) => translated(() => statement(sql).all(parameters)),
    close() {
      if (!open) return;
      open = false;
      statements.clear();
      // The driver keeps a closed file open until its statements are collected; a rollback frees the locks now.
      if (database.inTransaction) translated(() => database.exec("ROLLBACK"));
      translated(() => database.close());
    },
  };
}

const shared = Symbol.for("looprig.sqlite-driver");

function loadDriver(): Driver {
  const registry = globalThis as Record<symbol, Driver | undefined>;
  return (registry[shared] ??= createRequire(import.meta.url)("libsql") as Driver);
}

function translated<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw classify(error);
  }
}

/** Primary result codes of SQLite, https://www.sqlite.org/rescode.html. */
const kinds: Readonly<Record<number, SqliteFailureKind>> = {
  5: "busy", // BUSY: another connection holds the lock
  6: "busy", // LOCKED: another connection of the shared cache does
  8: "io", // READONLY
  10: "io", // IOERR
  11: "damaged", // CORRUPT
  13: "full", // FULL
  14: "io", // CANTOPEN
  15: "busy", // PROTOCOL: the race for the write-ahead log's locks was lost too often
  26: "damaged", // NOTADB
};

function classify(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, rawCode } = error as { code?: unknown; rawCode?: unknown };
  // A failure to open bears its number only at the end of the message.
  const number =
    typeof rawCode === "number" ? rawCode : Number(/^ConnectionFailed\(.*: (\d+)"\)$/.exec(error.message)?.[1]);
  if (!Number.isInteger(number)) return error;
  return new SqliteFailure(kinds[number & 0xff] ?? "other", typeof code === "string" ? code : String(number), error);
}
