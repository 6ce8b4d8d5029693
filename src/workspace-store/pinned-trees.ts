/**
 * Pinning of trees that are stored already. A pin keeps what it reaches from the next mark on; what an earlier mark has
 * condemned must be saved from the sweep. So, as a capture does: pin first, then look, and store anew what does not count.
 */
import { StorageError } from "../core/index.js";
import type { Abortable, SnapshotRef } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { DigestTable } from "./digest-table.js";
import type { ObjectStore } from "./object-store.js";
import { objectMissing } from "./object-store.js";
import { PackWriter } from "./pack-writer.js";
import type { Pin, Pins } from "./pins.js";
import { Reachability } from "./reachability.js";

const attemptsMax = 16;
const knownMax = 1024;

/** Refs of which every object was there, and not condemned, when the index had this many losses. */
export class WholeTrees {
  readonly #losses = new Map<SnapshotRef, number>();

  set(ref: SnapshotRef, losses: number): void {
    this.#losses.delete(ref);
    this.#losses.set(ref, losses);
    if (this.#losses.size > knownMax) this.#losses.delete(this.#losses.keys().next().value as SnapshotRef);
  }

  get(ref: SnapshotRef): number | undefined {
    return this.#losses.get(ref);
  }
}

export interface PinnedTreesEnvironment {
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly pins: Pins;
  readonly whole: WholeTrees;
}

/** Rejects with `snapshot.object_missing` when something of a tree went before the pin stood; the pin stands then. */
export async function pinTrees(
  environment: PinnedTreesEnvironment,
  pin: Pin,
  refs: readonly SnapshotRef[],
  options: Abortable,
): Promise<void> {
  const { objects, pins } = environment;
  await pins.pin(pin, refs, options);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    await objects.look(options);
    const doubtful = await doubtfulRefs(environment, pin, refs, options);
    if (doubtful.length === 0) return;
    const losses = objects.losses;
    await saveTrees(environment, pin, doubtful, options);
    await objects.look(options);
    if (objects.losses !== losses) continue;
    for (const ref of doubtful) environment.whole.set(ref, losses);
    return;
  }
  throw new StorageError(
    "storage.failed",
    `Cannot pin "${pin.id}" of "${pin.owner}": collections keep removing what it is to keep; repeat it`,
    { operation: "pin" },
    { retryable: true },
  );
}

/** The refs of which something could be condemned, or gone. */
async function doubtfulRefs(
  { objects, pins, whole }: PinnedTreesEnvironment,
  pin: Pin,
  refs: readonly SnapshotRef[],
  options: Abortable,
): Promise<readonly SnapshotRef[]> {
  const unsure = refs.filter((ref) => {
    const known = whole.get(ref);
    return known === undefined ? objects.hasCondemned : known !== objects.losses;
  });
  if (unsure.length === 0) return [];
  // Another pin that stood before ours and still does kept the tree until ours took over.
  const kept = new Set<SnapshotRef>();
  for (const { owner, id, refs: of } of await pins.list(options)) {
    if (owner !== pin.owner || id !== pin.id) for (const ref of of) kept.add(ref);
  }
  return unsure.filter((ref) => !kept.has(ref));
}

async function saveTrees(
  { blobs, objects }: PinnedTreesEnvironment,
  pin: Pin,
  refs: readonly SnapshotRef[],
  options: Abortable,
): Promise<void> {
  const ids = new DigestTable();
  const reached = new Reachability(objects, ids, options);
  await reached.reach([{ ...pin, refs }]);
  const [damaged] = reached.damaged;
  if (damaged !== undefined) throw objectMissing(damaged.object, damaged.path);
  const writer = new PackWriter(blobs, objects);
  for (let number = 0; number < ids.size; number++) {
    const id = ids.hex(number);
    if (!objects.has(id)) await writer.add(id, await objects.read(id, options));
  }
  await writer.flush(options.signal);
}
