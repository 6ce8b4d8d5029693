/** The last look before the commit point: every path of the plan is what the plan expects, and so is what is staged. */
import { invariant, isLooprigError, isMissing, joinPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import { MovedError } from "./carry-out.js";
import type { Checked, Work } from "./carry-out.js";
import { hasOtherNames, look, permissionsOf, sameFile, stampOf } from "./observe.js";
import type { Stamp } from "./observe.js";
import { isDirectory } from "./plan.js";
import { setsModeInPlace } from "./plan-record.js";
import type { PlanRecord, StoredOperation } from "./plan-record.js";
import type { TreeAccess } from "./tree-access.js";

/** Compares by content. Throws `MovedError` with every path that differs. */
export async function checkTree(
  record: PlanRecord,
  staged: ReadonlyMap<WorkspacePath, Stamp>,
  { tree, pace, doing }: Work,
): Promise<Checked> {
  const operations = new Map(record.operations.map((operation) => [operation.path, operation]));
  const paths = new Map<WorkspacePath, Stamp>();
  const moved: WorkspacePath[] = [];
  for (const operation of record.operations) {
    const { path, expected } = operation;
    doing(path, "check");
    const seen = await look(tree, path, [expected], pace);
    if (expected === undefined) {
      if (seen.at !== "absent") moved.push(path);
    } else if (
      seen.at !== "candidate" ||
      // It got a second name since the plan was laid out.
      (setsModeInPlace(operation) && hasOtherNames(tree.stat(path))) ||
      (expected.kind === "directory" && !hasMode(tree, path, expected.mode, seen.stamp)) ||
      (isDirectory(expected) && !isDirectory(operation.target) && holdsMore(tree, path, operations))
    ) {
      moved.push(path);
    } else paths.set(path, seen.stamp);
    if (operation.staged !== undefined) {
      const stats = tree.stat(operation.staged);
      const known = staged.get(operation.staged);
      invariant(known !== undefined, "BUG: a staged file has no stamp");
      if (stats === undefined || !sameFile(stampOf(stats), known)) moved.push(path);
    }
    await pace();
  }
  if (moved.length > 0) throw new MovedError(moved);
  return { paths, staged };
}

/** A directory that we made writable ourselves had the mode that was recorded. */
const hasMode = (tree: TreeAccess, path: WorkspacePath, mode: number, stamp: Stamp): boolean =>
  permissionsOf(stamp) === mode || (tree.relaxed.has(path) && permissionsOf(stamp) === (mode | 0o700));

/** Whether a directory to be removed holds something that the plan does not remove. */
function holdsMore(
  tree: TreeAccess,
  path: WorkspacePath,
  operations: ReadonlyMap<WorkspacePath, StoredOperation>,
): boolean {
  try {
    return tree.names(path).some((name) => {
      const child = operations.get(joinPath(path, name));
      return child === undefined || child.expected === undefined || child.target !== undefined;
    });
  } catch (error) {
    if (isMissing(error) || isLooprigError(error, "path.escapes")) return true;
    throw error;
  }
}
