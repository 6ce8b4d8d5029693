/**
 * Packs and their indexes, version 1 (docs/formats/snapshots.md). Frozen: they are read for ever, as are those of version 0,
 * which has the same layout. Another layout is another version; none ever enters a ref.
 *
 * A pack is a header, blocks and a trailer; a block holds whole objects, compressed together. The table in front of each
 * block names its objects, so a pack can be read without its index, and an index is a pure function of its pack: whoever
 * makes it anew makes the same bytes.
 */
import { createHash, hash, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompressSync, brotliDecompress, constants, crc32 } from "node:zlib";
import type { BrotliOptions } from "node:zlib";
import { invariant } from "../core/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import type { ObjectId } from "./object-ids.js";

const packMagic = Buffer.from("LRPACK\0\0", "latin1");
const blockMagic = Buffer.from("LRBK", "latin1");
const endMagic = Buffer.from("LREN", "latin1");
const indexMagic = Buffer.from("LRINDEX\0", "latin1");
export const packVersion = 1;

const packHeaderBytes = packMagic.length + 4;
const trailerBytes = endMagic.length + 4 + 32;

/** Small objects share a block up to this many raw bytes; a larger object is a block of its own. */
export const blockBytes = 128 * 1024;
/** Bounds the slot number of an object in its block. */
export const blockObjectsMax = 4096;
/** A reader refuses to inflate more than this, whatever a damaged header says. */
const blockBytesMax = 64 * 1024 * 1024;

/** Objects of `delta` and `patch` blocks are stored by what differs from others, their bases: `delta-codec.ts`. */
export const codecs = { raw: 0, brotli: 1, delta: 2, patch: 3 } as const;

export const hasBases = (codec: number): boolean => codec === codecs.delta || codec === codecs.patch;

/** The file was written by a looprig that came later. Never repaired, never replaced. */
export class UnsupportedVersionError extends Error {
  override readonly name = "UnsupportedVersionError";
  constructor(readonly version: number) {
    super(`has version ${version}`);
  }
}

/** What an index says of one block. */
export interface BlockRow {
  readonly codec: number;
  /** Where the stored bytes start in the pack. */
  readonly offset: number;
  readonly storedLength: number;
  readonly rawLength: number;
  readonly ids: readonly ObjectId[];
  /** `ids` as bytes, end to end, where the row was read from an index. */
  readonly digests?: Uint8Array | undefined;
  readonly lengths: Lengths;
  /** Of a block of deltas or patches: the objects without which it cannot be decoded, one for each of its own. */
  readonly bases?: readonly ObjectId[] | undefined;
}

/** The length of each object. */
export type Lengths = readonly number[] | Uint32Array;

export interface PackRows {
  readonly packId: string;
  readonly packBytes: number;
  readonly blocks: readonly BlockRow[];
}

export interface EncodedBlock {
  readonly codec: number;
  readonly stored: Uint8Array;
  readonly rawLength: number;
  readonly ids: readonly ObjectId[];
  readonly lengths: readonly number[];
  readonly bases?: readonly ObjectId[] | undefined;
}

// ── blocks ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const decompress = promisify(brotliDecompress);
const sampleBytes = 16 * 1024;

const brotliOptions = (length: number) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 1,
    // A window beyond the block costs set-up time and finds nothing.
    [constants.BROTLI_PARAM_LGWIN]: length <= blockBytes ? 18 : 20,
    [constants.BROTLI_PARAM_SIZE_HINT]: length,
  },
  // What most blocks become fits in one: in the usual ones of 16 KiB they would come in pieces that are joined after.
  chunkSize: Math.min(64 * 1024, Math.max(constants.Z_MIN_CHUNK, length)),
});

/**
 * Compresses, or keeps the bytes raw where they do not shrink by 3 %. On the thread that calls it: a block takes half a
 * millisecond and the largest object five, less than handing them to a thread pool and back costs. Only of large objects a
 * sample is tried first: giving up on a block of the usual size takes no longer than a sample would.
 */
export function encodeBlock(raw: Buffer, ids: readonly ObjectId[], lengths: readonly number[]): EncodedBlock {
  const plain = { codec: codecs.raw, stored: raw, rawLength: raw.length, ids, lengths };
  if (raw.length < 64) return plain;
  if (raw.length > blockBytes) {
    const at = (raw.length - sampleBytes) >> 1;
    const sample = brotliCompressSync(raw.subarray(at, at + sampleBytes), brotliOptions(sampleBytes));
    if (sample.length > sampleBytes * 0.97) return plain;
  }
  const stored = brotliCompressSync(raw, brotliOptions(raw.length));
  // A copy, since what comes out holds on to a whole chunk however short it is.
  return stored.length > raw.length * 0.97 ? plain : { ...plain, codec: codecs.brotli, stored: Buffer.from(stored) };
}

/** One object nobody names, so that a pack of the same objects as another is another pack. */
export function saltBlock(): EncodedBlock {
  const raw = randomBytes(16);
  return { codec: codecs.raw, stored: raw, rawLength: raw.length, ids: [hash("sha256", raw)], lengths: [raw.length] };
}

/** All of it in one step: in the usual chunks of 16 KiB each is a way to the thread pool and back, and they are joined after. */
export const inflateOptions = (rawLength: number): BrotliOptions => ({
  chunkSize: Math.max(constants.Z_MIN_CHUNK, rawLength + 1),
  maxOutputLength: Math.max(1, rawLength),
});

/** The raw bytes of a block without bases. Throws `FormatError` when they are not `rawLength` many. */
export async function decodeBlock(codec: number, stored: Uint8Array, rawLength: number): Promise<Buffer> {
  if (codec === codecs.raw) {
    if (stored.length !== rawLength) throw new FormatError("a raw block has the wrong length");
    return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  }
  if (codec !== codecs.brotli) throw new FormatError(`a block has the unknown codec ${codec}`);
  let raw: Buffer;
  try {
    raw = await decompress(stored, inflateOptions(rawLength));
  } catch (error) {
    throw new FormatError("a block does not decompress", { cause: error });
  }
  if (raw.length !== rawLength) throw new FormatError("a block decompresses to the wrong length");
  return raw;
}

/**
 * A pack of at most this many bytes has no index of its own, because reading it takes no longer than reading an index would:
 * most captures of a store in use add a few kibibytes.
 */
export const bareBytesMax = 64 * 1024;

// ── packs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Lays blocks out as a pack, whose id is the SHA-256 of all bytes before the digest at its end. Checksums and digest are taken
 * block by block: for a whole pack at once they would hold the event loop for as long as reading a hundred files.
 */
export class PackBuilder {
  readonly #chunks: Uint8Array[] = [];
  readonly #rows: BlockRow[] = [];
  readonly #digest = createHash("sha256");
  #length = 0;

  constructor() {
    this.#take(new ByteWriter(packHeaderBytes).bytes(packMagic).u32(packVersion).take());
  }

  add({ codec, stored, rawLength, ids, lengths, bases }: EncodedBlock): void {
    invariant(hasBases(codec) === (bases !== undefined), "BUG: a block has bases it does not want, or wants some");
    invariant(ids.length > 0 && ids.length <= blockObjectsMax, "BUG: a block holds no or too many objects");
    const head = new ByteWriter(32 + ids.length * 36);
    head.bytes(blockMagic).u8(codec).u32(ids.length).u32(rawLength).u32(stored.length);
    ids.forEach((id, i) => head.digest(id).u32(lengths[i] as number));
    bases?.forEach((id) => head.digest(id));
    const headBytes = head.take();
    this.#take(headBytes);
    const offset = this.#length;
    this.#rows.push({
      codec,
      offset,
      storedLength: stored.length,
      rawLength,
      ids,
      lengths,
      ...(bases ? { bases } : {}),
    });
    this.#take(stored);
    this.#take(new ByteWriter(4).u32(crc32(stored, crc32(headBytes))).take());
  }

  /** The pack with the blocks so far; more may be added for another one. */
  pack(): { readonly chunks: readonly Uint8Array[]; readonly rows: PackRows } {
    const end = new ByteWriter(trailerBytes).bytes(endMagic).u32(this.#rows.length).take();
    const packId = this.#digest.copy().update(end).digest("hex");
    return {
      chunks: [...this.#chunks, end, Buffer.from(packId, "hex")],
      rows: { packId, packBytes: this.#length + trailerBytes, blocks: [...this.#rows] },
    };
  }

  #take(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#digest.update(chunk);
    this.#length += chunk.length;
  }
}

/** A pack of these blocks. */
export function encodePack(blocks: readonly EncodedBlock[]): ReturnType<PackBuilder["pack"]> {
  const builder = new PackBuilder();
  for (const block of blocks) builder.add(block);
  return builder.pack();
}

/** Reads a whole pack, checks every checksum, and says what an index of it says. Throws `FormatError`. */
export function parsePack(bytes: Uint8Array): PackRows {
  const reader = new ByteReader(bytes);
  reader.expect(packMagic, "a pack");
  const packId = checkedDigest(bytes);
  assertVersion(reader.u32());
  const blocks: BlockRow[] = [];
  while (reader.left > trailerBytes) blocks.push(parseBlock(reader, bytes));
  reader.expect(endMagic, "the end of a pack");
  if (reader.u32() !== blocks.length) throw new FormatError("it has another number of blocks");
  reader.digest();
  reader.end();
  return { packId, packBytes: bytes.length, blocks };
}

/**
 * What can be told of a pack that is damaged somewhere: the blocks in front of the first one whose head makes no sense. Nothing
 * of it is proof of anything, since objects are checked against their ids when they are read.
 */
export function salvagePack(packId: string, bytes: Uint8Array): PackRows {
  const blocks: BlockRow[] = [];
  try {
    const reader = new ByteReader(bytes);
    reader.expect(packMagic, "a pack");
    assertVersion(reader.u32());
    while (reader.left > trailerBytes) blocks.push(parseBlock(reader, bytes, "salvage"));
  } catch (error) {
    if (!(error instanceof FormatError || error instanceof UnsupportedVersionError)) throw error;
  }
  return { packId, packBytes: bytes.length, blocks };
}

function parseBlock(reader: ByteReader, bytes: Uint8Array, how: "checked" | "salvage" = "checked"): BlockRow {
  const start = reader.at;
  reader.expect(blockMagic, "a block");
  const codec = reader.u8();
  const count = reader.u32();
  const rawLength = reader.u32();
  const storedLength = reader.u32();
  if (count === 0 || count > blockObjectsMax) throw new FormatError("a block holds no or too many objects");
  const ids: ObjectId[] = [];
  const lengths: number[] = [];
  for (let i = 0; i < count; i++) {
    ids.push(reader.digest());
    lengths.push(reader.u32());
  }
  const bases = hasBases(codec) ? { bases: ids.map(() => reader.digest()) } : {};
  const offset = reader.at;
  reader.bytes(storedLength);
  const crc = crc32(bytes.subarray(start, reader.at));
  if (reader.u32() !== crc && how === "checked") throw new FormatError("a block's checksum is another");
  return checkedBlock({ codec, offset, storedLength, rawLength, ids, lengths, ...bases });
}

function checkedBlock(block: BlockRow): BlockRow {
  let total = 0;
  for (const length of block.lengths) total += length;
  if (total !== block.rawLength || total > blockBytesMax) throw new FormatError("a block's objects do not fill it");
  return block;
}

// ── indexes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export function encodeIndex({ packId, packBytes, blocks }: PackRows): Buffer {
  const count = blocks.reduce((sum, block) => sum + block.ids.length, 0);
  const out = new ByteWriter(96 + blocks.length * 17 + count * 36);
  out.bytes(indexMagic).u32(packVersion).digest(packId).u32(packBytes).u32(blocks.length).u32(count);
  for (const block of blocks) {
    out.u8(block.codec).u32(block.offset).u32(block.storedLength).u32(block.rawLength).u32(block.ids.length);
  }
  for (const block of blocks) for (const id of block.ids) out.digest(id);
  for (const block of blocks) for (const length of block.lengths) out.u32(length);
  for (const block of blocks) for (const id of block.bases ?? []) out.digest(id);
  const body = out.take();
  return Buffer.concat([body, Buffer.from(hash("sha256", body), "hex")]);
}

/** Strict inverse of `encodeIndex`. Throws `FormatError` for damage and `UnsupportedVersionError` for a later format. */
export function decodeIndex(bytes: Uint8Array): PackRows {
  const reader = new ByteReader(bytes);
  reader.expect(indexMagic, "an index");
  checkedDigest(bytes);
  assertVersion(reader.u32());
  const packId = reader.digest();
  const packBytes = reader.u32();
  const blockCount = reader.u32();
  const count = reader.u32();
  if (reader.left < blockCount * 17 + count * 36 + 32) throw new FormatError("its length does not fit its counts");
  const heads = Array.from({ length: blockCount }, () => ({
    codec: reader.u8(),
    offset: reader.u32(),
    storedLength: reader.u32(),
    rawLength: reader.u32(),
    count: reader.u32(),
  }));
  // In a buffer of their own each lies where words do.
  const digests = Buffer.from(new Uint8Array(reader.bytes(count * 32)).buffer);
  const lengths = new Uint32Array(count);
  for (let i = 0; i < count; i++) lengths[i] = reader.u32();
  const deltas = heads.reduce((sum, head) => sum + (hasBases(head.codec) ? head.count : 0), 0);
  if (reader.left !== deltas * 32 + 32) throw new FormatError("its length does not fit its counts");
  let at = 0;
  const blocks = heads.map((head): BlockRow => {
    const end = at + head.count;
    if (end === at || head.count > blockObjectsMax || end > count) throw new FormatError("a block is wrong");
    const bases = hasBases(head.codec) ? Array.from({ length: head.count }, () => reader.digest()) : undefined;
    const row = new IndexRow(head, digests.subarray(at * 32, end * 32), lengths.subarray(at, end), bases);
    at = end;
    return checkedBlock(row);
  });
  if (at !== count) throw new FormatError("objects are left over");
  return { packId, packBytes, blocks };
}

/** Most ids of an index are never needed as text, and making it would be most of the work of loading one. */
class IndexRow implements BlockRow {
  readonly codec: number;
  readonly offset: number;
  readonly storedLength: number;
  readonly rawLength: number;
  readonly digests: Buffer;
  readonly lengths: Uint32Array;
  readonly bases: readonly ObjectId[] | undefined;
  #ids: readonly ObjectId[] | undefined;

  constructor(
    head: Pick<BlockRow, "codec" | "offset" | "storedLength" | "rawLength">,
    digests: Buffer,
    lengths: Uint32Array,
    bases: readonly ObjectId[] | undefined,
  ) {
    this.codec = head.codec;
    this.offset = head.offset;
    this.storedLength = head.storedLength;
    this.rawLength = head.rawLength;
    this.digests = digests;
    this.lengths = lengths;
    this.bases = bases;
  }

  get ids(): readonly ObjectId[] {
    this.#ids ??= Array.from({ length: this.lengths.length }, (_, i) =>
      this.digests.toString("hex", i * 32, (i + 1) * 32),
    );
    return this.#ids;
  }
}

/** The digest that packs and indexes of every version end with; only when it holds is the version believed. */
function checkedDigest(bytes: Uint8Array): string {
  const end = bytes.length - 32;
  if (end < 12) throw new FormatError("ends too early");
  const digest = Buffer.from(bytes.subarray(end)).toString("hex");
  if (hash("sha256", bytes.subarray(0, end)) !== digest) throw new FormatError("its digest is another");
  return digest;
}

function assertVersion(version: number): void {
  if (version > packVersion) throw new UnsupportedVersionError(version);
}
