/** The directory a tree is written into: made, or found empty; never one in which something is (G8). */
import path from "node:path";
import { Directory, displayName, errnoOf, isLooprigError, SnapshotError, toFsPath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

export interface Destination {
  readonly directory: Directory;
  /** Makes its own name durable. */
  readonly sync: () => void;
  /** Removes the directory if it was made here and is empty. */
  readonly giveUp: () => void;
}

export function prepareDestination(fileSystem: FileSystem, dest: string): Destination {
  const name = path.basename(dest);
  if (!path.isAbsolute(dest) || name === "") throw unusable(dest, "it is no absolute path of a directory");
  let parent: Directory;
  try {
    parent = Directory.open(fileSystem, path.dirname(dest));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw unusable(dest, `its parent cannot be opened (${errnoOf(error) ?? ""})`, error);
  }
  let made = true;
  try {
    fileSystem.mkdir(parent.at(name), 0o777);
  } catch (error) {
    made = false;
    if (errnoOf(error) !== "EEXIST") {
      parent.close();
      throw unusable(dest, `it cannot be made (${errnoOf(error) ?? "unknown"})`, error);
    }
  }
  const giveUp = () => {
    try {
      if (made) fileSystem.rmdir(toFsPath(dest));
    } catch {
      // Something else is in it by now; it stays.
    }
  };
  try {
    const directory = parent.child(name);
    if (!made && directory.names().length > 0) {
      directory.close();
      throw notEmpty(dest);
    }
    const sync = () => {
      using above = Directory.open(fileSystem, path.dirname(dest));
      above.sync();
    };
    return { directory, sync, giveUp };
  } catch (error) {
    giveUp();
    if (isLooprigError(error)) throw error;
    if (["ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) throw notEmpty(dest, error);
    throw unusable(dest, `it cannot be opened (${errnoOf(error) ?? "unknown"})`, error);
  } finally {
    parent.close();
  }
}

function notEmpty(dest: string, cause?: unknown): SnapshotError {
  return new SnapshotError(
    "snapshot.dest_not_empty",
    `Cannot materialize into "${displayName(dest)}": something is there; wanted an absent or empty directory; nothing was written`,
    { dest },
    { cause },
  );
}

export function unusable(dest: string, reason: string, cause?: unknown): SnapshotError {
  return new SnapshotError(
    "snapshot.dest_unusable",
    `Cannot materialize into "${displayName(dest)}": ${reason}; nothing was written`,
    { dest, reason },
    { cause },
  );
}
