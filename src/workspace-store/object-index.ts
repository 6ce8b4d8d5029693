/**
 * The index of packs in memory: which object lies where. It mirrors the index blobs of the store and knows nothing of I/O.
 *
 * An object may lie in several packs (two captures stored it at once); the spare places are kept, because a damaged copy
 * must not hide a good one.
 */
import type { PackRows } from "./pack-codec.js";
import { blockObjectsMax } from "./pack-codec.js";
import type { ObjectId } from "./object-ids.js";

export interface StoredBlock {
  /** Its number in this index; grows in the order packs were added, and blocks of a pack are consecutive. */
  readonly ordinal: number;
  readonly packId: string;
  readonly codec: number;
  readonly offset: number;
  readonly storedLength: number;
  readonly rawLength: number;
  /** Where each object starts in the raw bytes, and where the last ends. */
  readonly starts: Uint32Array;
}

/** Block and slot in one number: half the memory of an object per row. Orders by block, then by place in it. */
export type Place = number;

export class ObjectIndex {
  readonly #places = new Map<ObjectId, Place>();
  readonly #spares = new Map<ObjectId, Place[]>();
  readonly #blocks = new Map<number, StoredBlock>();
  readonly #packs = new Map<string, { readonly first: number; readonly end: number }>();
  #nextOrdinal = 0;

  get packIds(): IterableIterator<string> {
    return this.#packs.keys();
  }

  hasPack(packId: string): boolean {
    return this.#packs.has(packId);
  }

  has(id: ObjectId): boolean {
    return this.#places.has(id);
  }

  place(id: ObjectId): Place | undefined {
    return this.#places.get(id);
  }

  /** The block of a place and where the object lies in its raw bytes. */
  resolve(place: Place): { readonly block: StoredBlock; readonly start: number; readonly end: number } | undefined {
    const block = this.#blocks.get(Math.floor(place / blockObjectsMax));
    if (block === undefined) return undefined;
    const slot = place % blockObjectsMax;
    return { block, start: block.starts[slot] as number, end: block.starts[slot + 1] as number };
  }

  addPack({ packId, blocks }: PackRows): void {
    if (this.#packs.has(packId)) return;
    const first = this.#nextOrdinal;
    for (const { codec, offset, storedLength, rawLength, ids, lengths } of blocks) {
      const ordinal = this.#nextOrdinal++;
      const starts = new Uint32Array(lengths.length + 1);
      for (let i = 0; i < lengths.length; i++) starts[i + 1] = (starts[i] as number) + (lengths[i] as number);
      this.#blocks.set(ordinal, { ordinal, packId, codec, offset, storedLength, rawLength, starts });
      ids.forEach((id, slot) => {
        this.#addPlace(id, ordinal * blockObjectsMax + slot);
      });
    }
    this.#packs.set(packId, { first, end: this.#nextOrdinal });
  }

  /** Forgets packs that are gone from the store, in one pass over the rows. */
  removePacks(packIds: Iterable<string>): void {
    const gone = new Set<number>();
    for (const packId of packIds) {
      const range = this.#packs.get(packId);
      if (range === undefined) continue;
      this.#packs.delete(packId);
      for (let ordinal = range.first; ordinal < range.end; ordinal++) {
        gone.add(ordinal);
        this.#blocks.delete(ordinal);
      }
    }
    if (gone.size === 0) return;
    const isGone = (place: Place) => gone.has(Math.floor(place / blockObjectsMax));
    for (const [id, spares] of this.#spares) {
      const left = spares.filter((place) => !isGone(place));
      if (left.length === 0) this.#spares.delete(id);
      else this.#spares.set(id, left);
    }
    for (const [id, place] of this.#places) if (isGone(place)) this.drop(id, place);
  }

  /** Forgets one place of an object, found damaged; a spare one takes over. */
  drop(id: ObjectId, place: Place): void {
    if (this.#places.get(id) !== place) return;
    const spares = this.#spares.get(id);
    const next = spares?.shift();
    if (spares?.length === 0) this.#spares.delete(id);
    if (next === undefined) this.#places.delete(id);
    else this.#places.set(id, next);
  }

  #addPlace(id: ObjectId, place: Place): void {
    if (!this.#places.has(id)) this.#places.set(id, place);
    else {
      const spares = this.#spares.get(id);
      if (spares === undefined) this.#spares.set(id, [place]);
      else spares.push(place);
    }
  }
}
