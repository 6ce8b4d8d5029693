/**
 * Blocks of objects that are stored by what differs from others, their bases: codecs 2 and 3 (docs/formats/snapshots.md).
 *
 * Codec 3, patches, is what is written. An object shares its first and last bytes with its base; what lies between is deflate
 * with what lies between in the base as its dictionary, and with the ids of the block's own objects, since a directory in
 * which a file changed names the new id of the file. Codec 2 is deflate of whole objects, which spends a hundred times the bytes
 * of an edit on saying that nothing else changed; it is read for ever.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { invariant } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { ObjectId } from "./object-ids.js";
import { codecs } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";

/** How far back deflate looks. */
const windowBytes = 32 * 1024;

export interface Patched {
  readonly id: ObjectId;
  readonly bytes: Uint8Array;
  readonly base: { readonly id: ObjectId; readonly bytes: Uint8Array };
}

/** What decoding a block of differences takes, besides its stored bytes. */
export interface DeltaBlock {
  readonly codec: number;
  readonly rawLength: number;
  readonly ids: readonly ObjectId[];
  readonly lengths: readonly number[];
}

/** Compared by native code in such pieces, and byte by byte where one differs. */
const stretchBytes = 1024;

/** How many bytes two byte strings share at their starts, and then at their ends. */
export function sharedEnds(a: Uint8Array, b: Uint8Array): { readonly prefix: number; readonly suffix: number } {
  const most = Math.min(a.length, b.length);
  const areSame = (atA: number, atB: number): boolean =>
    Buffer.compare(a.subarray(atA, atA + stretchBytes), b.subarray(atB, atB + stretchBytes)) === 0;
  let prefix = 0;
  while (prefix + stretchBytes <= most && areSame(prefix, prefix)) prefix += stretchBytes;
  while (prefix < most && a[prefix] === b[prefix]) prefix++;
  let suffix = 0;
  while (suffix + stretchBytes <= most - prefix) {
    const next = suffix + stretchBytes;
    if (!areSame(a.length - next, b.length - next)) break;
    suffix = next;
  }
  while (suffix < most - prefix && a[a.length - 1 - suffix] === b[b.length - 1 - suffix]) suffix++;
  return { prefix, suffix };
}

export function encodePatches(objects: readonly Patched[]): EncodedBlock {
  invariant(objects.length > 0, "BUG: a block of patches holds none");
  const ends: number[] = [];
  const middles: Uint8Array[] = [];
  const baseMiddles: Uint8Array[] = [];
  for (const { bytes, base } of objects) {
    const { prefix, suffix } = sharedEnds(bytes, base.bytes);
    writeNumber(ends, prefix);
    writeNumber(ends, suffix);
    middles.push(bytes.subarray(prefix, bytes.length - suffix));
    baseMiddles.push(base.bytes.subarray(prefix, base.bytes.length - suffix));
  }
  const ids = objects.map(({ id }) => id);
  const dictionary = dictionaryOf(baseMiddles, ids);
  const deflated = deflateRawSync(Buffer.concat(middles), { level: 9, memLevel: 9, dictionary });
  return {
    codec: codecs.patch,
    stored: Buffer.concat([Buffer.from(ends), deflated]),
    rawLength: objects.reduce((sum, { bytes }) => sum + bytes.length, 0),
    ids,
    lengths: objects.map(({ bytes }) => bytes.length),
    bases: objects.map(({ base }) => base.id),
  };
}

/** The raw bytes of a block of differences, given those of its bases in order. Throws `FormatError` as `decodeBlock` does. */
export function decodeDelta(block: DeltaBlock, stored: Uint8Array, bases: readonly Uint8Array[]): Buffer {
  return block.codec === codecs.patch ? decodePatches(block, stored, bases) : decodeWhole(block, stored, bases);
}

function decodePatches(
  { rawLength, ids, lengths }: DeltaBlock,
  stored: Uint8Array,
  bases: readonly Uint8Array[],
): Buffer {
  const reader = new NumberReader(stored);
  const patches = lengths.map((length, i) => {
    const base = bases[i];
    const prefix = reader.next();
    const suffix = reader.next();
    if (base === undefined || prefix + suffix > Math.min(length, base.length))
      throw new FormatError("a patch shares more with its base than there is");
    return { base, prefix, suffix, middle: length - prefix - suffix };
  });
  const dictionary = dictionaryOf(
    patches.map(({ base, prefix, suffix }) => base.subarray(prefix, base.length - suffix)),
    ids,
  );
  const middleBytes = patches.reduce((sum, { middle }) => sum + middle, 0);
  const middles = inflate(stored.subarray(reader.at), middleBytes, dictionary);
  const raw = Buffer.allocUnsafe(rawLength);
  let at = 0;
  let from = 0;
  for (const { base, prefix, suffix, middle } of patches) {
    raw.set(base.subarray(0, prefix), at);
    raw.set(middles.subarray(from, from + middle), at + prefix);
    raw.set(base.subarray(base.length - suffix), at + prefix + middle);
    at += prefix + middle + suffix;
    from += middle;
  }
  if (at !== rawLength) throw new FormatError("a block of patches has the wrong length");
  return raw;
}

const decodeWhole = ({ rawLength }: DeltaBlock, stored: Uint8Array, bases: readonly Uint8Array[]): Buffer =>
  inflate(stored, rawLength, Buffer.concat(bases));

function inflate(stored: Uint8Array, length: number, dictionary: Buffer): Buffer {
  let raw: Buffer;
  try {
    raw = inflateRawSync(stored, { dictionary, maxOutputLength: Math.max(1, length) });
  } catch (error) {
    throw new FormatError("a block of differences does not decompress", { cause: error });
  }
  if (raw.length !== length) throw new FormatError("a block of differences decompresses to the wrong length");
  return raw;
}

/** The ids come last, where deflate reaches them from everywhere. */
function dictionaryOf(baseMiddles: readonly Uint8Array[], ids: readonly ObjectId[]): Buffer {
  const all = Buffer.concat([...baseMiddles, Buffer.from(ids.join(""), "hex")]);
  return all.subarray(Math.max(0, all.length - windowBytes));
}

// ── numbers of seven bits a byte, the lowest first (LEB128) ─────────────────────────────────────────────────────────

function writeNumber(out: number[], value: number): void {
  let left = value;
  for (; left > 127; left >>>= 7) out.push((left & 127) | 128);
  out.push(left);
}

class NumberReader {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** At most 28 bits, which is more than an object has bytes. */
  next(): number {
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) throw new FormatError("ends inside a number");
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new FormatError("a number is too large");
  }
}
