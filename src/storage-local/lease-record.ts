/**
 * What is recorded of a lease, for people and for the epoch; whether it is held is only ever answered by the lock.
 *
 * The record stands twice: as a row of the database, which is what is shown and listed, and as `leases/<hash>.json`, which
 * outlives the database. Both are written under the lock, durably, before a lease is handed out, and the next epoch is above
 * either: it never goes back, whichever copy is lost or garbled.
 */
import path from "node:path";
import { sha256Hex, writeFileAtomic } from "../core/index.js";
import type { FileSystem, LeaseHolder, SessionId } from "../core/index.js";
import { describeHolder } from "../storage/index.js";
import type { LeaseClaim, LeaseInfo, StorageKey } from "../storage/index.js";
import { storageDamaged } from "./failures.js";
import { readSmallFile } from "./small-file.js";
import type { SqliteDatabase } from "./sqlite.js";
import { afterPrefix } from "./state-database.js";
import { tighten } from "./state-directory.js";

const recordBytesMax = 64 * 1024;

export const lockFileOf = (leasesDir: string, name: StorageKey): string =>
  path.join(leasesDir, `${sha256Hex(name)}.lock`);

const recordFileOf = (leasesDir: string, name: StorageKey): string => path.join(leasesDir, `${sha256Hex(name)}.json`);

/** The epoch in the record file, 0 where it cannot be read. */
export function recordedEpoch(fileSystem: FileSystem, leasesDir: string, name: StorageKey): number {
  const bytes = readSmallFile(fileSystem, recordFileOf(leasesDir, name), recordBytesMax);
  if (bytes === undefined) return 0;
  return parseRecord(name, Buffer.from(bytes).toString("utf8"))?.holder.epoch ?? 0;
}

/** In a write transaction: gives the name its next epoch and this holder. */
export function insertRecord(sql: SqliteDatabase, name: StorageKey, claim: LeaseClaim, epochBefore: number): LeaseInfo {
  const row = sql.rows("SELECT epoch FROM leases WHERE name = ?", [name])[0];
  const epoch = Math.max(epochBefore, Number(row?.[0] ?? 0)) + 1;
  const info: LeaseInfo = { name, holder: describeHolder(claim, epoch, new Date()), subject: claim.subject };
  sql.run(
    "INSERT INTO leases (name, epoch, record) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET epoch = ?2, record = ?3",
    [name, epoch, recordText(info)],
  );
  return info;
}

/** In a write transaction: says that the holder of this epoch let go. Its epoch stays. */
export function clearRecord(sql: SqliteDatabase, name: StorageKey, epoch: number): void {
  sql.run("UPDATE leases SET record = NULL WHERE name = ? AND epoch = ?", [name, epoch]);
}

export function writeRecordFile(fileSystem: FileSystem, leasesDir: string, info: LeaseInfo): void {
  const file = recordFileOf(leasesDir, info.name);
  writeFileAtomic(fileSystem, file, [Buffer.from(`${recordText(info)}\n`)]);
  tighten(fileSystem, file, 0o600);
}

/**
 * The last holder that was recorded and did not say that it let go. It may be dead. Throws `storage.damaged` where the row
 * cannot be read: "nobody" would be a guess.
 */
export function selectRecord(sql: SqliteDatabase, name: StorageKey, databaseFile: string): LeaseInfo | undefined {
  const row = sql.rows("SELECT record FROM leases WHERE name = ? AND record IS NOT NULL", [name])[0];
  if (row === undefined) return undefined;
  const info = parseRecord(name, String(row[0]));
  if (info === undefined) throw storageDamaged(databaseFile, `the record of lease "${name}" cannot be read`);
  return info;
}

export function selectRecordNames(sql: SqliteDatabase, prefix: string): readonly StorageKey[] {
  return sql
    .rows("SELECT name FROM leases WHERE record IS NOT NULL AND name >= ? AND name < ? ORDER BY name", [
      prefix,
      afterPrefix(prefix),
    ])
    .map(([name]) => name as string);
}

function recordText({ name, holder, subject }: LeaseInfo): string {
  return JSON.stringify({ name, subject, ...holder, since: holder.since.toISOString() });
}

function parseRecord(name: StorageKey, text: string): LeaseInfo | undefined {
  try {
    const record = JSON.parse(text) as Record<string, unknown>;
    const { sessionId, command, host, pid, since, epoch, subject } = record;
    if (record["name"] !== name || typeof sessionId !== "string" || typeof since !== "string") return undefined;
    if (typeof command !== "string" || typeof host !== "string" || typeof pid !== "number") return undefined;
    if (!Number.isSafeInteger(epoch) || Number.isNaN(Date.parse(since))) return undefined;
    const holder: LeaseHolder = {
      // Shown, never used as a key.
      sessionId: sessionId as SessionId,
      command,
      host,
      pid,
      since: new Date(since),
      epoch: epoch as number,
    };
    return { name, holder, subject: typeof subject === "string" ? subject : undefined };
  } catch {
    return undefined;
  }
}
