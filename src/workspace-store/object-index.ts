/**
 * The index of packs in memory: which object lies where. It mirrors the index blobs of the store and knows nothing of I/O.
 *
 * 1. An object may lie in several packs (two captures stored it at once); the spare places are kept, because a damaged copy
 *    must not hide a good one.
 * 2. A place in a block of differences counts as long as its bases have places of their own in blocks without bases.
 * 3. A place that a collection has condemned may be read as long as it is there, but is no place to rely on: `has` does not
 *    count it, so a capture stores the object anew (G2).
 */
import { DigestTable } from "./digest-table.js";
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
  /** Of a block of differences: its objects, and those that are needed to decode it, one for each. */
  readonly differing:
    | { readonly ids: readonly ObjectId[]; readonly lengths: readonly number[]; readonly bases: readonly ObjectId[] }
    | undefined;
}

/** Block and slot in one number: half the memory of an object per row. Orders by block, then by place in it. */
export type Place = number;

/** What a collection is about to remove: objects by the pack they lie in. */
export type Condemned = ReadonlyMap<string, ReadonlySet<ObjectId>>;

const nowhere = -1;

export class ObjectIndex {
  readonly #ids = new DigestTable();
  /** By the number of the id; `nowhere` once its last place is dropped. */
  #places = new Float64Array(1024);
  readonly #spares = new Map<number, Place[]>();
  readonly #blocks = new Map<number, StoredBlock>();
  readonly #packs = new Map<string, { readonly first: number; readonly end: number; readonly bytes: number }>();
  #condemned: Condemned = new Map();
  #nextOrdinal = 0;
  /** Blocks of differences there are. */
  #deltas = 0;

  get packIds(): IterableIterator<string> {
    return this.#packs.keys();
  }

  /** The digests of all objects that were ever in it, end to end. */
  get digests(): Buffer {
    return this.#ids.bytes;
  }

  hasPack(packId: string): boolean {
    return this.#packs.has(packId);
  }

  /** Whether the object may be relied on. */
  has(id: ObjectId): boolean {
    return this.#isReliable(this.#ids.find(id));
  }

  /** The same for the digest that lies in `bytes` at `at`. */
  hasAt(bytes: Uint8Array, at: number): boolean {
    return this.#isReliable(this.#ids.findAt(bytes, at));
  }

  /** The object itself, or the base it is stored against, if that may be relied on and needs no base itself. */
  wholeOf(id: ObjectId): ObjectId | undefined {
    const number = this.#ids.find(id);
    if (this.#isWhole(number)) return id;
    const place = number < 0 ? nowhere : (this.#places[number] as number);
    const base = place === nowhere ? undefined : this.#blockOf(place)?.differing?.bases[place % blockObjectsMax];
    return base !== undefined && this.#isWhole(this.#ids.find(base)) ? base : undefined;
  }

  /** Where the object lies in blocks without bases. */
  wholePlaces(id: ObjectId): readonly Place[] {
    const number = this.#ids.find(id);
    if (number < 0) return [];
    return this.#placesOf(number).filter((place) => this.#blockOf(place)?.differing === undefined);
  }

  /** The bases of every block of differences in which the object lies. */
  basesOf(id: ObjectId): readonly ObjectId[] {
    const number = this.#ids.find(id);
    return number < 0 ? [] : this.#placesOf(number).flatMap((place) => this.#blockOf(place)?.differing?.bases ?? []);
  }

  /** Where to read it, condemned or not. */
  place(id: ObjectId): Place | undefined {
    const number = this.#ids.find(id);
    const place = number < 0 ? nowhere : (this.#places[number] as number);
    return place === nowhere ? undefined : place;
  }

  /** The block of a place and where the object lies in its raw bytes. */
  resolve(place: Place): { readonly block: StoredBlock; readonly start: number; readonly end: number } | undefined {
    const block = this.#blockOf(place);
    if (block === undefined) return undefined;
    const slot = place % blockObjectsMax;
    return { block, start: block.starts[slot] as number, end: block.starts[slot + 1] as number };
  }

  isCondemnedPack(packId: string): boolean {
    return this.#condemned.has(packId);
  }

  get hasCondemned(): boolean {
    return this.#condemned.size > 0;
  }

  /** Replaces what is condemned. Returns whether something is condemned now that was not. */
  condemn(condemned: Condemned): boolean {
    const before = this.#condemned;
    this.#condemned = condemned;
    for (const [packId, ids] of condemned) {
      const known = before.get(packId);
      for (const id of ids) if (!known?.has(id)) return true;
    }
    return false;
  }

  addPack({ packId, packBytes, blocks }: PackRows): void {
    if (this.#packs.has(packId)) return;
    const first = this.#nextOrdinal;
    for (const row of blocks) {
      const { codec, offset, storedLength, rawLength, digests, lengths, bases } = row;
      const ordinal = this.#nextOrdinal++;
      const starts = new Uint32Array(lengths.length + 1);
      for (let i = 0; i < lengths.length; i++) starts[i + 1] = (starts[i] as number) + (lengths[i] as number);
      const differing = bases && { ids: row.ids, lengths: Array.from(lengths), bases };
      if (differing !== undefined) this.#deltas++;
      this.#blocks.set(ordinal, { ordinal, packId, codec, offset, storedLength, rawLength, starts, differing });
      for (let slot = 0; slot < lengths.length; slot++) {
        const known = this.#ids.size;
        const number =
          digests === undefined ? this.#ids.add(row.ids[slot] as ObjectId) : this.#ids.addAt(digests, slot * 32);
        this.#addPlace(number, number === known, ordinal * blockObjectsMax + slot);
      }
    }
    this.#packs.set(packId, { first, end: this.#nextOrdinal, bytes: packBytes });
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
        if (this.#blocks.get(ordinal)?.differing !== undefined) this.#deltas--;
        this.#blocks.delete(ordinal);
      }
    }
    if (gone.size === 0) return;
    const isGone = (place: Place) => gone.has(Math.floor(place / blockObjectsMax));
    for (const [number, spares] of this.#spares) {
      const left = spares.filter((place) => !isGone(place));
      if (left.length === 0) this.#spares.delete(number);
      else this.#spares.set(number, left);
    }
    for (let number = 0; number < this.#ids.size; number++) {
      const place = this.#places[number] as number;
      if (place !== nowhere && isGone(place)) this.#drop(number);
    }
  }

  /** Forgets one place of an object, found damaged; a spare one takes over. */
  drop(id: ObjectId, place: Place): void {
    const number = this.#ids.find(id);
    if (number < 0) return;
    if (this.#places[number] === place) this.#drop(number);
    else {
      const left = this.#spares.get(number)?.filter((spare) => spare !== place) ?? [];
      if (left.length === 0) this.#spares.delete(number);
      else this.#spares.set(number, left);
    }
  }

  #drop(number: number): void {
    const spares = this.#spares.get(number);
    const next = spares?.shift();
    if (spares?.length === 0) this.#spares.delete(number);
    this.#places[number] = next ?? nowhere;
  }

  #addPlace(number: number, isNew: boolean, place: Place): void {
    if (number === this.#places.length) {
      const larger = new Float64Array(this.#places.length * 2);
      larger.set(this.#places);
      this.#places = larger;
    }
    if (isNew || this.#places[number] === nowhere) {
      this.#places[number] = place;
      return;
    }
    const spares = this.#spares.get(number);
    if (spares === undefined) this.#spares.set(number, [place]);
    else spares.push(place);
  }

  #isReliable(number: number): boolean {
    if (number < 0) return false;
    const place = this.#places[number] as number;
    if (place === nowhere) return false;
    // Nearly always that is all there is to ask.
    if (this.#condemned.size === 0 && (this.#deltas === 0 || this.#blockOf(place)?.differing === undefined))
      return true;
    return this.#placesOf(number).some((each) => !this.#isCondemned(number, each) && this.#hasBases(each));
  }

  #hasBases(place: Place): boolean {
    return this.#blockOf(place)?.differing?.bases.every((base) => this.#isWhole(this.#ids.find(base))) ?? true;
  }

  /** Whether there is a place to rely on that needs no bases. */
  #isWhole(number: number): boolean {
    if (number < 0) return false;
    return this.#placesOf(number).some(
      (place) => !this.#isCondemned(number, place) && this.#blockOf(place)?.differing === undefined,
    );
  }

  #placesOf(number: number): readonly Place[] {
    const place = this.#places[number] as number;
    if (place === nowhere) return [];
    const spares = this.#spares.get(number);
    return spares === undefined ? [place] : [place, ...spares];
  }

  #isCondemned(number: number, place: Place): boolean {
    const packId = this.#blockOf(place)?.packId;
    const ids = packId === undefined || this.#condemned.size === 0 ? undefined : this.#condemned.get(packId);
    return ids?.has(this.#ids.hex(number)) ?? false;
  }

  #blockOf(place: Place): StoredBlock | undefined {
    return this.#blocks.get(Math.floor(place / blockObjectsMax));
  }
}
