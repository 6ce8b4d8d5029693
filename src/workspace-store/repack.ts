/**
 * Writes what must stay of some packs into one new pack. Every object is checked against its digest on the way; blocks of
 * which everything stays are copied as they are. Nothing is published here.
 */
import { isLooprigError, pacer } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { BlockBuilder } from "./block-builder.js";
import { FormatError } from "./byte-codec.js";
import { fates, rowBytes } from "./collect-plan.js";
import type { JudgedPack, PackBlock, PackCopies } from "./collect-plan.js";
import { decodeDelta } from "./delta-codec.js";
import type { DigestTable } from "./digest-table.js";
import { packKey } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { objectIdOf } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { decodeBlock } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";

const staysInPack = (fate: number | undefined): boolean =>
  fate === fates.kept || fate === fates.waiting || fate === fates.loose;

/** A pack that holds an object that must stay and does not match its digest: it is left alone. */
export class DamagedPackError extends Error {
  override readonly name = "DamagedPackError";
  constructor(readonly object: ObjectId) {
    super(`holds the damaged object ${object}`);
  }
}

/** The most bytes that a pack and index of what stays of this one can have. */
export function stayingBytesMax({ blocks, lengths, fates: fateOf }: JudgedPack): number {
  let bytes = 0;
  for (const { storedLength, first, end } of blocks) {
    let raw = 0;
    let staying = 0;
    for (let i = first; i < end; i++) {
      if (!staysInPack(fateOf[i])) continue;
      staying++;
      raw += lengths[i] as number;
    }
    if (staying > 0) bytes += (staying === end - first ? storedLength : raw) + staying * (rowBytes + 64) + 64;
  }
  return bytes + 256;
}

/** The decoded bytes of a block in the store. Throws `FormatError` when they cannot be had. */
export async function readBlock(
  blobs: Blobs,
  objects: ObjectStore,
  ids: DigestTable,
  pack: PackCopies,
  block: PackBlock,
  options: Abortable,
): Promise<BlockBytes> {
  try {
    const stored = await blobs.get(packKey(pack.packId), {
      signal: options.signal,
      offset: block.offset,
      length: block.storedLength,
    });
    const { codec, rawLength, bases } = block;
    if (bases === undefined) return { stored, raw: await decodeBlock(codec, stored, rawLength) };
    const whole = await Promise.all(bases.map((base) => objects.readWhole(base)));
    const own = {
      ids: Array.from(pack.numbers.subarray(block.first, block.end), (number) => ids.hex(number)),
      lengths: Array.from(pack.lengths.subarray(block.first, block.end)),
    };
    return { stored, raw: decodeDelta({ codec, rawLength, ...own }, stored, whole) };
  } catch (error) {
    if (isLooprigError(error, "blob.missing")) throw new FormatError("its pack is gone", { cause: error });
    throw error;
  }
}

interface BlockBytes {
  readonly stored: Uint8Array;
  readonly raw: Buffer;
}

/** Gathers blocks for one new pack. */
export class Repacker {
  readonly #blobs: Blobs;
  readonly #objects: ObjectStore;
  readonly #ids: DigestTable;
  readonly #options: Abortable;
  readonly #pace: () => Promise<void> | undefined;
  readonly #blocks: EncodedBlock[] = [];
  readonly #builder = new BlockBuilder((block) => {
    this.#blocks.push(block);
  });

  constructor(blobs: Blobs, objects: ObjectStore, ids: DigestTable, options: Abortable) {
    this.#blobs = blobs;
    this.#objects = objects;
    this.#ids = ids;
    this.#options = options;
    this.#pace = pacer(options.signal);
  }

  /** Takes what stays of a pack, all or nothing. Throws `DamagedPackError`. `onKept` hears of each live object that was checked. */
  async add(pack: JudgedPack, onKept: (number: number) => void): Promise<void> {
    const whole: EncodedBlock[] = [];
    const single: { id: ObjectId; bytes: Buffer }[] = [];
    for (const block of pack.blocks) {
      const staying: number[] = [];
      for (let i = block.first; i < block.end; i++) if (staysInPack(pack.fates[i])) staying.push(i);
      const first = staying[0];
      if (first === undefined) continue;
      const bytes = await this.#read(pack, block, first, staying);
      if (bytes === undefined) continue;
      const { stored, raw } = bytes;
      const found = this.#checked(pack, block, raw, staying);
      await this.#pace();
      if (staying.length === block.end - block.first) {
        const { codec, rawLength, bases } = block;
        const lengths = found.map(({ bytes }) => bytes.length);
        whole.push({ codec, stored, rawLength, ids: found.map(({ id }) => id), lengths, bases });
      } else single.push(...found);
    }
    this.#blocks.push(...whole);
    for (const { id, bytes } of single) {
      this.#builder.add(id, bytes);
      await this.#pace();
    }
    for (let i = 0; i < pack.numbers.length; i++) {
      if (pack.fates[i] === fates.kept) onKept(pack.numbers[i] as number);
    }
  }

  /** All blocks. */
  finish(): readonly EncodedBlock[] {
    this.#builder.close();
    return this.#blocks;
  }

  /** Undefined for a block that is of no use to anybody any more. */
  async #read(
    pack: JudgedPack,
    block: PackBlock,
    first: number,
    staying: readonly number[],
  ): Promise<BlockBytes | undefined> {
    try {
      return await readBlock(this.#blobs, this.#objects, this.#ids, pack, block, this.#options);
    } catch (error) {
      // Garbage whose base went before it: no capture counts on it, so it need not wait for its time.
      const isGarbage = staying.every((i) => pack.fates[i] !== fates.kept);
      if (error instanceof FormatError && block.bases !== undefined && isGarbage) return undefined;
      if (error instanceof FormatError) throw new DamagedPackError(this.#ids.hex(pack.numbers[first] as number));
      throw error;
    }
  }

  #checked(pack: JudgedPack, block: PackBlock, raw: Buffer, staying: readonly number[]) {
    const found: { id: ObjectId; bytes: Buffer }[] = [];
    let at = 0;
    let next = 0;
    for (let i = block.first; i < block.end; i++) {
      const bytes = raw.subarray(at, (at += pack.lengths[i] as number));
      if (staying[next] !== i) continue;
      next++;
      const id = this.#ids.hex(pack.numbers[i] as number);
      if (objectIdOf(bytes) !== id) throw new DamagedPackError(id);
      found.push({ id, bytes });
    }
    return found;
  }
}
