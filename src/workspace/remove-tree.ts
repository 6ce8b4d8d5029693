import { errnoOf, isMissing } from "../core/index.js";
import type { Directory, FileSystem } from "../core/index.js";

/** Removes `name` and everything in it; absent is fine. Links are removed, never followed; another file system is never entered. */
export function removeTree(fileSystem: FileSystem, parent: Directory, name: string): void {
  let isDirectory: boolean;
  try {
    isDirectory = parent.lstat(name).isDirectory();
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  if (!isDirectory) {
    fileSystem.unlink(parent.at(name));
    return;
  }
  {
    using directory = parent.child(name);
    if (directory.dev !== parent.dev) throw new Error(`BUG: "${name}" is a mount point`);
    makeWritable(fileSystem, directory);
    for (const each of directory.names()) removeTree(fileSystem, directory, each);
  }
  fileSystem.rmdir(parent.at(name));
}

/** What we made may hold read-only directories; their owner may still remove what is in them. */
function makeWritable(fileSystem: FileSystem, directory: Directory): void {
  try {
    fileSystem.chmod(directory.self(), 0o700);
  } catch (error) {
    if (errnoOf(error) !== "EPERM") throw error;
  }
}
