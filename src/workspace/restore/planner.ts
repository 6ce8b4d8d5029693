/**
 * Plans (U5): from the present tree, what is wanted and who changed what, to the operations that get there and the paths
 * that are left alone. Making a plan changes nothing.
 *
 * Two questions have two planners. A *reversal* takes back (or puts back) what one entry of the undo list did, path by
 * path, and treats anything that changed since as a conflict (U3). A *restore* goes towards a captured tree and leaves
 * alone what no record of ours explains (U7).
 */
import { compareNames, components, isWithin, parentOf, rootPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import { isSameEntry } from "../../workspace-store/index.js";
import type { PresentPaths, Tree, TreeChange, TreeEntry } from "../../workspace-store/index.js";
import type { ChangedBy } from "../changed-by.js";
import type { KeptReason, PlannedEntry, PlannedOperation, TreePlan } from "./plan.js";
import { makeConsistent } from "./structure.js";
import type { Obstacle } from "./structure.js";

type Changes = Iterable<TreeChange> | AsyncIterable<TreeChange>;

interface PlanOptions {
  /** The tree as it is now. */
  readonly present: PresentPaths;
  /** Only these paths and what lies below them. */
  readonly paths?: readonly WorkspacePath[] | undefined;
  /** Tells the modes of directories that have to be made and are not part of `changes`; without it they are 0o755. */
  readonly wanted?: Pick<Tree, "lookup"> | undefined;
}

export interface ReversalOptions extends PlanOptions {
  /** What the entry did: from `before` to `after`. */
  readonly changes: Changes;
  readonly direction: "undo" | "redo";
  /** "stop": with a conflict there are no operations. "skip": the other paths are done. */
  readonly onConflict: "stop" | "skip";
  /** Who else wrote the path at the same time as the entry, so that its change is nobody's for certain. */
  readonly overlaps?: ((path: WorkspacePath) => ChangedBy | undefined) | undefined;
  /** Who made what stands there now. */
  readonly whoChanged: (path: WorkspacePath, present: TreeEntry | undefined) => ChangedBy;
}

export interface RestoreToTreeOptions extends PlanOptions {
  /** What differs, from the present tree to the one that is wanted. */
  readonly changes: Changes;
  /** Whether a record of ours explains what stands there now. */
  readonly explains: (path: WorkspacePath, present: TreeEntry) => boolean;
  /** Makes the tree equal in everything it covers, whoever made what is there. */
  readonly exact: boolean;
  /** Why a path that is not explained stays. */
  readonly keptReason: (path: WorkspacePath) => "foreign" | "other-session";
}

/**
 * The plan that takes back ("undo") or puts back ("redo") what `changes` did. A path that is what the entry left gets what
 * was there before; one that is that already needs nothing; any other is a conflict.
 */
export async function planReversal(options: ReversalOptions): Promise<TreePlan> {
  const { present, direction, onConflict, overlaps, whoChanged, wanted } = options;
  const draft = new Draft(present, options.paths);
  for await (const { path, before, after } of options.changes) {
    if (!draft.covers(path)) continue;
    const [left, target] = direction === "undo" ? [after, before] : [before, after];
    const now = await present.lookup(path);
    if (isOmitted(left) || isOmitted(target) || (await draft.isLeftOut(path, now))) {
      // Below an omitted directory nothing is known, whatever the other side lists there.
      draft.leaveOut(path);
    } else if (isSameEntry(now, target)) {
      continue;
    } else if (overlaps?.(path) !== undefined || !isSameEntry(now, left)) {
      draft.conflict(path, overlaps?.(path) ?? whoChanged(path, now));
    } else {
      draft.operation({ path, expected: now as PlannedEntry | undefined, target });
    }
  }
  await draft.makeConsistent({
    wanted: async (path) => wanted?.lookup(path),
    blocked: (operation, by) => {
      const why = draft.reasonOf(by) ?? (by.planned ? "not-empty" : keptFor(whoChanged(by.path, by.entry)));
      if (why === "omitted") draft.leaveOut(operation.path);
      // A directory in which something stays is no conflict: what the entry put into it is gone all the same.
      else if (operation.target === undefined) draft.keep(operation.path, why);
      else draft.conflict(operation.path, draft.conflictAt(by.path) ?? whoChanged(by.path, by.entry));
    },
  });
  return draft.finish(onConflict);
}

/**
 * The plan that goes towards a captured tree. Absent paths are written; present ones are overwritten or deleted only if a
 * record of ours explains them, or `exact`; the rest is kept and listed.
 */
export async function planRestore(options: RestoreToTreeOptions): Promise<TreePlan> {
  const { present, explains, exact, keptReason, wanted } = options;
  const draft = new Draft(present, options.paths);
  for await (const { path, before: now, after: target } of options.changes) {
    if (!draft.covers(path)) continue;
    if (isOmitted(now) || isOmitted(target) || (await draft.isLeftOut(path, now))) draft.leaveOut(path);
    else if (isSameEntry(now, target)) continue;
    else if (now === undefined || exact || explains(path, now)) draft.operation({ path, expected: now, target });
    else draft.keep(path, keptReason(path));
  }
  await draft.makeConsistent({
    wanted: async (path) => wanted?.lookup(path),
    blocked: (operation, by) => {
      const ours = by.planned === true || by.entry === undefined || explains(by.path, by.entry);
      const why = draft.reasonOf(by) ?? (ours ? "not-empty" : keptReason(by.path));
      if (why === "omitted") draft.leaveOut(operation.path);
      else draft.keep(operation.path, why);
    },
  });
  return draft.finish("skip");
}

const isOmitted = (entry: TreeEntry | undefined): entry is Extract<TreeEntry, { kind: "omitted" }> =>
  entry?.kind === "omitted";

const keptFor = (by: ChangedBy): KeptReason => (by.kind === "session" ? "not-empty" : by.kind);

/** A plan being made. */
class Draft {
  readonly #present: PresentPaths;
  readonly #paths: readonly WorkspacePath[] | undefined;
  readonly #operations = new Map<WorkspacePath, PlannedOperation>();
  readonly #kept = new Map<WorkspacePath, KeptReason>();
  readonly #conflicts = new Map<WorkspacePath, ChangedBy>();
  /** Whether a directory is left out, or lies in one that is. */
  readonly #leftOut = new Map<WorkspacePath, boolean>();

  constructor(present: PresentPaths, paths: readonly WorkspacePath[] | undefined) {
    this.#present = present;
    this.#paths = paths;
  }

  covers(path: WorkspacePath): boolean {
    return this.#paths?.some((chosen) => isWithin(path, chosen)) ?? true;
  }

  /** Whether the path is, or lies in, something the tree leaves out, or in the user's repository (U12). */
  async isLeftOut(path: WorkspacePath, now: TreeEntry | undefined): Promise<boolean> {
    if (isOmitted(now) || components(path).includes(".git")) return true;
    return this.#isInLeftOut(parentOf(path));
  }

  async #isInLeftOut(directory: WorkspacePath): Promise<boolean> {
    if (directory === rootPath) return false;
    // A change listed the directory itself as omitted; on the present side there may still be a plain one.
    if (this.#kept.get(directory) === "omitted") return true;
    const known = this.#leftOut.get(directory);
    if (known !== undefined) return known;
    const found = isOmitted(await this.#present.lookup(directory)) || (await this.#isInLeftOut(parentOf(directory)));
    this.#leftOut.set(directory, found);
    return found;
  }

  operation(operation: PlannedOperation): void {
    this.#operations.set(operation.path, Object.freeze(operation));
  }
  keep(path: WorkspacePath, reason: KeptReason): void {
    this.#kept.set(path, reason);
  }
  leaveOut(path: WorkspacePath): void {
    this.#kept.set(path, "omitted");
    this.#leftOut.set(path, true);
  }
  conflict(path: WorkspacePath, by: ChangedBy): void {
    this.#conflicts.set(path, by);
  }
  conflictAt(path: WorkspacePath): ChangedBy | undefined {
    return this.#conflicts.get(path);
  }

  /** Why an obstacle stays, as far as the plan says so itself. */
  reasonOf({ path, entry }: Obstacle): KeptReason | undefined {
    const by = this.#conflicts.get(path);
    return this.#kept.get(path) ?? (isOmitted(entry) ? "omitted" : by === undefined ? undefined : keptFor(by));
  }

  makeConsistent(options: {
    readonly wanted: (path: WorkspacePath) => Promise<TreeEntry | undefined>;
    readonly blocked: (operation: PlannedOperation, by: Obstacle) => void;
  }): Promise<void> {
    return makeConsistent(this.#operations, { present: this.#present, ...options });
  }

  finish(onConflict: "stop" | "skip"): TreePlan {
    const order = <T>(map: ReadonlyMap<WorkspacePath, T>): [WorkspacePath, T][] =>
      [...map].sort(([a], [b]) => compareNames(a, b));
    const stopped = onConflict === "stop" && this.#conflicts.size > 0;
    const operations = stopped ? [] : order(this.#operations).map(([, operation]) => operation);
    const kept = order(this.#kept).map(([path, reason]) => Object.freeze({ path, reason }));
    return Object.freeze({
      operations: Object.freeze(operations),
      kept: Object.freeze(kept),
      conflicts: Object.freeze(order(this.#conflicts).map(([path, by]) => Object.freeze({ path, by }))),
      omitted: Object.freeze(kept.filter(({ reason }) => reason === "omitted").map(({ path }) => path)),
      writes: Object.freeze(operations.filter(({ target }) => target !== undefined).map(({ path }) => path)),
      deletes: Object.freeze(operations.filter(({ target }) => target === undefined).map(({ path }) => path)),
    });
  }
}
