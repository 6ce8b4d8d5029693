/** Roots that are refused unless allowed expressly (P4): a file system root, a home directory, or an ancestor of one. */
import { displayName, nodeFileSystem, WorkspacePlacementError } from "../core/index.js";
import type { CanonicalRoot, FileSystem } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";

export interface BroadRootOptions {
  /** Canonical paths of the home directories known. Other users' homes are looked for by nobody. */
  readonly homes: readonly string[];
}

export function isBroadRoot(root: CanonicalRoot, options: BroadRootOptions): boolean {
  return broadness(root, options) !== undefined;
}

/** Throws `workspace_placement.root_too_broad` when the root is broad. */
export function assertNarrowRoot(root: CanonicalRoot, options: BroadRootOptions): void {
  const reason = broadness(root, options);
  if (reason === undefined) return;
  throw new WorkspacePlacementError(
    "workspace_placement.root_too_broad",
    `Cannot use ${displayName(root)} as a root: it is ${reason}; choose a directory inside it, or allow it with allowBroadRoot`,
    { root, reason },
  );
}

function broadness(root: string, { homes }: BroadRootOptions): string | undefined {
  if (root === "/") return "the root of the file system";
  if (homes.includes(root)) return "a home directory";
  const home = homes.find((path) => path.startsWith(`${root}/`));
  return home === undefined ? undefined : `above the home directory ${displayName(home)}`;
}

/** The canonical forms of the home directories; one that cannot be resolved is nobody's root. */
export function canonicalHomes(
  homes: readonly string[],
  fileSystem: FileSystem = nodeFileSystem,
): readonly CanonicalRoot[] {
  return homes.flatMap((home) => {
    try {
      return [canonicalPath(home, { fileSystem })];
    } catch {
      return [];
    }
  });
}
