/** A captured tree as a flat list. */
import { joinPath, rootPath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import type { OmissionClass, Tree, TreeEntry } from "../workspace-store/index.js";

export interface ListedEntry {
  readonly path: WorkspacePath;
  readonly entry: TreeEntry;
}

/** Every entry below `from`, parents before children, in byte order of names within a directory. */
export async function* listTree(tree: Tree, from: WorkspacePath = rootPath): AsyncGenerator<ListedEntry> {
  for (const [name, entry] of await tree.list(from)) {
    const path = joinPath(from, name);
    yield { path, entry };
    if (entry.kind === "directory") yield* listTree(tree, path);
  }
}

/** What was left out of a tree. */
export async function listOmitted(
  tree: Tree,
): Promise<readonly { readonly path: WorkspacePath; readonly class: OmissionClass }[]> {
  const omitted: { readonly path: WorkspacePath; readonly class: OmissionClass }[] = [];
  for await (const { path, entry } of listTree(tree)) {
    if (entry.kind === "omitted") omitted.push({ path, class: entry.class });
  }
  return omitted;
}
