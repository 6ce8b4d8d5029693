/** How large the store is, and for whom (what `CollectReport` and `StoreStats` call live is reached from pins). */
import type { Abortable } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { sharesOf } from "./collect-plan.js";
import type { PackCopies } from "./collect-plan.js";
import type { StoreStats } from "./contracts.js";
import { DigestTable } from "./digest-table.js";
import { takeInventory } from "./inventory.js";
import type { ObjectStore } from "./object-store.js";
import { objectOfRef } from "./object-ids.js";
import type { PinnedRefs, Pins } from "./pins.js";
import { addBases, Reachability } from "./reachability.js";

export async function storeStats(
  { blobs, objects, pins }: { readonly blobs: Blobs; readonly objects: ObjectStore; readonly pins: Pins },
  options: Abortable,
): Promise<StoreStats> {
  const pinned = await pins.list(options);
  await objects.refresh(options);
  const ids = new DigestTable();
  const reached = new Reachability(objects, ids, options);
  await reached.reach(pinned);
  addBases(objects, ids);
  const liveEnd = ids.size;
  const { packs, bytes } = await takeInventory(blobs, objects, ids, options);
  const sizes = objectBytes(packs, ids.size);
  let live = 0;
  let liveObjects = 0;
  for (let number = 0; number < liveEnd; number++) {
    live += sizes[number] as number;
    if ((sizes[number] as number) > 0) liveObjects++;
  }
  const stored = sizes.reduce((sum, size) => sum + size, 0);
  return {
    bytes: { total: bytes, live: Math.round(live), garbage: Math.round(stored - live) },
    objects: {
      live: liveObjects,
      garbage: sizes.reduce((count, size, i) => count + (i >= liveEnd && size > 0 ? 1 : 0), 0),
    },
    packs: packs.length,
    pins: pinned.length,
    owners: ownerSizes(pinned, reached, ids, liveEnd, sizes),
  };
}

/** The bytes that all copies of each object take. */
function objectBytes(packs: readonly PackCopies[], count: number): Float64Array {
  const sizes = new Float64Array(count);
  for (const pack of packs) {
    const shares = sharesOf(pack);
    for (let i = 0; i < shares.length; i++) {
      const number = pack.numbers[i] as number;
      sizes[number] = (sizes[number] as number) + (shares[i] as number);
    }
  }
  return sizes;
}

const nobody = -1;
const several = -2;

function ownerSizes(
  pinned: readonly PinnedRefs[],
  reached: Reachability,
  ids: DigestTable,
  liveEnd: number,
  sizes: Float64Array,
): StoreStats["owners"] {
  const owners = [...new Set(pinned.map(({ owner }) => owner))].sort();
  /** By object: the only owner that reaches it, as a position in `owners`. */
  const keeper = new Int32Array(liveEnd).fill(nobody);
  const seenBy = new Int32Array(liveEnd).fill(nobody);
  const found = owners.map((owner, position) => {
    const own = pinned.filter((pin) => pin.owner === owner);
    const refs = new Set(own.flatMap((pin) => pin.refs));
    let bytes = 0;
    const stack = [...refs].map((ref) => ids.find(objectOfRef(ref)));
    for (let number = stack.pop(); number !== undefined; number = stack.pop()) {
      if (seenBy[number] === position) continue;
      seenBy[number] = position;
      keeper[number] = keeper[number] === nobody ? position : several;
      bytes += sizes[number] as number;
      for (const child of reached.childrenOf(number)) if (seenBy[child] !== position) stack.push(child);
    }
    return { owner, pins: own.length, refs: refs.size, bytes };
  });
  const ownBytes = new Float64Array(owners.length);
  keeper.forEach((position, number) => {
    if (position >= 0) ownBytes[position] = (ownBytes[position] as number) + (sizes[number] as number);
  });
  return found.map((each, position) => ({
    ...each,
    bytes: Math.round(each.bytes),
    ownBytes: Math.round(ownBytes[position] as number),
  }));
}
