import { isWithin, joinPath, rootPath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import type { Tree, TreeEntry } from "../workspace-store/index.js";

/** The part of a tree that some paths and what lies below them make up, with the directories that lead there. For listing and lookup only: `ref` and `id` stay those of the whole. */
export function onlyPaths(tree: Tree, paths: readonly WorkspacePath[]): Tree {
  const belongs = (path: WorkspacePath): boolean =>
    path === rootPath || paths.some((chosen) => isWithin(path, chosen) || isWithin(chosen, path));
  return {
    ref: tree.ref,
    id: tree.id,
    lookup: async (path): Promise<TreeEntry | undefined> => (belongs(path) ? tree.lookup(path) : undefined),
    list: async (path) => (await tree.list(path)).filter(([name]) => belongs(joinPath(path, name))),
  };
}
