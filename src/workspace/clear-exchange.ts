/**
 * After an exchange (U7): what no capture holds of the directory that made way is carried into the one that took its place,
 * the rest is removed when it is proven to be stored, and the exchange is journaled. Anything in doubt stays in the backup,
 * and that is on record. It can be killed anywhere and run again, by any session that takes the root.
 */
import path from "node:path";
import { Directory, isLooprigError } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { Tree } from "../workspace-store/index.js";
import { carryOver } from "./carry-over.js";
import { hasMountsBelow } from "./mount-points.js";
import type { OwnedRoot } from "./owned-root.js";
import { removeTree } from "./remove-tree.js";
import { stands } from "./root-places.js";
import type { ReadySwap } from "./root-places.js";
import type { RootReader } from "./root-reader.js";
import { withoutSwap } from "./root-record.js";

/** Paths named of what stays; the backup itself is named in any case. */
const namedMax = 50;

/** Steps 9 to 12 of an exchange that is on record; nothing where none is. */
export async function clearExchange(owned: OwnedRoot, options: Abortable = {}): Promise<void> {
  const { reader } = owned;
  const swap = (await reader.record.read(options))?.swap;
  if (swap?.phase !== "swapped" || swap.backup === undefined || swap.built === undefined) return;
  using permit = await owned.coordinator.acquire({ operation: "checkpoint" }, options);
  const ready: ReadySwap = { ...swap, backup: swap.backup, built: swap.built };
  const stays = await clearBackup(owned, ready, () => permit.assertHeld(), options);
  if (!(await isJournaled(reader, ready, options))) await journal(owned, ready, stays ?? []);
  await reader.record.update((data) =>
    stays === undefined ? { ...data, swap: undefined } : withoutSwap({ ...data, swap }),
  );
}

/** Returns what stays, where the backup does; "" stands for all of it. */
async function clearBackup(
  owned: OwnedRoot,
  swap: ReadySwap,
  assertHeld: () => void,
  options: Abortable,
): Promise<readonly WorkspacePath[] | undefined> {
  const { reader } = owned;
  const { fileSystem, root } = reader;
  using parent = Directory.open(fileSystem, path.dirname(root));
  if (!stands(fileSystem, parent, swap.backup, swap.stranger)) return undefined;
  const captured = await openHeld(reader, swap, options);
  if (captured === undefined) return [all];
  {
    using from = parent.child(swap.backup);
    const carrying = { fileSystem, from, to: owned.directory(), captured, built: await reader.store.open(swap.target) };
    const { ownDirectories } = await reader.scanOptions(options);
    const stay = await carryOver({ ...carrying, ownDirectories, assertHeld, ...options });
    if (stay.length > 0) return stay;
  }
  const place = path.join(path.dirname(root), swap.backup);
  const unproven = hasMountsBelow(fileSystem, place) ? [all] : await notIn(reader, captured, place, options);
  if (unproven.length > 0) return unproven;
  assertHeld();
  if (!stands(fileSystem, parent, swap.backup, swap.stranger)) return [all];
  removeTree(fileSystem, parent, swap.backup);
  parent.sync();
  return undefined;
}

const all = "" as WorkspacePath;

/** The stranger as it was captured; undefined unless all of it is stored, and pinned. */
async function openHeld({ store }: RootReader, { from }: ReadySwap, options: Abortable): Promise<Tree | undefined> {
  try {
    const pinned = (await store.pins(options)).some(({ refs }) => refs.includes(from));
    return pinned && (await store.has(from, options)) ? await store.open(from, options) : undefined;
  } catch (error) {
    // What cannot be read of it now cannot be given back later either.
    if (isLooprigError(error, "snapshot.pin_damaged", "snapshot.unknown", "snapshot.object_missing")) return undefined;
    if (isLooprigError(error, "snapshot.object_damaged")) return undefined;
    throw error;
  }
}

/**
 * What is in the backup and not in the capture. What is missing in it was carried over, or removed before a kill, which also
 * makes directories writable.
 */
async function notIn(
  reader: RootReader,
  captured: Tree,
  place: string,
  options: Abortable,
): Promise<readonly WorkspacePath[]> {
  const scanned = await reader.store.scan({
    ...(await reader.scanOptions(options)),
    ...{ root: place, ownPaths: new Set<WorkspacePath>(), signal: options.signal },
  });
  // What a capture omits is stored nowhere; all of it was carried over, so this came later.
  const found = new Set<WorkspacePath>(scanned.omitted.map((omitted) => omitted.path));
  for await (const { path: at, before, after } of reader.store.diff(captured, scanned.tree, options)) {
    const isDirectory = before?.kind === "directory" && after?.kind === "directory";
    if (after !== undefined && !isDirectory && !isSameEntry(before, after)) found.add(at);
  }
  return [...found];
}

async function isJournaled(reader: RootReader, { planId }: ReadySwap, options: Abortable): Promise<boolean> {
  return (await reader.history(options)).restorations.some((restored) => restored.planId === planId);
}

async function journal(owned: OwnedRoot, swap: ReadySwap, stays: readonly WorkspacePath[]): Promise<void> {
  const { planId, from, target, backup } = swap;
  const { result, event } = await owned.takeAlways({ trigger: "post-restore" });
  const { order } = await owned.reader.record.draw({}, owned.reader.clock());
  await owned.append(event, {
    ...{
      type: "workspace-restored",
      action: "restore",
      entry: `c${event.number}`,
      target,
      from,
      ref: result.ref,
      order,
    },
    ...{ planId, result: stays.length > 0 ? "partly" : "done", written: [], deleted: [], conflicts: [] },
    kept: stays.slice(0, namedMax).map((each) => ({ path: each, reason: `left in ${backup}` })),
  });
}
