/**
 * Files that could not be captured are the same omission before and after, whatever was written into them: no difference
 * of trees tells that they changed. So an undo or restore that may have had to do with them names them (U14).
 */
import { isWithin, joinPath, rootPath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import type { OmissionClass, Tree } from "../workspace-store/index.js";
import type { RootHistory } from "./contracts.js";

/** Left out although nobody asked for it. What was excluded by a rule is no surprise to anybody. */
const involuntary: readonly OmissionClass[] = ["over-size", "unreadable", "unstable"];

/**
 * Such files of a tree that was captured, in byte order. Costs nothing where its checkpoint counted none of them; else every
 * directory of the tree is read.
 */
export async function uncapturedIn(
  tree: Tree,
  { checkpoints }: Pick<RootHistory, "checkpoints">,
  paths: readonly WorkspacePath[] | undefined,
): Promise<readonly WorkspacePath[]> {
  const counted = checkpoints.findLast(({ ref }) => ref === tree.ref)?.omitted ?? {};
  if (!involuntary.some((each) => (counted[each] ?? 0) > 0)) return [];
  const found: WorkspacePath[] = [];
  const visit = async (directory: WorkspacePath): Promise<void> => {
    for (const [name, entry] of await tree.list(directory)) {
      const path = joinPath(directory, name);
      if (entry.kind === "directory") await visit(path);
      else if (entry.kind !== "omitted" || !involuntary.includes(entry.class)) continue;
      else if (paths?.some((chosen) => isWithin(path, chosen)) !== false) found.push(path);
    }
  };
  await visit(rootPath);
  return found;
}
