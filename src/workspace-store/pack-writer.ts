/**
 * Gathers the new objects of one capture into packs and publishes them: pack, then index, then memory. Nothing else names
 * an object before its pack is durable, so a crash leaves at most a pack without an index, which the next reader adopts.
 *
 * Bounded: one open block, one open pack, one pack being published; `add` waits beyond that.
 */
import type { Blobs } from "../storage/index.js";
import { indexKey, packKey } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import type { ObjectId } from "./object-ids.js";
import { blockBytes, blockObjectsMax, encodeBlock, encodeIndex, encodePack, saltBlock } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";

/** A pack is closed when its objects reach this many raw bytes. */
const packBytes = 16 * 1024 * 1024;

export class PackWriter {
  readonly #blobs: Blobs;
  readonly #objects: ObjectStore;
  /** Everything handed to this writer: present or about to be. */
  readonly #added = new Set<ObjectId>();
  #block: Buffer | undefined;
  #blockLength = 0;
  #ids: ObjectId[] = [];
  #lengths: number[] = [];
  #blocks: Promise<EncodedBlock>[] = [];
  #packLength = 0;
  #publishing: Promise<void> = Promise.resolve();
  #bytesStored = 0;

  constructor(blobs: Blobs, objects: ObjectStore) {
    this.#blobs = blobs;
    this.#objects = objects;
  }

  /** Bytes of the packs and indexes published so far. */
  get bytesStored(): number {
    return this.#bytesStored;
  }

  /** Whether the object need not be added: the index has it or this writer does. */
  has(id: ObjectId): boolean {
    return this.#added.has(id) || this.#objects.has(id);
  }

  /** Takes a copy of the bytes. A promise is returned only when the caller has to wait. */
  add(id: ObjectId, bytes: Uint8Array): Promise<void> | undefined {
    if (this.has(id)) return undefined;
    this.#added.add(id);
    if (bytes.length > blockBytes / 2) {
      this.#push(encodeBlock(Buffer.from(bytes), [id], [bytes.length]), bytes.length);
    } else {
      if (this.#blockLength + bytes.length > blockBytes || this.#ids.length === blockObjectsMax) this.#closeBlock();
      this.#block ??= Buffer.allocUnsafe(blockBytes);
      this.#block.set(bytes, this.#blockLength);
      this.#blockLength += bytes.length;
      this.#ids.push(id);
      this.#lengths.push(bytes.length);
    }
    return this.#packLength >= packBytes ? this.#closePack() : undefined;
  }

  /** Publishes what is left; afterwards every object added is durable and in the index. */
  async flush(signal?: AbortSignal): Promise<void> {
    this.#closeBlock();
    await this.#closePack(signal);
    await this.#publishing;
  }

  #closeBlock(): void {
    if (this.#block === undefined) return;
    this.#push(encodeBlock(this.#block.subarray(0, this.#blockLength), this.#ids, this.#lengths), this.#blockLength);
    this.#block = undefined;
    this.#blockLength = 0;
    this.#ids = [];
    this.#lengths = [];
  }

  #push(block: Promise<EncodedBlock>, rawLength: number): void {
    // Its failure is met where the pack is laid out.
    block.catch(() => undefined);
    this.#blocks.push(block);
    this.#packLength += rawLength;
  }

  async #closePack(signal?: AbortSignal): Promise<void> {
    const blocks = this.#blocks;
    if (blocks.length === 0) return;
    this.#blocks = [];
    this.#packLength = 0;
    await this.#publishing;
    this.#publishing = this.#publish(blocks, signal);
    this.#publishing.catch(() => undefined);
  }

  async #publish(blocks: readonly Promise<EncodedBlock>[], signal: AbortSignal | undefined): Promise<void> {
    const encoded = await Promise.all(blocks);
    let { chunks, rows } = encodePack(encoded);
    // These very bytes lie in a pack that a collection is about to remove: here they get another name (condemned.ts).
    if (this.#objects.isCondemnedPack(rows.packId)) ({ chunks, rows } = encodePack([...encoded, saltBlock()]));
    const index = encodeIndex(rows);
    const created = await this.#blobs.put(packKey(rows.packId), chunks, { signal });
    // A pack of that name that is already there holds these very bytes, unless it was damaged since.
    if (!created && !(await this.#objects.isPackSound(rows.packId, { signal }))) {
      await this.#blobs.delete(packKey(rows.packId), { signal });
      await this.#blobs.put(packKey(rows.packId), chunks, { signal });
    }
    await this.#blobs.put(indexKey(rows.packId), [index], { signal });
    this.#objects.addPack(rows);
    this.#bytesStored += rows.packBytes + index.length;
  }
}
