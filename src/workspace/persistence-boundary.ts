/**
 * Nothing of ours that is written while a tree is captured may lie in that tree (B1): a capture that appends to the journal
 * it is reading never ends, and an undo would take the journal back with everything else.
 */
import { displayName, nodeFileSystem, PersistenceOverlapError } from "../core/index.js";
import type { CanonicalRoot, FileSystem } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";
import { foldedSpelling } from "./name-folding.js";

export interface BoundaryOptions {
  readonly fileSystem?: FileSystem | undefined;
}

/**
 * Throws `PersistenceOverlapError` when one of the paths, which need not exist yet, is the managed region or lies below it.
 * An ancestor or a sibling of the region is fine. Everything is compared in canonical form.
 */
export function assertOutside(
  persistencePaths: readonly string[],
  region: CanonicalRoot,
  options: BoundaryOptions = {},
): void {
  const { fileSystem = nodeFileSystem } = options;
  const outer = foldedSpelling(fileSystem, region);
  for (const path of persistencePaths) {
    const persistencePath = canonicalPath(path, { fileSystem, option: "the state directory" });
    const inner = foldedSpelling(fileSystem, persistencePath);
    if (inner !== outer && !inner.startsWith(outer === "/" ? "/" : `${outer}/`)) continue;
    throw new PersistenceOverlapError(
      "persistence.overlap",
      `Cannot keep state in ${displayName(persistencePath)}: it lies inside ${displayName(region)}, which is captured; choose a state directory outside it`,
      { persistencePath, root: region },
    );
  }
}
