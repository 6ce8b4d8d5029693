/** The root of a capture: the one directory that nothing can stand in for when it cannot be read; and what below it is ours. */
import path from "node:path";
import { Directory, displayName, errnoOf, SnapshotError, toFsPath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import type { ScanOptions } from "./contracts.js";
import { identityKey } from "./found.js";

/** Opens it once; everything is reached below the handle. Throws `capture.root_unreadable`. */
export function openRoot(fileSystem: FileSystem, root: string): Directory {
  if (!path.isAbsolute(root)) throw rootUnreadable(root, new TypeError("the path is not absolute"));
  try {
    return Directory.open(fileSystem, root);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw rootUnreadable(root, error);
  }
}

/** `capture.root_unreadable`, for whatever reason. */
export function rootUnreadable(root: string, cause?: unknown): SnapshotError {
  const errno = errnoOf(cause);
  return new SnapshotError(
    "capture.root_unreadable",
    `Cannot capture "${displayName(root)}": ${errno === undefined ? "it is not the directory it was, or no absolute path" : `it cannot be read as a directory (${errno})`}`,
    { root },
    { cause },
  );
}

/** A root that was removed or replaced meanwhile reads as empty or stale: never a success. */
export function assertRootUnmoved(fileSystem: FileSystem, root: Directory, path: string): void {
  let found: { readonly dev: bigint; readonly ino: bigint };
  try {
    found = fileSystem.stat(toFsPath(path));
  } catch (error) {
    throw rootUnreadable(path, error);
  }
  if (found.ino !== root.ino || found.dev !== root.dev) throw rootUnreadable(path);
}

/** `identityKey` of directories that are never captured: those the caller names, and where the store itself writes (B2). */
export function ownIdentities(
  { fileSystem, ownPaths }: { readonly fileSystem: FileSystem; readonly ownPaths: readonly string[] },
  { ownDirectories = [] }: Pick<ScanOptions, "ownDirectories">,
): Set<string> {
  const identities = new Set<string>();
  for (const { dev, ino } of ownDirectories) identities.add(identityKey(dev, ino));
  for (const own of ownPaths) {
    try {
      const { dev, ino } = fileSystem.stat(toFsPath(own));
      identities.add(identityKey(dev, ino));
    } catch (error) {
      // Not made yet, so not in the tree either.
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return identities;
}
