/**
 * Objects by id, read through the index of packs. This file owns refresh, repair and verified reading; `pack-writer.ts` adds.
 *
 * 1. Packs are published before their indexes, so an index without its pack is no proof of anything: only packs that are
 *    listed *after* the index was count. A small pack has no index and is read whole.
 * 2. An index is a function of its pack. A damaged or missing one is made anew from the pack, by whoever meets it; several
 *    doing so at once publish the same bytes.
 * 3. Lists of what a collection is about to remove are read before indexes, and those before packs: so whoever looks after
 *    pinning finds what it relies on condemned or gone, or the collection finds the pin (condemned.ts).
 * 4. No byte leaves `read` unless its digest holds. A damaged copy is forgotten, so that a spare is tried and a later
 *    capture stores the object anew.
 */
import { displayName, isLooprigError, pacer, raceAbort, SnapshotError, StorageError } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { FormatError } from "./byte-codec.js";
import { ByteLru } from "./byte-lru.js";
import { CondemnedLists, mergeCondemned } from "./condemned.js";
import { decodeDelta } from "./delta-codec.js";
import type { Place, StoredBlock } from "./object-index.js";
import { ObjectIndex } from "./object-index.js";
import { objectIdOf } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import {
  bareBytesMax,
  decodeBlock,
  decodeIndex,
  encodeIndex,
  packVersion,
  parsePack,
  salvagePack,
  UnsupportedVersionError,
} from "./pack-codec.js";
import type { PackRows } from "./pack-codec.js";

const indexPrefix = "index/";
const packPrefix = "packs/";
export const indexKey = (packId: string): string => `${indexPrefix}${packId}`;
export const packKey = (packId: string): string => `${packPrefix}${packId}`;

/** Decoded blocks kept for the next object of the same block. */
const blockCacheBytes = 16 * 1024 * 1024;
const loadsAtOnce = 16;
const searchesMax = 8;

export class ObjectStore {
  readonly #blobs: Blobs;
  readonly #index = new ObjectIndex();
  readonly #condemned: CondemnedLists;
  readonly #blocks = new ByteLru<number>(blockCacheBytes);
  readonly #loading = new Map<number, Promise<Buffer>>();
  /** Packs that could not be read: reported by verify, not tried again at every miss. */
  readonly #unusable = new Set<string>();
  /** Packs without an index of which only a part could be told: what else they hold looks as if it were missing. */
  readonly #salvaged = new Set<string>();
  /** Ends when no refresh runs or waits; never rejects. */
  #lastRefresh: Promise<void> = Promise.resolve();
  /** The one that waits for its turn. */
  #nextRefresh: Promise<void> | undefined;
  #losses = 0;
  #orphans = false;
  #loaded = false;

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
    this.#condemned = new CondemnedLists(blobs);
  }

  /** How often packs vanished, objects were condemned, or objects were found damaged. While it stands still, what was present still is. */
  get losses(): number {
    return this.#losses;
  }

  /** Whether the index in memory has it, where no collection is about to remove it. Says nothing before the first `refresh`. */
  has(id: ObjectId): boolean {
    return this.#index.has(id);
  }

  /** The same for the digest that lies in `bytes` at `at`. */
  hasAt(bytes: Uint8Array, at: number): boolean {
    return this.#index.hasAt(bytes, at);
  }

  /** The object itself, or the one it is stored against, if that can be a base for others; undefined when neither can. */
  wholeOf(id: ObjectId): ObjectId | undefined {
    return this.#index.wholeOf(id);
  }

  /** What the stored copies of an object cannot be decoded without. */
  basesOf(id: ObjectId): readonly ObjectId[] {
    return this.#index.basesOf(id);
  }

  /** The digests of all objects that were ever in the index, end to end; valid until the next pack is added. */
  get digests(): Buffer {
    return this.#index.digests;
  }

  /** The packs in the index. */
  get packIds(): readonly string[] {
    return [...this.#index.packIds];
  }

  /** What the store's index says of a pack, made anew from the pack where it must be; undefined when the pack is gone or damaged. */
  async rowsOf(packId: string): Promise<PackRows | undefined> {
    const bytes = await this.#fetch(indexKey(packId));
    return bytes === undefined ? this.#rowsOfBare(packId) : this.#rowsIn(packId, bytes);
  }

  /** Whether there are packs of which not all objects are known, so that what is missing may lie in them. */
  get hasUntoldPacks(): boolean {
    return this.#unusable.size + this.#salvaged.size > 0;
  }

  /** Takes packs out of the index that this process removed from the store itself. */
  forget(packIds: readonly string[]): void {
    this.#losses++;
    this.#index.removePacks(packIds);
  }

  /** Whether a collection is about to remove a pack of this name, or parts of it: nothing may be published under it. */
  isCondemnedPack(packId: string): boolean {
    return this.#index.isCondemnedPack(packId);
  }

  /** What collections are about to remove may be read, but is nothing to rely on (G2). True while there is such a thing. */
  get hasCondemned(): boolean {
    return this.#index.hasCondemned;
  }

  /** The look of whoever has pinned what it relies on. `snapshot.condemned_unreadable` when that cannot be told. */
  async look(options: Abortable = {}): Promise<void> {
    await this.refresh(options);
    this.#condemned.assertReadable();
  }

  /** Sorts objects in the order they are stored in; undefined for those not in the index. */
  place(id: ObjectId): Place | undefined {
    return this.#index.place(id);
  }

  /** Takes in a pack that was just published, in place of what was known of one of that name. */
  addPack(rows: PackRows): void {
    this.#unusable.delete(rows.packId);
    this.#salvaged.delete(rows.packId);
    this.#index.removePacks([rows.packId]);
    this.#index.addPack(rows);
  }

  /** Reads a whole pack and checks it. */
  async isPackSound(packId: string, options: Abortable = {}): Promise<boolean> {
    try {
      return parsePack(await this.#blobs.get(packKey(packId), options)).packId === packId;
    } catch (error) {
      if (error instanceof FormatError || isLooprigError(error, "blob.missing")) return false;
      if (error instanceof UnsupportedVersionError) throw newerFormat(packKey(packId), error);
      throw error;
    }
  }

  /**
   * Brings the index in line with the store: new packs come in, vanished ones go, damaged indexes are made anew. What was
   * published before the call is in it afterwards. Callers that come while one runs share the next one.
   */
  async refresh({ signal }: Abortable = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#nextRefresh === undefined) {
      const next = this.#lastRefresh.then(() => {
        this.#nextRefresh = undefined;
        return this.#refresh();
      });
      this.#nextRefresh = next;
      this.#lastRefresh = next.catch(() => undefined);
    }
    await raceAbort(this.#nextRefresh, signal);
  }

  /** The first refresh; nothing once there was one. */
  async load(options: Abortable = {}): Promise<void> {
    if (!this.#loaded) await this.refresh(options);
  }

  /**
   * Makes the indexes of packs that have none, which a crash or a lost index leaves behind. A pack that another process
   * is just publishing looks the same, and is taken in the same way.
   */
  async adoptOrphans(options: Abortable = {}): Promise<void> {
    const packs = await this.#list(packPrefix, options);
    const orphans = [...packs.keys()].filter((packId) => !this.#index.hasPack(packId) && !this.#unusable.has(packId));
    await eachLimited(orphans, async (packId) => {
      const rows = await this.#rebuild(packId, options);
      if (rows) this.#index.addPack(rows);
    });
  }

  /** Whether the last refresh saw a pack without an index. */
  get hasOrphans(): boolean {
    return this.#orphans;
  }

  /** Looks an object up, in the store itself if memory does not know it. */
  async find(id: ObjectId, options: Abortable = {}): Promise<boolean> {
    if (this.#index.has(id)) return true;
    await this.refresh(options);
    if (this.#index.has(id)) return true;
    await this.adoptOrphans(options);
    return this.#index.has(id);
  }

  /** The verified bytes of an object. Rejects with `snapshot.object_missing` or `snapshot.object_damaged`. */
  async read(id: ObjectId, options: Abortable & { readonly path?: WorkspacePath | undefined } = {}): Promise<Buffer> {
    let damaged = false;
    // Collections may write its pack anew while it is looked for, and that one as well.
    for (let searches = 0; ;) {
      options.signal?.throwIfAborted();
      const place = this.#index.place(id);
      if (place === undefined) {
        if (searches++ < searchesMax && (await this.find(id, options))) continue;
        throw damaged ? objectDamaged(id, options.path) : objectMissing(id, options.path);
      }
      const bytes = await this.#readAt(place, options);
      if (bytes !== undefined && objectIdOf(bytes) === id) return bytes;
      damaged ||= bytes !== undefined || !(await this.#packIsGone(place, options));
      this.#losses++;
      this.#index.drop(id, place);
    }
  }

  /** Starts loading the block of an object that will be read soon. */
  prefetch(id: ObjectId): void {
    const place = this.#index.place(id);
    // Whoever reads it meets the failure.
    if (place !== undefined) this.#readAt(place, {}).catch(() => undefined);
  }

  /** The block an object lies in and where in its raw bytes; undefined for those not in the index. */
  locate(id: ObjectId): ReturnType<ObjectIndex["resolve"]> {
    const place = this.#index.place(id);
    return place === undefined ? undefined : this.#index.resolve(place);
  }

  /** Bytes of a pack as they lie there, unverified; undefined when they cannot be read, which `read` then explains. */
  async readStored(packId: string, offset: number, length: number): Promise<Uint8Array | undefined> {
    try {
      const bytes = await this.#blobs.get(packKey(packId), { offset, length });
      return bytes.length === length ? bytes : undefined;
    } catch {
      return undefined;
    }
  }

  async #refresh(): Promise<void> {
    // Only packs known by now can be missed in the listings: one that is published meanwhile may have come too late for them.
    const known = [...this.#index.packIds];
    if (this.#index.condemn(mergeCondemned((await this.#condemned.list()).values()))) this.#losses++;
    const indexes = await this.#list(indexPrefix);
    const packs = await this.#list(packPrefix);
    for (const untold of [this.#unusable, this.#salvaged]) {
      for (const packId of untold) if (!packs.has(packId)) untold.delete(packId);
    }
    const isUsable = (packId: string): boolean => indexes.has(packId) || (packs.get(packId) ?? 0) <= bareBytesMax;
    this.#orphans = [...packs.keys()].some((packId) => !isUsable(packId) && !this.#unusable.has(packId));
    const gone = known.filter((packId) => !packs.has(packId) || !isUsable(packId));
    if (gone.length > 0) {
      this.#losses++;
      this.#index.removePacks(gone);
    }
    const fresh = [...packs.keys()].filter(
      (packId) => isUsable(packId) && !this.#index.hasPack(packId) && !this.#unusable.has(packId),
    );
    const pace = pacer(undefined);
    for (let at = 0; at < fresh.length; at += loadsAtOnce) {
      const some = fresh.slice(at, at + loadsAtOnce);
      const loaded = new Map<string, Uint8Array>();
      await eachLimited(some, async (packId) => {
        const bytes = await this.#fetch(indexes.has(packId) ? indexKey(packId) : packKey(packId));
        if (bytes) loaded.set(packId, bytes);
      });
      // One after the other, so that the event loop runs in between and places do not depend on which answer came first.
      for (const packId of some) {
        const bytes = loaded.get(packId);
        const rows =
          bytes && (indexes.has(packId) ? await this.#rowsIn(packId, bytes) : this.#rowsInBare(packId, bytes));
        if (rows) this.#index.addPack(rows);
        await pace();
      }
    }
    this.#loaded = true;
  }

  /** Ids and sizes. */
  async #list(prefix: string, options: Abortable = {}): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for await (const { key, size } of this.#blobs.list(prefix, options)) {
      const id = key.slice(prefix.length);
      if (/^[0-9a-f]{64}$/.test(id)) found.set(id, size);
    }
    return found;
  }

  async #fetch(key: string): Promise<Uint8Array | undefined> {
    try {
      return await this.#blobs.get(key);
    } catch (error) {
      // Removed since it was listed, which is as if it had been removed before.
      if (isLooprigError(error, "blob.missing")) return undefined;
      throw error;
    }
  }

  /** What an index says, or where it is damaged the pack itself. */
  async #rowsIn(packId: string, bytes: Uint8Array): Promise<PackRows | undefined> {
    try {
      const rows = decodeIndex(bytes);
      if (rows.packId === packId) return rows;
    } catch (error) {
      if (error instanceof UnsupportedVersionError) throw newerFormat(indexKey(packId), error);
      if (!(error instanceof FormatError)) throw error;
    }
    await this.#blobs.delete(indexKey(packId));
    return this.#rebuild(packId, {});
  }

  async #rowsOfBare(packId: string): Promise<PackRows | undefined> {
    const bytes = await this.#fetch(packKey(packId));
    return bytes && this.#rowsInBare(packId, bytes);
  }

  /** What a pack says that has no index. */
  #rowsInBare(packId: string, bytes: Uint8Array): PackRows | undefined {
    try {
      const rows = parsePack(bytes);
      if (rows.packId === packId) return rows;
    } catch (error) {
      if (error instanceof UnsupportedVersionError) throw newerFormat(packKey(packId), error);
      if (!(error instanceof FormatError)) throw error;
    }
    // An index would lead to the sound objects of a damaged pack; what is left of its tables does as well.
    const rows = salvagePack(packId, bytes);
    if (rows.blocks.length > 0) {
      this.#salvaged.add(packId);
      return rows;
    }
    this.#unusable.add(packId);
    return undefined;
  }

  async #rebuild(packId: string, options: Abortable): Promise<PackRows | undefined> {
    try {
      const rows = parsePack(await this.#blobs.get(packKey(packId), options));
      if (rows.packId !== packId) throw new FormatError("is another pack than its name says");
      if (rows.packBytes > bareBytesMax) await this.#publishIndex(rows, options);
      return rows;
    } catch (error) {
      if (error instanceof UnsupportedVersionError) throw newerFormat(packKey(packId), error);
      if (isLooprigError(error, "blob.missing")) return undefined;
      if (!(error instanceof FormatError)) throw error;
      this.#unusable.add(packId);
      return undefined;
    }
  }

  /** Reading must not fail where nothing can be written: the index then serves this value alone, and is no proof to captures. */
  async #publishIndex(rows: PackRows, options: Abortable): Promise<void> {
    try {
      await this.#blobs.put(indexKey(rows.packId), [encodeIndex(rows)], options);
    } catch (error) {
      if (!isLooprigError(error, "storage.full", "storage.failed", "storage.reserve")) throw error;
    }
  }

  /** The unverified bytes at a place; undefined when its block cannot be read or decoded. */
  async #readAt(place: Place, options: Abortable): Promise<Buffer | undefined> {
    const found = this.#index.resolve(place);
    if (found === undefined) return undefined;
    const { block, start, end } = found;
    const cached = this.#blocks.get(block.ordinal);
    if (cached) return cached.subarray(start, end);
    let loading = this.#loading.get(block.ordinal);
    if (loading === undefined) {
      // Shared by whoever reads the block meanwhile, so no one's abort may end it.
      loading = this.#blobs
        .get(packKey(block.packId), { offset: block.offset, length: block.storedLength })
        .then((stored) => this.#decode(block, stored))
        .then((raw) => {
          this.#blocks.set(block.ordinal, raw);
          return raw;
        })
        .finally(() => this.#loading.delete(block.ordinal));
      this.#loading.set(block.ordinal, loading);
    }
    try {
      const raw = await loading;
      options.signal?.throwIfAborted();
      return raw.subarray(start, end);
    } catch (error) {
      if (error instanceof FormatError || isLooprigError(error, "blob.missing")) return undefined;
      throw error;
    }
  }

  async #decode(block: StoredBlock, stored: Uint8Array): Promise<Buffer> {
    const { codec, rawLength, differing } = block;
    if (differing === undefined) return decodeBlock(codec, stored, rawLength);
    const bases = await Promise.all(differing.bases.map((base) => this.readWhole(base)));
    return decodeDelta({ codec, rawLength, ...differing }, stored, bases);
  }

  /** The verified bytes of an object from a block without bases, so that no damage can lead in a circle. Throws `FormatError`. */
  async readWhole(id: ObjectId): Promise<Buffer> {
    for (let searches = 0; searches < searchesMax; searches++) {
      for (const place of this.#index.wholePlaces(id)) {
        const bytes = await this.#readAt(place, {});
        if (bytes !== undefined && objectIdOf(bytes) === id) return bytes;
        this.#losses++;
        this.#index.drop(id, place);
      }
      await this.refresh();
    }
    throw new FormatError(`its base ${id.slice(0, 12)} cannot be read`);
  }

  async #packIsGone(place: Place, options: Abortable): Promise<boolean> {
    const block = this.#index.resolve(place)?.block;
    return block === undefined || (await this.#blobs.stat(packKey(block.packId), options)) === undefined;
  }
}

/** For bytes that are there but not what their id or format says. */
export function objectDamaged(id: ObjectId, path: WorkspacePath | undefined, cause?: unknown): SnapshotError {
  return new SnapshotError(
    "snapshot.object_damaged",
    `Cannot read ${subject(id, path)}: its bytes in the store are damaged; nothing was restored from them`,
    { object: id, ...(path === undefined ? {} : { path }) },
    { cause },
  );
}

/** For bytes that are not there. */
export function objectMissing(id: ObjectId, path: WorkspacePath | undefined): SnapshotError {
  return new SnapshotError(
    "snapshot.object_missing",
    `Cannot read ${subject(id, path)}: it is not in the store; nothing was changed`,
    { object: id, ...(path === undefined ? {} : { path }) },
  );
}

const subject = (id: ObjectId, path: WorkspacePath | undefined): string =>
  path === undefined ? `object ${id.slice(0, 12)}` : `the content of "${displayName(path)}"`;

function newerFormat(key: string, error: UnsupportedVersionError): StorageError {
  return new StorageError(
    "storage.unsupported_version",
    `Cannot read "${key}" of the store: it has version ${error.version} and this looprig reads up to ${packVersion}; use a newer one`,
    { dir: key, found: error.version, supported: packVersion },
    { cause: error },
  );
}

/** Runs `work` for all items, at most `loadsAtOnce` at a time; rejects with the first failure once all have ended. */
async function eachLimited<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const workers = Array.from({ length: Math.min(loadsAtOnce, items.length) }, async () => {
    while (next < items.length) await work(items[next++] as T);
  });
  const failed = (await Promise.allSettled(workers)).find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}
