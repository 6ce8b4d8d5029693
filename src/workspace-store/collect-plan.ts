/**
 * What a collection does with each pack (G2): a pure function of the packs, of what pins reach, and of what was condemned
 * when. docs/formats/snapshots.md has the rules and why they are safe.
 */
import type { CondemnedList } from "./condemned.js";
import type { DigestTable } from "./digest-table.js";
import type { Condemned } from "./object-index.js";
import type { ObjectId } from "./object-ids.js";
import type { PackRows } from "./pack-codec.js";

/** Bytes an object takes besides its content: its rows in the pack and in the index. */
export const rowBytes = 72;
/** Packs of which less than this part is in use are written anew, whatever the rest of the store is like. */
const fillMin = 0.6;
/** So much garbage may stay in packs that are in use, as a part of everything that is in use. */
const garbageLeft = 0.05;
/** Packs below this many bytes are small, */
const smallPackBytes = 1024 * 1024;
/** and when there are more of them than this, they become one. */
const smallPacksMax = 16;

export interface PackBlock {
  readonly codec: number;
  readonly offset: number;
  readonly storedLength: number;
  readonly rawLength: number;
  /** Its objects are the copies of the pack from `first` up to `end`. */
  readonly first: number;
  readonly end: number;
  /** Of a delta block: what it cannot be decoded without. */
  readonly bases: readonly ObjectId[] | undefined;
}

/** A pack as a collection sees it: its objects by their numbers. */
export interface PackCopies {
  readonly packId: string;
  /** With its index. */
  readonly bytes: number;
  readonly blocks: readonly PackBlock[];
  readonly numbers: Int32Array;
  readonly lengths: Uint32Array;
}

/** Takes the objects of a pack into `ids`. */
export function packCopies(ids: DigestTable, { packId, packBytes, blocks }: PackRows, indexBytes: number): PackCopies {
  const count = blocks.reduce((sum, block) => sum + block.ids.length, 0);
  const numbers = new Int32Array(count);
  const lengths = new Uint32Array(count);
  let at = 0;
  const own = blocks.map(({ codec, offset, storedLength, rawLength, ids: objects, lengths: sizes, bases }) => {
    const first = at;
    for (let i = 0; i < objects.length; i++) {
      numbers[at] = ids.add(objects[i] as ObjectId);
      lengths[at++] = sizes[i] as number;
    }
    return { codec, offset, storedLength, rawLength, first, end: at, bases };
  });
  return { packId, bytes: packBytes + indexBytes, blocks: own, numbers, lengths };
}

/** What becomes of one copy of an object. */
export const fates = {
  /** The copy that is kept of a live object. */
  kept: 0,
  /** Another copy of it is kept, so this one may go. */
  spare: 1,
  /** Garbage that was condemned long enough ago, so it may go. */
  ripe: 2,
  /** Garbage that is condemned, and waits. */
  waiting: 3,
  /** Garbage that no list names. */
  loose: 4,
} as const;

export interface JudgedPack extends PackCopies {
  /** By copy: one of `fates`. */
  readonly fates: Uint8Array;
  readonly fate: "stays" | "goes" | "rewritten";
  /** Bytes of its garbage that no list names. */
  readonly looseBytes: number;
}

export interface CollectPlan {
  readonly packs: readonly JudgedPack[];
  /** Garbage that is to be condemned, so that its packs can go or be written anew one day. */
  readonly condemn: Condemned;
  readonly live: { readonly objects: number; readonly bytes: number };
  readonly garbage: { readonly objects: number; readonly bytes: number };
  /** Condemned and not ripe, before `condemn` is carried out. */
  readonly waiting: { readonly objects: number; readonly bytes: number };
}

export interface PlanInput {
  readonly packs: readonly PackCopies[];
  readonly ids: DigestTable;
  /** Numbers below it are live. */
  readonly liveEnd: number;
  readonly lists: Iterable<CondemnedList>;
  /** Lists with a time up to this one are ripe. */
  readonly ripeUntil: number;
  /** Default: what `fillOf` finds. */
  readonly fill: number | undefined;
}

export function planCollection({ packs, ids, liveEnd, lists, ripeUntil, fill: wanted }: PlanInput): CollectPlan {
  const condemned = byPack(lists);
  const counted = packs.map((pack) => {
    const named = condemned.get(pack.packId) ?? [];
    const fateOf = Uint8Array.from(pack.numbers, (number) => {
      if (number < liveEnd) return fates.kept;
      const id = named.length === 0 ? "" : ids.hex(number);
      const of = named.filter(({ objects }) => objects.has(id));
      if (of.length === 0) return fates.loose;
      return of.some(({ markedAt }) => markedAt <= ripeUntil) ? fates.ripe : fates.waiting;
    });
    return { pack, named, fates: fateOf, shares: sharesOf(pack) };
  });

  // A copy that is not condemned is kept rather than one that is; then one in a pack of which most is used.
  const used = (each: (typeof counted)[number]): number =>
    sumWhere(each, (fate) => fate === fates.kept) / Math.max(1, each.pack.bytes);
  const usage = new Map(counted.map((each) => [each, used(each)]));
  const preferred = [...counted].sort(
    (a, b) =>
      a.named.length - b.named.length ||
      (usage.get(b) ?? 0) - (usage.get(a) ?? 0) ||
      b.pack.bytes - a.pack.bytes ||
      (a.pack.packId < b.pack.packId ? -1 : 1),
  );
  // Before all that a copy that needs no base: what others need as theirs must be such a one.
  const isKept = new Uint8Array(liveEnd);
  for (const wantsBases of [false, true]) {
    for (const { pack, fates: fateOf } of preferred) {
      for (const { first, end, bases } of pack.blocks) {
        if ((bases !== undefined) !== wantsBases) continue;
        for (let i = first; i < end; i++) {
          const number = pack.numbers[i] as number;
          if (number >= liveEnd) continue;
          if (isKept[number] === 1) fateOf[i] = fates.spare;
          isKept[number] = 1;
        }
      }
    }
  }

  const uses = counted.map((each) => ({
    kept: sumWhere(each, (fate) => fate === fates.kept),
    total: sumWhere(each, () => true),
  }));
  const fill = wanted ?? fillOf(uses);
  const condemn = new Map<string, ReadonlySet<ObjectId>>();
  const small: { index: number }[] = [];
  const live = { objects: 0, bytes: 0 };
  const garbage = { objects: 0, bytes: 0 };
  const waiting = { objects: 0, bytes: 0 };
  const judged = counted.map((each, index): JudgedPack => {
    const { pack, fates: fateOf, shares } = each;
    let staying = 0;
    const loose = new Set<ObjectId>();
    let looseBytes = 0;
    let waits = 0;
    for (let i = 0; i < fateOf.length; i++) {
      const share = shares[i] as number;
      const fate = fateOf[i];
      const sum = fate === fates.kept ? live : garbage;
      if (fate !== fates.spare) sum.objects++;
      sum.bytes += share;
      if (fate === fates.kept || fate === fates.waiting || fate === fates.loose) staying += share;
      if (fate === fates.waiting) {
        waits++;
        waiting.objects++;
        waiting.bytes += share;
      }
      if (fate === fates.loose) {
        loose.add(ids.hex(pack.numbers[i] as number));
        looseBytes += share;
      }
    }
    const { kept, total } = uses[index] as PackUse;
    const worthIt = kept === 0 || kept < fill * total;
    const stays = fateOf.every((fate) => fate === fates.spare || fate === fates.ripe) ? 0 : staying;
    const fate = stays === 0 ? "goes" : stays < fill * total ? "rewritten" : "stays";
    // What is written anew lies in another pack afterwards, and is condemned there.
    if (loose.size > 0 && worthIt && fate === "stays") condemn.set(pack.packId, loose);
    if (fate === "stays" && pack.bytes < smallPackBytes && waits === 0 && !condemn.has(pack.packId))
      small.push({ index });
    return { ...pack, fates: fateOf, fate, looseBytes };
  });
  if (small.length > smallPacksMax) {
    for (const { index } of small) judged[index] = { ...(judged[index] as JudgedPack), fate: "rewritten" };
  }
  return { packs: judged, condemn, live, garbage, waiting };
}

interface PackUse {
  readonly kept: number;
  readonly total: number;
}

/** The least fill at which little garbage stays in the packs above it: what is freed soon falls off against what is written. */
function fillOf(uses: readonly PackUse[]): number {
  const inUse = uses.filter(({ kept }) => kept > 0).sort((a, b) => b.kept / b.total - a.kept / a.total);
  let left = inUse.reduce((sum, { kept }) => sum + kept, 0) * garbageLeft;
  for (const { kept, total } of inUse) {
    left -= total - kept;
    // This pack and all of less use than it.
    if (left < 0) return Math.max(fillMin, Math.min(1, (kept / total) * 1.0001));
  }
  return fillMin;
}

/** The part of the pack and its index that each copy takes. */
export function sharesOf({ blocks, lengths }: PackCopies): Float64Array {
  const shares = new Float64Array(lengths.length);
  for (const { storedLength, rawLength, first, end } of blocks) {
    for (let i = first; i < end; i++) {
      shares[i] = rowBytes + (rawLength === 0 ? 0 : (storedLength * (lengths[i] as number)) / rawLength);
    }
  }
  return shares;
}

function sumWhere(
  { fates: fateOf, shares }: { readonly fates: Uint8Array; readonly shares: Float64Array },
  counts: (fate: number) => boolean,
): number {
  let sum = 0;
  for (let i = 0; i < fateOf.length; i++) if (counts(fateOf[i] as number)) sum += shares[i] as number;
  return sum;
}

interface Named {
  readonly markedAt: number;
  readonly objects: ReadonlySet<ObjectId>;
}

function byPack(lists: Iterable<CondemnedList>): ReadonlyMap<string, readonly Named[]> {
  const all = new Map<string, Named[]>();
  for (const { markedAt, copies } of lists) {
    for (const [packId, objects] of copies) {
      const known = all.get(packId);
      if (known === undefined) all.set(packId, [{ markedAt, objects }]);
      else known.push({ markedAt, objects });
    }
  }
  return all;
}
