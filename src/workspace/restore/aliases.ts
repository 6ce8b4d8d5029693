/** Paths of a plan that some volume may take for one another: same but for case or composition (C105). */
import { baseName, parentOf, rootPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";

/**
 * Those paths, and directories above them, that are spelled differently and could be one name. Generous: on a volume that
 * tells them apart the only cost is a look at a listing.
 */
export function aliasedPaths(paths: readonly WorkspacePath[]): ReadonlySet<WorkspacePath> {
  const keys = new Map<WorkspacePath, string>([[rootPath, ""]]);
  const spelled = new Map<string, WorkspacePath>();
  const aliased = new Set<WorkspacePath>();

  const keyOf = (path: WorkspacePath): string => {
    const known = keys.get(path);
    if (known !== undefined) return known;
    const key = `${keyOf(parentOf(path))}/${fold(baseName(path))}`;
    keys.set(path, key);
    const other = spelled.get(key);
    if (other === undefined) spelled.set(key, path);
    else aliased.add(other).add(path);
    return key;
  };
  for (const path of paths) keyOf(path);
  return aliased;
}

/** ASCII without capital letters: what most names are, and what folds to itself. */
const plain = /^[ -@[-~]*$/;
const fold = (name: string): string => (plain.test(name) ? name : name.normalize("NFKD").toUpperCase().toLowerCase());
