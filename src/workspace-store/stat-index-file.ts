/**
 * The stat index on disk (docs/formats/snapshots.md): a head and the records of a `TreeTable` in batches. A capture that learnt
 * something appends one batch of the directories and rows it changed; when those have grown to a share of the tree, the file
 * is written anew. It is a hint: anything wrong with it means that less is known.
 */
import { hash } from "node:crypto";
import { constants, deflateRawSync, inflateRawSync } from "node:zlib";
import { FormatError } from "./byte-codec.js";
import { headerBytes, rowBytes } from "./table-layout.js";
import type { Unsaved } from "./table-upkeep.js";
import { TreeTable } from "./tree-table.js";
import type { Saved } from "./tree-table.js";

/** What a stat index belongs to: a root and its rules, on one device. */
export interface StatIndexHead {
  /** 64 hex digits. */
  readonly key: string;
  readonly dev: bigint;
}

const magic = Buffer.from("LRSTAT\0\0", "latin1");
const version = 1;
/** Reads as another number where bytes lie the other way round. */
const byteOrder = 0x01020304;
const recordsMagic = Buffer.from("LRSB", "latin1");
const changesMagic = Buffer.from("LRSC", "latin1");

const headBytes = magic.length + 4 + 4 + 32 + 8;
/** Magic, u32 number of records or inflated length, u64 where in the file it starts, u64 bytes that follow. */
const batchHeadBytes = recordsMagic.length + 4 + 8 + 8;
const digestBytes = 32;
/** Changes are appended up to this many bytes; with more the file is written anew. */
export const changesBytesMax = 1024 * 1024;

export function encodeHead({ key, dev }: StatIndexHead): Buffer {
  const bytes = Buffer.alloc(headBytes);
  magic.copy(bytes);
  bytes.writeUInt32LE(version, 8);
  new Uint32Array(bytes.buffer, bytes.byteOffset + 12, 1)[0] = byteOrder;
  bytes.write(key, 16, 32, "hex");
  bytes.writeBigUInt64LE(dev, 48);
  return bytes;
}

/** The records of some directories as a batch that starts at `position` of the file. */
export function encodeRecords(table: TreeTable, directories: readonly number[], position: number): Buffer {
  const records = directories.map((directory) => table.recordBytes(directory));
  return encodeBatch(recordsMagic, records.length, records, position);
}

/** How long changes are before they are compressed. */
export function changesBytes(table: TreeTable, { relisted, changed }: Unsaved): number {
  const records = relisted.reduce((sum, directory) => sum + table.recordBytes(directory).length, 4);
  return changed.reduce(
    (sum, { withHead, rows, reflagged }) =>
      sum + 16 + (withHead ? headerBytes : 0) + rows.length * (4 + rowBytes) + reflagged.length * 5,
    records,
  );
}

/** What changed, as one batch: a part of it alone would make directories contradict one another. */
export function encodeChanges(table: TreeTable, { relisted, changed }: Unsaved, position: number): Buffer {
  const records = relisted.map((directory) => table.recordBytes(directory));
  const rows = changed.flatMap(({ directory, withHead, rows: whole, reflagged }) => {
    const start = table.rows(directory);
    return [
      ...[u32(directory), u32(withHead ? 1 : 0), u32(whole.length), u32(reflagged.length)],
      ...(withHead ? [table.recordBytes(directory).subarray(0, headerBytes)] : []),
      ...whole.flatMap((row) => [u32(row), table.bytes.subarray(start + row * rowBytes, start + (row + 1) * rowBytes)]),
      ...reflagged.flatMap((row) => [u32(row), Buffer.of(table.flags(start + row * rowBytes))]),
    ];
  });
  const raw = Buffer.concat([u32(records.reduce((sum, { length }) => sum + length, 0)), ...records, ...rows]);
  const stored = deflateRawSync(raw, { level: constants.Z_DEFAULT_COMPRESSION });
  return encodeBatch(changesMagic, raw.length, [stored], position);
}

function encodeBatch(kind: Buffer, count: number, parts: readonly Uint8Array[], position: number): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = Buffer.allocUnsafe(batchHeadBytes + length + digestBytes);
  kind.copy(bytes);
  bytes.writeUInt32LE(count, 4);
  bytes.writeBigUInt64LE(BigInt(position), 8);
  bytes.writeBigUInt64LE(BigInt(length), 16);
  let at = batchHeadBytes;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  hash("sha256", bytes.subarray(0, at), "buffer").copy(bytes, at);
  return bytes;
}

/**
 * What a file says. `whole` is false when a batch at its end does not hold, which an interrupted append or two at once
 * leave behind; what came before it counts. Throws `FormatError` when nothing does. Pauses now and then.
 */
export function* decodeStatIndex(
  bytes: Buffer,
  head: StatIndexHead,
): Generator<undefined, { readonly table: TreeTable; readonly whole: boolean }> {
  if (bytes.length < headBytes || !bytes.subarray(0, headBytes).equals(encodeHead(head))) {
    throw new FormatError("belongs to another root, or is of another version");
  }
  const saved: Saved[] = [];
  let recordBytes = 0;
  let at = headBytes;
  while (at < bytes.length) {
    const batch = batchAt(bytes, at);
    if (batch === undefined) break;
    for (const part of batch.kind.equals(recordsMagic) ? [{ records: batch.bytes }] : partsOf(batch)) {
      saved.push(part);
      if ("records" in part) recordBytes += part.records.length;
    }
    at += batchHeadBytes + batch.bytes.length + digestBytes;
    yield;
  }
  return { table: yield* TreeTable.fromSaved(saved, recordBytes), whole: at === bytes.length };
}

interface Batch {
  readonly kind: Buffer;
  /** Of records how many there are, of changes how long they are when inflated. */
  readonly count: number;
  readonly bytes: Buffer;
}

function batchAt(bytes: Buffer, at: number): Batch | undefined {
  if (at + batchHeadBytes + digestBytes > bytes.length) return undefined;
  const kind = bytes.subarray(at, at + recordsMagic.length);
  if (!kind.equals(recordsMagic) && !kind.equals(changesMagic)) return undefined;
  if (bytes.readBigUInt64LE(at + 8) !== BigInt(at)) return undefined;
  const length = bytes.readBigUInt64LE(at + 16);
  if (length > BigInt(bytes.length - at - batchHeadBytes - digestBytes)) return undefined;
  const start = at + batchHeadBytes;
  const end = start + Number(length);
  const digest = hash("sha256", bytes.subarray(at, end), "buffer");
  if (!digest.equals(bytes.subarray(end, end + digestBytes))) return undefined;
  return { kind, count: bytes.readUInt32LE(at + 4), bytes: bytes.subarray(start, end) };
}

/** The parts of a batch of changes. Throws `FormatError`. */
function partsOf({ count, bytes }: Batch): readonly Saved[] {
  if (count > changesBytesMax) throw new FormatError("says that it is longer than any");
  const raw = inflated(bytes, count);
  if (raw.length < 4) throw new FormatError("ends too early");
  const recordsEnd = 4 + raw.readUInt32LE(0);
  if (recordsEnd > raw.length || recordsEnd % 8 !== 4) throw new FormatError("its records do not fit");
  const parts: Saved[] = [{ records: raw.subarray(4, recordsEnd) }];
  for (let at = recordsEnd; at < raw.length;) {
    if (at + 16 > raw.length) throw new FormatError("ends inside a directory");
    const directory = raw.readUInt32LE(at);
    const heads = raw.readUInt32LE(at + 4);
    const whole = raw.readUInt32LE(at + 8);
    const reflagged = raw.readUInt32LE(at + 12);
    at += 16;
    if (heads > 1 || heads * headerBytes + whole * (4 + rowBytes) + reflagged * 5 > raw.length - at)
      throw new FormatError("ends inside a directory");
    const head = heads === 0 ? undefined : raw.subarray(at, at + headerBytes);
    at += heads * headerBytes;
    const rows: (readonly [number, Buffer])[] = [];
    for (let i = 0; i < whole + reflagged; i++) {
      const length = i < whole ? rowBytes : 1;
      rows.push([raw.readUInt32LE(at), raw.subarray(at + 4, at + 4 + length)]);
      at += 4 + length;
    }
    parts.push({ directory, head, rows });
  }
  return parts;
}

function inflated(stored: Buffer, length: number): Buffer {
  try {
    const raw = inflateRawSync(stored, { maxOutputLength: Math.max(1, length) });
    if (raw.length === length) return raw;
  } catch (error) {
    throw new FormatError("does not decompress", { cause: error });
  }
  throw new FormatError("decompresses to another length");
}

function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
