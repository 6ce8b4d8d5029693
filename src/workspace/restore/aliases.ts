/** Paths of a plan that some volume may take for one another: same but for case or composition (C105). */
import { components, joinPath, rootPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";

/**
 * Those paths, and directories above them, that are spelled differently and could be one name. Generous: on a volume that
 * tells them apart the only cost is a look at a listing.
 */
export function aliasedPaths(paths: readonly WorkspacePath[]): ReadonlySet<WorkspacePath> {
  const spellings = new Map<string, Set<WorkspacePath>>();
  for (const path of paths) {
    let at = rootPath;
    for (const name of components(path)) {
      at = joinPath(at, name);
      const key = fold(at);
      const known = spellings.get(key);
      if (known === undefined) spellings.set(key, new Set([at]));
      else known.add(at);
    }
  }
  const aliased = new Set<WorkspacePath>();
  for (const spelled of spellings.values()) if (spelled.size > 1) for (const path of spelled) aliased.add(path);
  return aliased;
}

const fold = (path: string): string => path.normalize("NFKD").toUpperCase().toLowerCase();
