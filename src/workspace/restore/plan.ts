/**
 * What a plan is: for each path what stands there and what is to stand there, and what was left alone, with the reason.
 * `planner` makes plans, `apply` and `settle` carry them out; neither knows the other.
 */
import type { WorkspacePath } from "../../core/index.js";
import type { TreeEntry } from "../../workspace-store/index.js";
import type { ChangedBy } from "../changed-by.js";

/** An entry a plan may take away or put in place. Omitted ones are never part of an operation (U14). */
export type PlannedEntry = Exclude<TreeEntry, { kind: "omitted" }>;

export interface PlannedOperation {
  readonly path: WorkspacePath;
  /** What stands there now; undefined for nothing. Applying refuses when it is something else by then. */
  readonly expected: PlannedEntry | undefined;
  /** What is to stand there; undefined for nothing. Never the same as `expected`. */
  readonly target: PlannedEntry | undefined;
}

/**
 * Why a path is left as it is: nothing of ours explains its bytes, another session's record does, it is not in the tree
 * (U14), or it is a directory in which something stays.
 */
export type KeptReason = "foreign" | "other-session" | "omitted" | "not-empty";

export interface TreePlan {
  /** In byte order of paths, each path once, directories that have to be made included. */
  readonly operations: readonly PlannedOperation[];
  readonly kept: readonly { readonly path: WorkspacePath; readonly reason: KeptReason }[];
  readonly conflicts: readonly { readonly path: WorkspacePath; readonly by: ChangedBy }[];
  /** The kept paths whose reason is "omitted". */
  readonly omitted: readonly WorkspacePath[];
  /** Paths of the operations that leave something there, and of those that leave nothing. Directories count like files. */
  readonly writes: readonly WorkspacePath[];
  readonly deletes: readonly WorkspacePath[];
}

export const isDirectory = (entry: TreeEntry | undefined): boolean => entry?.kind === "directory";

/** Same bytes, other permission bits. */
export function isModeChange(operation: Pick<PlannedOperation, "expected" | "target">): boolean {
  const { expected, target } = operation;
  return (
    expected?.kind === "file" && target?.kind === "file" && expected.id === target.id && expected.size === target.size
  );
}
