/**
 * Ledgers as rows. Every record carries the SHA-256 of its ledger's name, its place, its epoch and its body: a body that
 * changed, moved or belongs elsewhere is found when it is read.
 */
import { createHash } from "node:crypto";
import { yieldToEventLoop } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import {
  checkAppend,
  checkCount,
  checkKey,
  checkPrefix,
  ledgerConflict,
  ledgerDamaged,
  ledgerFenced,
} from "../storage/index.js";
import type { Ledger, LedgerRecord, StorageKey } from "../storage/index.js";
import type { SqliteDatabase, SqliteRow } from "./sqlite.js";
import type { StateDatabase } from "./state-database.js";
import { afterPrefix } from "./state-database.js";

/** Records fetched at a time while reading: at most 32 MiB. */
const readBatch = 32;
/** Rows and bytes a deletion frees in one transaction, so that neither the loop nor other writers are held for long. */
const dropRowsMax = 500;
const dropBytesMax = 4 * 1024 * 1024;

interface Log {
  readonly id: number;
  readonly head: number;
  readonly epoch: number;
}

export function createLocalLedger(database: StateDatabase): Ledger {
  return {
    async append(ledger, bodies, options) {
      checkAppend(ledger, bodies, options);
      const { expectedHead, epoch } = options;
      return database.write("ledger.append", options.signal, (sql) => {
        const log = enter(sql, ledger, epoch);
        if (log.head !== expectedHead) throw ledgerConflict(ledger, expectedHead, log.head);
        let seq = expectedHead;
        for (const body of bodies) {
          seq += 1;
          sql.run("INSERT INTO records (ledger, seq, epoch, checksum, body) VALUES (?, ?, ?, ?, ?)", [
            log.id,
            seq,
            epoch,
            recordChecksum(ledger, seq, epoch, body),
            body,
          ]);
        }
        sql.run("UPDATE ledgers SET head = ?, epoch = ? WHERE id = ?", [seq, epoch, log.id]);
        return seq;
      });
    },

    async fence(ledger, epoch, options) {
      checkKey(ledger);
      checkCount(ledger, "epoch", epoch, 0);
      return database.write("ledger.fence", options?.signal, (sql) => {
        const log = enter(sql, ledger, epoch);
        sql.run("UPDATE ledgers SET epoch = ? WHERE id = ?", [epoch, log.id]);
      });
    },

    async *read(ledger, options: Abortable & { readonly from?: number } = {}) {
      const from = options.from ?? 1;
      checkKey(ledger);
      checkCount(ledger, "from", from, 1);
      const { signal } = options;
      const log = await database.read("ledger.read", signal, (sql) => find(sql, ledger));
      if (log === undefined) return;
      for (let next = from; next <= log.head; next += readBatch) {
        const last = Math.min(next + readBatch - 1, log.head);
        const rows = await database.read("ledger.read", signal, (sql) =>
          find(sql, ledger)?.id === log.id
            ? sql.rows(
                "SELECT seq, epoch, checksum, body FROM records WHERE ledger = ? AND seq BETWEEN ? AND ? ORDER BY seq",
                [log.id, next, last],
              )
            : undefined,
        );
        // Deleted meanwhile: it has no records any more.
        if (rows === undefined) return;
        for (let seq = next; seq <= last; seq++) {
          database.guard("ledger.read", signal);
          yield verified(ledger, seq, rows[seq - next]);
        }
      }
    },

    async head(ledger, options) {
      checkKey(ledger);
      return database.read("ledger.head", options?.signal, (sql) => find(sql, ledger)?.head ?? 0);
    },

    async list(prefix, options) {
      checkPrefix(prefix);
      return database.read("ledger.list", options?.signal, (sql) =>
        sql
          .rows("SELECT name FROM ledgers WHERE head > 0 AND name >= ? AND name < ? ORDER BY name", [
            prefix,
            afterPrefix(prefix),
          ])
          .map(([name]) => name as string),
      );
    },

    async delete(ledger, options) {
      checkKey(ledger);
      const signal = options?.signal;
      const dropped = await database.write("ledger.delete", signal, (sql) => {
        const log = find(sql, ledger);
        if (log !== undefined) {
          sql.run("DELETE FROM ledgers WHERE id = ?", [log.id]);
          sql.run("INSERT INTO dropped_ledgers (id) VALUES (?)", [log.id]);
        }
        return sql.rows("SELECT id FROM dropped_ledgers").map(([id]) => id as number);
      });
      // From here on the ledger is gone; what follows frees its space, and is gone on with by the next deletion if cut short.
      for (const id of dropped) {
        while (await database.write("ledger.delete", signal, (sql) => freeSome(sql, id))) await yieldToEventLoop();
      }
    },
  };
}

/** Bytes: a domain line, then name, sequence and epoch each ended by NUL (which no name holds), then the body. */
export function recordChecksum(ledger: StorageKey, seq: number, epoch: number, body: Uint8Array): Uint8Array {
  return createHash("sha256").update(`looprig ledger record 1\n${ledger}\0${seq}\0${epoch}\0`).update(body).digest();
}

function find(sql: SqliteDatabase, ledger: StorageKey): Log | undefined {
  const row = sql.rows("SELECT id, head, epoch FROM ledgers WHERE name = ?", [ledger])[0] as
    readonly [number, number, number] | undefined;
  return row === undefined ? undefined : { id: row[0], head: row[1], epoch: row[2] };
}

/** The ledger, made if need be, for a writer of that epoch. */
function enter(sql: SqliteDatabase, ledger: StorageKey, epoch: number): Log {
  const found = find(sql, ledger);
  if (found !== undefined) {
    if (epoch < found.epoch) throw ledgerFenced(ledger, epoch, found.epoch);
    return found;
  }
  const [row] = sql.rows("INSERT INTO ledgers (name, head, epoch) VALUES (?, 0, ?) RETURNING id", [ledger, epoch]);
  return { id: row?.[0] as number, head: 0, epoch };
}

function verified(ledger: StorageKey, seq: number, row: SqliteRow | undefined): LedgerRecord {
  const [foundSeq, epoch, checksum, body] = row ?? [];
  if (
    foundSeq !== seq ||
    typeof epoch !== "number" ||
    !(checksum instanceof Uint8Array) ||
    !(body instanceof Uint8Array) ||
    Buffer.compare(checksum, recordChecksum(ledger, seq, epoch, body)) !== 0
  ) {
    throw ledgerDamaged(ledger, seq);
  }
  return { seq, body };
}

/** Frees some records of a dropped ledger. Returns whether any are left. */
function freeSome(sql: SqliteDatabase, id: number): boolean {
  const sizes = sql.rows("SELECT seq, length(body) FROM records WHERE ledger = ? ORDER BY seq LIMIT ?", [
    id,
    dropRowsMax,
  ]) as readonly (readonly [number, number])[];
  let bytes = 0;
  let last: number | undefined;
  for (const [seq, size] of sizes) {
    if (last !== undefined && bytes + size > dropBytesMax) break;
    bytes += size;
    last = seq;
  }
  if (last === undefined) {
    sql.run("DELETE FROM dropped_ledgers WHERE id = ?", [id]);
    return false;
  }
  sql.run("DELETE FROM records WHERE ledger = ? AND seq <= ?", [id, last]);
  return true;
}
