/**
 * What was learnt of files at earlier looks, so that an unchanged one need not be read again. A hint, never proof (G3):
 * a row says which id a file's bytes have, not that the store has them.
 *
 * A row exists only while it can be trusted: the file's own stamps were safely older than the moment it was read, so that
 * any later write gives it another stamp (`isSettled`). Racy files simply have no row and are read again.
 */
import { hash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { nameFromBytes, nameToBytes } from "../core/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import type { ContentId } from "./contracts.js";

export interface StatRow {
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly mode: number;
  readonly id: ContentId;
}

export type StatRows = ReadonlyMap<string, StatRow>;

export const permissionBits = 0o777n;

/** Whether the row speaks of the file as it is now. ctime is what gives away an edit whose mtime was set back. */
export function matches(row: StatRow, stats: BigIntStats): boolean {
  return (
    row.ctimeNs === stats.ctimeNs &&
    row.mtimeNs === stats.mtimeNs &&
    row.size === stats.size &&
    row.ino === stats.ino &&
    row.mode === Number(stats.mode & permissionBits)
  );
}

const nsPerMs = 1_000_000n;
const nsPerSecond = 1_000_000_000n;
/**
 * Stamps are taken when a write begins, from a clock that ticks every 1 to 10 ms; its bytes arrive later, much later when
 * the writer loses the processor in between. So the margin allows a second, and more for what one call may write.
 */
const marginNs = nsPerSecond;
const slowestWriteBytesPerSecond = 50n * 1024n * 1024n;
/** Where a stamp shows no part of a second it may be rounded down by up to 2 s (FAT). */
const wholeSecondNs = 2n * nsPerSecond;

/**
 * Whether a write that is not yet in what is read after `lookedAtMs` is sure to change the stamps: the newer of them is
 * older than that moment by more than they can be off. Stamps in the future, where the clock was set back, are never settled.
 */
export function isSettled(
  { mtimeNs, ctimeNs, size }: Pick<BigIntStats, "mtimeNs" | "ctimeNs" | "size">,
  lookedAtMs: number,
): boolean {
  const newest = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
  const wholeSecond = mtimeNs % nsPerSecond === 0n || ctimeNs % nsPerSecond === 0n;
  const margin = marginNs + (size * nsPerSecond) / slowestWriteBytesPerSecond + (wholeSecond ? wholeSecondNs : 0n);
  return newest + margin < BigInt(Math.floor(lookedAtMs)) * nsPerMs;
}

// ── the file (docs/formats/snapshots.md) ────────────────────────────────────────────────────────────────────────────

const magic = Buffer.from("LRSTAT\0\0", "latin1");
const version = 0;

/** What the rows belong to: a root and its rules. */
export interface StatIndexHead {
  /** 64 hex digits. */
  readonly key: string;
  /** The device the rows' inodes are of. */
  readonly dev: bigint;
}

export async function encodeStatIndex(
  head: StatIndexHead,
  rows: StatRows,
  pace: () => Promise<void> | undefined,
): Promise<Buffer> {
  const out = new ByteWriter(128 + rows.size * 128);
  out.bytes(magic).u32(version).digest(head.key).u64(head.dev).u32(rows.size);
  let count = 0;
  for (const [path, row] of rows) {
    const bytes = nameToBytes(path);
    out.u32(bytes.length).bytes(bytes);
    out.u64(row.ino).u64(row.size).i64(row.mtimeNs).i64(row.ctimeNs).u16(row.mode).digest(row.id);
    if (++count % 256 === 0) await pace();
  }
  const body = out.take();
  return Buffer.concat([body, Buffer.from(hash("sha256", body), "hex")]);
}

/** Throws `FormatError` for damage, another version and another head alike: each means "nothing is known". */
export async function decodeStatIndex(
  bytes: Uint8Array,
  head: StatIndexHead,
  pace: () => Promise<void> | undefined,
): Promise<Map<string, StatRow>> {
  const reader = new ByteReader(bytes);
  reader.expect(magic, "a stat index");
  if (reader.u32() !== version) throw new FormatError("is of another version");
  const end = bytes.length - 32;
  if (end < reader.at || hash("sha256", bytes.subarray(0, end)) !== Buffer.from(bytes.subarray(end)).toString("hex")) {
    throw new FormatError("its digest is another");
  }
  if (reader.digest() !== head.key || reader.u64() !== head.dev) throw new FormatError("belongs to another root");
  const count = reader.u32();
  const rows = new Map<string, StatRow>();
  for (let i = 0; i < count; i++) {
    const path = nameFromBytes(reader.bytes(reader.u32()));
    rows.set(path, {
      ino: reader.u64(),
      size: reader.u64(),
      mtimeNs: reader.i64(),
      ctimeNs: reader.i64(),
      mode: reader.u16(),
      id: reader.digest() as ContentId,
    });
    if (i % 256 === 255) await pace();
  }
  return rows;
}
