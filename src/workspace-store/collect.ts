/**
 * Collection: gives back the space of what no pin reaches (G2), beside captures and readers of any process.
 * docs/formats/snapshots.md has the order of its steps and why nothing pinned goes; `collect-plan.ts` decides.
 *
 * 1. The lease is held from before the first look to the end, and asserted right before each deletion.
 * 2. A new pack and its index are durable before an old pack goes; a copy that is kept elsewhere is checked there first.
 * 3. A dry run does the same, packs made in memory, and publishes and deletes nothing.
 */
import { isLooprigError, LooprigError, SnapshotError } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { Blobs, Lease, Leaser, StorageDisk } from "../storage/index.js";
import { FormatError } from "./byte-codec.js";
import { fates, planCollection } from "./collect-plan.js";
import type { CollectPlan, JudgedPack } from "./collect-plan.js";
import { CondemnedLists, condemnedKey, encodeCondemned } from "./condemned.js";
import type { CondemnedList } from "./condemned.js";
import type { CollectOptions, CollectReport } from "./contracts.js";
import { DigestTable } from "./digest-table.js";
import { takeInventory } from "./inventory.js";
import type { Inventory } from "./inventory.js";
import type { Condemned } from "./object-index.js";
import { indexKey, packKey } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { objectIdOf } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { bareBytesMax, encodeIndex, encodePack, saltBlock } from "./pack-codec.js";
import type { PinnedRefs, Pins } from "./pins.js";
import { addBases, placeless, Reachability } from "./reachability.js";
import { DamagedPackError, readBlock, Repacker, stayingBytesMax } from "./repack.js";

export interface CollectEnvironment {
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly pins: Pins;
  readonly leaser: Leaser;
  readonly disk: StorageDisk | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export const collectionLease = "workspace-collection";

const graceMsDefault = 24 * 60 * 60 * 1000;
/** A full pack, the block it was closed with, and its index. */
const extraBytesMax = 20 * 1024 * 1024;
/** New packs are not made larger than this, as those of captures are not. */
const packBytesMax = 16 * 1024 * 1024;
/** A list of more than this is several, so that on a nearly full disk some of it finds room. */
const listObjectsMax = 8192;
const progressEveryMs = 100;

export async function collect(environment: CollectEnvironment, options: CollectOptions): Promise<CollectReport> {
  const { graceMs = graceMsDefault, fill, maxExtraBytes = extraBytesMax } = options;
  checkNumber("graceMs", graceMs, Number.MAX_SAFE_INTEGER);
  checkNumber("fill", fill ?? 0, 1);
  checkNumber("maxExtraBytes", maxExtraBytes, Number.MAX_SAFE_INTEGER);
  const settings = { ...options, graceMs, maxExtraBytes: Math.min(maxExtraBytes, extraBytesMax) };
  if (options.dryRun === true) return new Collection(environment, settings, undefined).run();
  const work = async (): Promise<CollectReport> => {
    const { leaser, disk } = environment;
    await using lease = await leaser.acquire(collectionLease, options.claim, { signal: options.signal });
    await disk?.removeStrays();
    const stops = [lease.lost, ...(options.signal === undefined ? [] : [options.signal])];
    return await new Collection(environment, { ...settings, signal: AbortSignal.any(stops) }, lease).run();
  };
  return environment.disk === undefined ? work() : environment.disk.withReserve(work);
}

function checkNumber(field: string, value: number, most: number): void {
  if (typeof value === "number" && value >= 0 && value <= most) return;
  throw new LooprigError(
    "option.invalid",
    `Cannot collect: ${field} is ${String(value)}, wanted a number from 0 to ${most}`,
    {
      ...{ field, given: String(value), wanted: `a number from 0 to ${most}` },
    },
  );
}

interface Settings extends CollectOptions {
  readonly graceMs: number;
  readonly maxExtraBytes: number;
}
type Lists = ReadonlyMap<string, CondemnedList>;

/** What pins reach and what lies in the store, as of one moment. */
interface Marked {
  readonly markedAt: number;
  readonly ids: DigestTable;
  readonly liveEnd: number;
  readonly inventory: Inventory;
}

class Collection {
  readonly #environment: CollectEnvironment;
  readonly #settings: Settings;
  readonly #options: Abortable;
  /** Absent in a dry run. */
  readonly #lease: Lease | undefined;
  readonly #condemned: CondemnedLists;
  readonly #gone = new Set<string>();
  /** Live objects whose kept copy was read and found sound, by number. */
  #sound = new Uint8Array(0);
  #keepers: ReadonlyMap<number, JudgedPack> | undefined;
  readonly #damaged: CollectReport["damaged"][number][] = [];
  #reached = 0;
  #freedBytes = 0;
  #freedObjects = 0;
  #repacked = { packs: 0, bytes: 0 };
  #extraBytes = 0;
  #stopped: "full" | undefined;
  #reportedAt = 0;

  constructor(environment: CollectEnvironment, settings: Settings, lease: Lease | undefined) {
    this.#environment = environment;
    this.#settings = settings;
    this.#options = { signal: settings.signal };
    this.#lease = lease;
    this.#condemned = new CondemnedLists(environment.blobs);
  }

  async run(): Promise<CollectReport> {
    const { graceMs } = this.#settings;
    let lists = await this.#readLists();
    let marked = await this.#mark();
    let plan = this.#plan(marked, lists);
    // A collection would have been refused by now: a dry run says why, and that nothing would go.
    if (this.#damaged.some(({ problem }) => problem === "damaged"))
      return this.#report({ ...plan, condemn: new Map() }, lists);
    if (graceMs === 0 && plan.condemn.size > 0) {
      lists = await this.#condemn(plan.condemn, marked.markedAt, lists);
      // A dry run condemned nothing, so no capture could have heard of it and pinned something since.
      if (this.#lease !== undefined) marked = await this.#mark();
      plan = this.#plan(marked, lists);
    }
    await this.#sweep(plan, marked);
    if (graceMs > 0) lists = await this.#condemn(plan.condemn, marked.markedAt, lists);
    lists = await this.#removeLists(lists, plan, marked);
    return this.#report(plan, lists);
  }

  // ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #readLists(): Promise<Lists> {
    const lists = new Map(await this.#condemned.list(this.#options));
    for (const [key, error] of this.#condemned.unreadable) {
      if (error instanceof FormatError) await this.#delete(key);
      // One of a later version may condemn what this run would count on.
      else this.#condemned.assertReadable();
    }
    const now = this.#environment.now();
    for (const [key, list] of [...lists]) {
      if (list.markedAt <= now) continue;
      // The clock was wrong. Taken for as old as now, it is ripe one grace from now.
      lists.delete(key);
      for (const [moved, of] of await this.#condemn(list.copies, now, new Map())) lists.set(moved, of);
      await this.#delete(key);
    }
    return lists;
  }

  /** Publishes what is condemned, as far as there is room for it, and returns all lists. */
  async #condemn(copies: Condemned, markedAt: number, known: Lists): Promise<Lists> {
    const lists = new Map(known);
    for (const part of inParts(copies)) {
      const list = { markedAt, copies: part };
      const bytes = encodeCondemned(list);
      const key = condemnedKey(markedAt, bytes);
      try {
        if (this.#lease !== undefined) await this.#environment.blobs.put(key, [bytes], this.#options);
      } catch (error) {
        if (!isLooprigError(error, "storage.full")) throw error;
        this.#stopped = "full";
        break;
      }
      lists.set(key, list);
    }
    return lists;
  }

  /** Lists go once they say nothing of what is there, or said all they had to say. */
  async #removeLists(lists: Lists, { packs }: CollectPlan, { ids, liveEnd }: Marked): Promise<Lists> {
    const left = new Map(lists);
    const there = new Map(packs.filter(({ packId }) => !this.#gone.has(packId)).map((pack) => [pack.packId, pack]));
    const ripeUntil = this.#ripeUntil();
    for (const [key, { markedAt, copies }] of lists) {
      const isPending = [...copies].some(([packId, objects]) => {
        const pack = there.get(packId);
        if (pack === undefined || (markedAt <= ripeUntil && pack.fate === "stays")) return false;
        return [...objects].some((id) => !isLive(ids, liveEnd, id));
      });
      if (isPending) continue;
      await this.#delete(key);
      left.delete(key);
    }
    return left;
  }

  // ── mark ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #mark(): Promise<Marked> {
    const { blobs, objects, pins, now } = this.#environment;
    const markedAt = now();
    // Twice: a ref that is handed from one pin to another meanwhile is in one of the two listings.
    const pinned = [...(await pins.list(this.#options)), ...(await pins.list(this.#options))];
    await objects.refresh(this.#options);
    await objects.adoptOrphans(this.#options);
    const ids = new DigestTable();
    const onReached = (count: number): void => {
      this.#reached = count;
      this.#tell("mark");
    };
    const reached = new Reachability(objects, ids, { ...this.#options, onReached });
    await reached.reach(pinned);
    // In a damaged pack without an index one flipped bit gives an object another id.
    const isUntold = objects.hasUntoldPacks;
    const found = reached.damaged.map((each) => (isUntold ? { ...each, problem: "damaged" as const } : each));
    this.#assertReadable(found, pinned);
    addBases(objects, ids);
    const liveEnd = ids.size;
    if (isUntold && this.#damaged.length === 0) this.#refuseUntold(await placeless(objects, ids, this.#options));
    return { markedAt, ids, liveEnd, inventory: await takeInventory(blobs, objects, ids, this.#options) };
  }

  #assertReadable(found: CollectReport["damaged"], pinned: readonly PinnedRefs[]): void {
    this.#damaged.length = 0;
    this.#damaged.push(...found);
    const damaged = found.flatMap(({ object, path, problem, owner, id }) =>
      problem === "damaged" && owner !== undefined && id !== undefined
        ? [{ object, ...(path === undefined ? {} : { path }), owner, id }]
        : [],
    );
    const [first] = damaged;
    if (first === undefined || this.#lease === undefined) return;
    throw new SnapshotError(
      "snapshot.not_collected",
      `Cannot collect: ${damaged.length} directories of the ${pinned.length} pins, first of "${first.id}" of "${first.owner}", are damaged, ` +
        "and what is below them cannot be told from garbage; unpin what they belong to, or restore the store from a copy",
      { damaged },
    );
  }

  #refuseUntold(untold: readonly ObjectId[]): void {
    const [first] = untold;
    if (first === undefined) return;
    this.#damaged.push(...untold.map((object) => ({ object, problem: "damaged" as const })));
    if (this.#lease === undefined) return;
    throw new SnapshotError(
      "snapshot.not_collected",
      `Cannot collect: a pack is damaged, and ${untold.length} objects that pins need, ${first.slice(0, 12)} first, may lie in it; ` +
        "unpin what verify names, or restore the store from a copy",
      { damaged: [] },
    );
  }

  #plan({ ids, liveEnd, inventory }: Marked, lists: Lists): CollectPlan {
    const { fill } = this.#settings;
    return planCollection({
      ...{ packs: inventory.packs, ids, liveEnd, fill },
      ...{ lists: lists.values(), ripeUntil: this.#ripeUntil() },
    });
  }

  #ripeUntil(): number {
    return this.#environment.now() - this.#settings.graceMs;
  }

  // ── sweep ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #sweep(plan: CollectPlan, marked: Marked): Promise<void> {
    this.#sound = new Uint8Array(marked.liveEnd);
    this.#keepers = undefined;
    for (const { key, bytes } of marked.inventory.strayIndexes) {
      await this.#delete(key);
      this.#freedBytes += bytes;
    }
    const going = plan.packs.filter(({ fate }) => fate === "goes");
    for (const pack of going) {
      if (await this.#isKeptElsewhere(pack, plan, marked)) await this.#remove(pack);
    }
    this.#forget(going);
    for (const group of this.#groups(plan)) {
      if (!(await this.#rewrite(group, plan, marked))) break;
    }
  }

  /** Packs that are written anew together, those first of which least stays. */
  #groups({ packs }: CollectPlan): readonly (readonly JudgedPack[])[] {
    const bytesMax = Math.min(packBytesMax, this.#settings.maxExtraBytes);
    const sized = packs
      .filter(({ fate }) => fate === "rewritten")
      .map((pack) => ({ pack, bytes: stayingBytesMax(pack) }))
      .sort((a, b) => a.bytes - b.bytes);
    const groups: JudgedPack[][] = [];
    let room = 0;
    for (const { pack, bytes } of sized) {
      if (bytes > this.#settings.maxExtraBytes) {
        this.#stopped = "full";
        continue;
      }
      if (bytes > room) {
        groups.push([]);
        room = bytesMax;
      }
      groups.at(-1)?.push(pack);
      room -= bytes;
    }
    // A single one of which everything stays would only be written over again.
    return groups.filter((group) => group.length > 1 || group.some(({ fates: fateOf }) => fateOf.some(mayGo)));
  }

  /** Whether to go on. */
  async #rewrite(group: readonly JudgedPack[], plan: CollectPlan, marked: Marked): Promise<boolean> {
    const { blobs, objects } = this.#environment;
    const repacker = new Repacker(blobs, objects, marked.ids, this.#options);
    const done: JudgedPack[] = [];
    for (const pack of group) {
      try {
        await repacker.add(pack, (number) => (this.#sound[number] = 1));
        done.push(pack);
      } catch (error) {
        if (!(error instanceof DamagedPackError)) throw error;
        this.#damaged.push({ object: error.object, problem: "damaged" });
      }
      this.#tell("sweep");
    }
    const blocks = repacker.finish();
    if (blocks.length === 0) return true;
    let { chunks, rows } = encodePack(blocks);
    if (objects.isCondemnedPack(rows.packId) || plan.packs.some(({ packId }) => packId === rows.packId))
      ({ chunks, rows } = encodePack([...blocks, saltBlock()]));
    const index = rows.packBytes > bareBytesMax ? encodeIndex(rows) : undefined;
    const bytes = rows.packBytes + (index?.length ?? 0);
    if (this.#lease !== undefined) {
      let created = false;
      try {
        created = await blobs.put(packKey(rows.packId), chunks, this.#options);
        if (index !== undefined) await blobs.put(indexKey(rows.packId), [index], this.#options);
      } catch (error) {
        if (!isLooprigError(error, "storage.full")) throw error;
        if (created) await this.#delete(packKey(rows.packId));
        this.#stopped = "full";
        return false;
      }
      objects.addPack(rows);
    }
    this.#extraBytes = Math.max(this.#extraBytes, bytes);
    this.#repacked.packs += done.length;
    this.#repacked.bytes += bytes;
    this.#freedBytes -= bytes;
    for (const pack of done) if (await this.#isKeptElsewhere(pack, plan, marked)) await this.#remove(pack);
    this.#forget(done);
    return true;
  }

  /** Takes what is gone out of the index in memory, several at once since that goes through all its rows. */
  #forget(packs: readonly JudgedPack[]): void {
    const gone = packs.map(({ packId }) => packId).filter((packId) => this.#gone.has(packId));
    if (this.#lease !== undefined && gone.length > 0) this.#environment.objects.forget(gone);
  }

  async #remove(pack: JudgedPack): Promise<void> {
    // The pack first: a pack without an index would be taken in by whoever misses an object of it.
    await this.#delete(packKey(pack.packId));
    await this.#delete(indexKey(pack.packId));
    this.#gone.add(pack.packId);
    this.#freedBytes += pack.bytes;
    for (const fate of pack.fates) if (fate === fates.ripe) this.#freedObjects++;
    this.#tell("sweep");
  }

  async #delete(key: string): Promise<void> {
    if (this.#lease === undefined) return;
    this.#options.signal?.throwIfAborted();
    this.#lease.assertHeld();
    await this.#environment.blobs.delete(key, this.#options);
  }

  /** Whether each live object of which this pack has a spare copy has a sound one where it is kept. */
  async #isKeptElsewhere(pack: JudgedPack, plan: CollectPlan, { ids, liveEnd }: Marked): Promise<boolean> {
    if (this.#lease === undefined) return true;
    const { blobs, objects } = this.#environment;
    const wanted = new Map<JudgedPack, Set<number>>();
    for (let i = 0; i < pack.numbers.length; i++) {
      const number = pack.numbers[i] as number;
      if (pack.fates[i] !== fates.spare || this.#sound[number] === 1) continue;
      this.#keepers ??= keepersOf(plan, liveEnd);
      const keeper = this.#keepers.get(number);
      if (keeper === undefined || this.#gone.has(keeper.packId)) return false;
      const numbers = wanted.get(keeper) ?? new Set();
      wanted.set(keeper, numbers.add(number));
    }
    for (const [keeper, numbers] of wanted) {
      for (const block of keeper.blocks) {
        if (!keeper.numbers.subarray(block.first, block.end).some((number) => numbers.has(number))) continue;
        try {
          const { raw } = await readBlock(blobs, objects, ids, keeper, block, this.#options);
          for (let i = block.first, at = 0; i < block.end; i++) {
            const bytes = raw.subarray(at, (at += keeper.lengths[i] as number));
            const number = keeper.numbers[i] as number;
            if (keeper.fates[i] === fates.kept && objectIdOf(bytes) === ids.hex(number)) this.#sound[number] = 1;
          }
        } catch (error) {
          if (!(error instanceof FormatError)) throw error;
        }
      }
      for (const number of numbers) {
        if (this.#sound[number] === 1) continue;
        this.#damaged.push({ object: ids.hex(number), problem: "damaged" });
        return false;
      }
    }
    return true;
  }

  // ── telling ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #report(plan: CollectPlan, lists: Lists): CollectReport {
    const ripeUntil = this.#ripeUntil();
    const waitingSince = [...lists.values()].map(({ markedAt }) => markedAt).filter((at) => at > ripeUntil);
    const condemned = this.#settings.graceMs > 0 ? bytesOf(plan) : { objects: 0, bytes: 0 };
    return {
      dryRun: this.#lease === undefined,
      live: rounded(plan.live),
      garbage: rounded(plan.garbage),
      freed: { objects: this.#freedObjects, bytes: this.#freedBytes, packs: this.#gone.size },
      waiting: {
        ...rounded({
          objects: plan.waiting.objects + condemned.objects,
          bytes: plan.waiting.bytes + condemned.bytes,
        }),
        until: waitingSince.length === 0 ? undefined : new Date(Math.min(...waitingSince) + this.#settings.graceMs),
      },
      repacked: this.#repacked,
      extraBytes: this.#extraBytes,
      damaged: this.#damaged,
      stopped: this.#stopped,
    };
  }

  #tell(stage: "mark" | "sweep"): void {
    const { onProgress } = this.#settings;
    const now = performance.now();
    if (onProgress === undefined || now - this.#reportedAt < progressEveryMs) return;
    this.#reportedAt = now;
    onProgress({ stage, objects: this.#reached, freedBytes: Math.max(0, this.#freedBytes) });
  }
}

const mayGo = (fate: number): boolean => fate === fates.spare || fate === fates.ripe;

const rounded = ({ objects, bytes }: { readonly objects: number; readonly bytes: number }) => ({
  objects,
  bytes: Math.round(bytes),
});

function isLive(ids: DigestTable, liveEnd: number, id: ObjectId): boolean {
  const number = ids.find(id);
  return number >= 0 && number < liveEnd;
}

/** By live object: the pack that keeps it. */
function keepersOf({ packs }: CollectPlan, liveEnd: number): ReadonlyMap<number, JudgedPack> {
  const keepers = new Map<number, JudgedPack>();
  for (const pack of packs) {
    for (let i = 0; i < pack.numbers.length; i++) {
      const number = pack.numbers[i] as number;
      if (number < liveEnd && pack.fates[i] === fates.kept) keepers.set(number, pack);
    }
  }
  return keepers;
}

/** What `plan.condemn` takes in the store. */
function bytesOf({ packs, condemn }: CollectPlan): { objects: number; bytes: number } {
  let objects = 0;
  let bytes = 0;
  for (const pack of packs) {
    const named = condemn.get(pack.packId);
    if (named === undefined) continue;
    objects += named.size;
    bytes += pack.looseBytes;
  }
  return { objects, bytes };
}

function* inParts(copies: Condemned): Generator<Condemned> {
  let part = new Map<string, ReadonlySet<ObjectId>>();
  let count = 0;
  for (const [packId, ids] of copies) {
    part.set(packId, ids);
    count += ids.size;
    if (count < listObjectsMax) continue;
    yield part;
    part = new Map();
    count = 0;
  }
  if (part.size > 0) yield part;
}
