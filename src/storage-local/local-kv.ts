/** Small values as rows. A deleted key keeps its row and its revision, so that a re-made key never repeats one. */
import { createHash } from "node:crypto";
import { checkCount, checkKey, checkPrefix, checkSet, kvConflict } from "../storage/index.js";
import type { Kv, KvEntry, StorageKey } from "../storage/index.js";
import { storageDamaged } from "./failures.js";
import type { SqliteDatabase, SqliteRow } from "./sqlite.js";
import type { StateDatabase } from "./state-database.js";
import { afterPrefix } from "./state-database.js";

/** Entries fetched at a time while listing: at most 16 MiB. */
const listBatch = 64;

export function createLocalKv(database: StateDatabase, databaseFile: string): Kv {
  const change = (sql: SqliteDatabase, key: StorageKey, expected: number, value: Uint8Array | null): number => {
    const [last, present] = (sql.rows("SELECT revision, value IS NOT NULL FROM kv WHERE key = ?", [key])[0] ?? [
      0, 0,
    ]) as readonly [number, number];
    const actual = present === 1 ? last : 0;
    if (actual !== expected || (value === null && actual === 0)) throw kvConflict(key, expected, actual);
    const revision = last + 1;
    sql.run(
      "INSERT INTO kv (key, revision, value, checksum) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (key) DO UPDATE SET revision = ?2, value = ?3, checksum = ?4",
      [key, revision, value, value === null ? null : valueChecksum(key, revision, value)],
    );
    return revision;
  };

  const verified = (row: SqliteRow): KvEntry => {
    const [key, revision, value, checksum] = row as readonly [string, number, Uint8Array, Uint8Array | null];
    if (checksum === null || Buffer.compare(checksum, valueChecksum(key, revision, value)) !== 0) {
      throw storageDamaged(databaseFile, `the value of "${key}" does not match its checksum`);
    }
    return { key, revision, value };
  };

  return {
    async get(key, options) {
      checkKey(key);
      const rows = await database.read("kv.get", options?.signal, (sql) =>
        sql.rows("SELECT key, revision, value, checksum FROM kv WHERE key = ? AND value IS NOT NULL", [key]),
      );
      return rows[0] === undefined ? undefined : verified(rows[0]);
    },

    async set(key, value, options) {
      checkSet(key, value, options.revision);
      return database.write("kv.set", options.signal, (sql) => change(sql, key, options.revision, value));
    },

    async delete(key, options) {
      checkKey(key);
      checkCount(key, "revision", options.revision, 0);
      await database.write("kv.delete", options.signal, (sql) => change(sql, key, options.revision, null));
    },

    async list(prefix, options) {
      checkPrefix(prefix);
      const entries: KvEntry[] = [];
      for (let after = ""; ; after = entries.at(-1)?.key ?? "") {
        const rows = await database.read("kv.list", options?.signal, (sql) =>
          sql.rows(
            "SELECT key, revision, value, checksum FROM kv WHERE key >= ? AND key < ? AND key > ? AND value IS NOT NULL ORDER BY key LIMIT ?",
            [prefix, afterPrefix(prefix), after, listBatch],
          ),
        );
        entries.push(...rows.map(verified));
        if (rows.length < listBatch) return entries;
      }
    },
  };
}

/** Bytes: a domain line, then key and revision each ended by NUL, then the value. */
export function valueChecksum(key: StorageKey, revision: number, value: Uint8Array): Uint8Array {
  return createHash("sha256").update(`looprig kv value 1\n${key}\0${revision}\0`).update(value).digest();
}
