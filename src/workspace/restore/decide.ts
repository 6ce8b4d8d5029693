/**
 * What to do about one operation, from what is on disk: data in, decision out (docs/formats/plans.md has the table).
 * The same decisions serve a commit, its roll-back (with reversed operations) and the settling of a crashed plan.
 */
import { isDirectory } from "./plan.js";
import type { PlannedOperation } from "./plan.js";
import { setsModeInPlace } from "./plan-record.js";
import type { StoredOperation } from "./plan-record.js";

/** What stands at the path. Nothing is "absent", also where nothing was expected or wanted. */
export type Standing = "absent" | "expected" | "target" | "other";
/** What stands at a name of ours. "unfinished": a staged file that was not written to its end. */
export type OwnStanding = "none" | "ours" | "unfinished" | "other";

export interface Sight {
  readonly path: Standing;
  readonly staged: OwnStanding;
  readonly backup: OwnStanding;
}

/** "forward" completes the plan; "back" gets reversed operations and takes it back. */
export type Direction = "forward" | "back";

export type DownDecision =
  | { readonly act: "done" | "skip" | "remove-directory" }
  /** `freeBackup`: a copy of the same bytes has the backup's name and is removed first. */
  | { readonly act: "take-away"; readonly freeBackup: boolean };

export type UpDecision =
  | { readonly act: "done" | "skip" | "make-directory" | "set-mode" | "put-back" }
  /** `stage`: nothing complete waits under the staged name; it is written from the store first. */
  | { readonly act: "put"; readonly stage: boolean }
  | { readonly act: "replace"; readonly stage: boolean; readonly freeBackup: boolean };

/** Whether the path is cleared in the pass down: it goes, or a directory and something else change places. */
export const goesDown = ({ expected, target }: PlannedOperation): boolean =>
  expected !== undefined && (target === undefined || isDirectory(expected) !== isDirectory(target));

export function decideDown(operation: PlannedOperation, sight: Sight): DownDecision {
  switch (sight.path) {
    case "absent":
    case "target":
      return { act: "done" };
    case "other":
      return { act: "skip" };
    case "expected":
      if (isDirectory(operation.expected)) return { act: "remove-directory" };
      if (sight.backup === "other") return { act: "skip" };
      return { act: "take-away", freeBackup: sight.backup !== "none" };
    default:
      return sight.path satisfies never;
  }
}

export function decideUp(operation: StoredOperation, sight: Sight, direction: Direction): UpDecision {
  const { expected, target } = operation;
  if (target === undefined || (isDirectory(expected) && isDirectory(target))) return { act: "done" };
  if (sight.path === "target") return { act: "done" };
  if (sight.path === "other") return { act: "skip" };
  if (isDirectory(target)) return { act: sight.path === "absent" ? "make-directory" : "skip" };
  if (setsModeInPlace(operation)) return { act: sight.path === "expected" ? "set-mode" : "skip" };
  // Going back, what waits was moved away from this very path: it returns, whatever someone has written into it.
  const staged = direction === "back" && sight.staged !== "none" ? "ours" : sight.staged;
  const stage = staged !== "ours";

  if (sight.path === "expected") {
    // A directory that could not be emptied, or one of our names in other hands.
    if (isDirectory(expected) || staged === "other" || sight.backup === "other") return { act: "skip" };
    return { act: "replace", stage, freeBackup: sight.backup !== "none" };
  }

  // Where nothing waits nothing was taken away, and the path is empty by someone else's doing.
  if (direction === "back") return stage ? { act: "skip" } : { act: "put", stage };
  if (expected !== undefined && !isDirectory(expected)) {
    if (sight.backup === "other" || staged === "other") return { act: sight.backup === "none" ? "skip" : "put-back" };
    // Taken away by someone else while ours waits untouched. Without both, our names were cleaned away: complete it.
    if (sight.backup === "none" && !stage) return { act: "skip" };
  }
  if (staged === "other") return { act: "skip" };
  return { act: "put", stage };
}
