/**
 * The stat index on disk (docs/formats/snapshots.md): a head and batches of the records of a `TreeTable`. A capture that learnt
 * something appends one batch of the directories it touched; when the batches have grown to a multiple of the tree, the file
 * is written anew. It is a hint: anything wrong with it means that less is known.
 */
import { hash } from "node:crypto";
import { FormatError } from "./byte-codec.js";
import { TreeTable } from "./tree-table.js";

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
const batchMagic = Buffer.from("LRSB", "latin1");

const headBytes = magic.length + 4 + 4 + 32 + 8;
/** Magic, u32 number of records, u64 where in the file it starts, u64 bytes of records. */
const batchHeadBytes = batchMagic.length + 4 + 8 + 8;
const digestBytes = 32;

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
export function encodeBatch(table: TreeTable, directories: readonly number[], position: number): Buffer {
  const records = directories.map((directory) => table.recordBytes(directory));
  const length = records.reduce((sum, record) => sum + record.length, 0);
  const bytes = Buffer.allocUnsafe(batchHeadBytes + length + digestBytes);
  batchMagic.copy(bytes);
  bytes.writeUInt32LE(records.length, 4);
  bytes.writeBigUInt64LE(BigInt(position), 8);
  bytes.writeBigUInt64LE(BigInt(length), 16);
  let at = batchHeadBytes;
  for (const record of records) {
    bytes.set(record, at);
    at += record.length;
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
  const batches: Buffer[] = [];
  let total = 8;
  let at = headBytes;
  while (at < bytes.length) {
    const records = recordsOfBatch(bytes, at);
    if (records === undefined) break;
    batches.push(records);
    total += records.length;
    at += batchHeadBytes + records.length + digestBytes;
    yield;
  }
  // A little room, so that the first changes need no larger buffer.
  const arena = new SharedArrayBuffer(Math.ceil((total * 1.1 + 65_536) / 8) * 8);
  const target = Buffer.from(arena);
  let end = 8;
  for (const records of batches) {
    end += records.copy(target, end);
    yield;
  }
  return { table: yield* TreeTable.fromRecords(arena, end), whole: at === bytes.length };
}

function recordsOfBatch(bytes: Buffer, at: number): Buffer | undefined {
  if (at + batchHeadBytes + digestBytes > bytes.length) return undefined;
  if (!bytes.subarray(at, at + batchMagic.length).equals(batchMagic)) return undefined;
  if (bytes.readBigUInt64LE(at + 8) !== BigInt(at)) return undefined;
  const length = bytes.readBigUInt64LE(at + 16);
  if (length % 8n !== 0n || length > BigInt(bytes.length - at - batchHeadBytes - digestBytes)) return undefined;
  const start = at + batchHeadBytes;
  const end = start + Number(length);
  const digest = hash("sha256", bytes.subarray(at, end), "buffer");
  return digest.equals(bytes.subarray(end, end + digestBytes)) ? bytes.subarray(start, end) : undefined;
}
