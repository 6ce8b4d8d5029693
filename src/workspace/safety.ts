/**
 * What a restore makes durable before its first write (U4): the tree that its plan was made from, with the paths it would touch as
 * they are now. Where the plan walked the tree and stored it, nothing is walked again; where it looked at its paths alone, these are
 * put into the newest checkpoint; else the tree is captured.
 */
import { RestoreError, displayName, isLooprigError, parentOf, rootPath } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { Tree } from "../workspace-store/index.js";
import type { Checkpoint } from "./contracts.js";
import { capturedTree, checkpointTree } from "./known-tree.js";
import type { KnownTree } from "./known-tree.js";
import type { OwnedRoot } from "./owned-root.js";
import type { PlanDetails } from "./planning.js";
import type { PlannedOperation } from "./restore/plan.js";
import { unreadable } from "./turn-record.js";

export interface SafetyOptions extends Abortable {
  /** The plan was made in this very call: what it saw need not be looked at again. */
  readonly fresh: boolean;
}

export interface Safety extends KnownTree {
  /** Not the whole tree was looked at for it. */
  readonly derived: boolean;
}

/**
 * A tree that is the newest checkpoint's needs no checkpoint of its own; any other is journaled as one. Rejects with
 * `restore.unprotected`, `restore.tree_moved`, `capture.*`, `storage.*`.
 */
export async function takeSafety(owned: OwnedRoot, details: PlanDetails, options: SafetyOptions): Promise<Safety> {
  const { fresh, signal } = options;
  const newest = fresh ? details.newest : (await owned.reader.history({ signal })).checkpoints.at(-1);
  const request = { trigger: "pre-restore", unlessEqual: newest?.ref, signal } as const;
  const { operations } = details.tree;
  // A plan that waited for consent walked the tree a while ago, and now looks at its own paths alone.
  const derived = details.seen.by === "paths" || (details.seen.by === "capture" && !fresh);
  try {
    const known = await withoutWalk(owned, details, newest, options);
    if (known !== undefined) {
      await assertProtected(operations, known.tree);
      const event = await owned.name({ ...request, derived }, known);
      if (event !== undefined) await owned.append(event);
      return { ...known, derived };
    }
  } catch (error) {
    // The tree that everything else was to be taken from is gone or damaged. The one that is there is not.
    if (!isLooprigError(error, ...unreadable)) throw error;
  }
  const { result, event } = await owned.take(request);
  if (event !== undefined) await owned.append(event);
  await assertProtected(operations, result.tree);
  return { ...capturedTree(result), derived: false };
}

/** Undefined when there is no tree to begin with. */
async function withoutWalk(
  owned: OwnedRoot,
  { tree: { operations }, seen }: PlanDetails,
  newest: Checkpoint | undefined,
  { fresh, signal }: SafetyOptions,
): Promise<KnownTree | undefined> {
  if (seen.by === "scan" || (seen.by === "paths" && newest === undefined)) return undefined;
  if (seen.by === "capture" && fresh) return seen.known;
  const { store } = owned.reader;
  const base = seen.by === "capture" ? seen.known : newest && (await checkpointTree(store, newest, { signal }));
  const paths = operations.map(({ path }) => path);
  return base && owned.derive({ trigger: "pre-restore", signal }, base, paths);
}

/**
 * Only what was just stored may be overwritten (U4): a path that had to be left out is not protected. One that is not what the plan
 * expects has moved, and so has one in a directory that is none any more.
 */
async function assertProtected(operations: readonly PlannedOperation[], tree: Tree): Promise<void> {
  const unprotected: PlannedOperation[] = [];
  const moved: WorkspacePath[] = [];
  const planned = new Set(operations.map(({ path }) => path));
  const isDirectory = async (path: WorkspacePath): Promise<boolean> =>
    path === rootPath || planned.has(path) || (await tree.lookup(path))?.kind === "directory";
  for (const operation of operations) {
    const present = await tree.lookup(operation.path);
    if (present?.kind === "omitted") unprotected.push(operation);
    else if (!isSameEntry(operation.expected, present)) moved.push(operation.path);
    else if (operation.target !== undefined && !(await isDirectory(parentOf(operation.path))))
      moved.push(operation.path);
  }
  if (unprotected.length > 0) {
    const paths = unprotected.map(({ path }) => path);
    const bytesNeeded = unprotected.reduce(
      (sum, { expected }) => sum + (expected?.kind === "file" ? expected.size : 0),
      0,
    );
    throw new RestoreError(
      "restore.unprotected",
      `Cannot restore: the present bytes of ${paths.length} of its paths, ${displayName(paths[0] ?? "")} first, could not be stored first; ` +
        "make them readable and still, or leave them out",
      { paths, bytesNeeded },
    );
  }
  if (moved.length > 0) {
    throw new RestoreError(
      "restore.tree_moved",
      `Cannot restore: ${moved.length} of its paths, ${displayName(moved[0] ?? "")} first, changed since the plan was made; make a new plan`,
      { paths: moved },
      { retryable: true },
    );
  }
}
