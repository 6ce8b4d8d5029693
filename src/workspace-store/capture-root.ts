/** The root of a capture: the one directory that nothing can stand in for when it cannot be read. */
import path from "node:path";
import { Directory, displayName, errnoOf, SnapshotError } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

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
