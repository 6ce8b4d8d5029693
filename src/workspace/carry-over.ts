/**
 * What a capture omitted of a directory that made way is carried to the same paths of the one that took its place (U7): moved
 * as it is, never copied, and nothing is ever written over (docs/formats/roots.md, rule 2). Both directories are held open
 * and no link is followed (U10). It can be killed anywhere and run again: what is carried is not there any more.
 */
import { baseName, components, errnoOf, isLooprigError, openBelow, pacer, parentOf } from "../core/index.js";
import type { Abortable, Directory, FileSystem, WorkspacePath } from "../core/index.js";
import { visitTree } from "../workspace-store/index.js";
import type { Tree } from "../workspace-store/index.js";

type Stats = ReturnType<Directory["lstat"]>;

export interface Carrying extends Abortable {
  readonly fileSystem: FileSystem;
  readonly from: Directory;
  readonly to: Directory;
  /** What was captured of `from`. */
  readonly captured: Tree;
  /** What `to` was built from: where it has something, nothing is put. */
  readonly built: Tree;
  /** Directories that stay: our own stores (B2). */
  readonly ownDirectories: readonly { readonly dev: bigint; readonly ino: bigint }[];
  readonly assertHeld: () => void;
}

/** Returns the omitted paths that could not be carried and are still where they were. */
export async function carryOver(carrying: Carrying): Promise<readonly WorkspacePath[]> {
  const stay: WorkspacePath[] = [];
  const pace = pacer(carrying.signal);
  for await (const { path, entry } of visitTree(carrying.captured, carrying)) {
    if (entry.kind !== "omitted") continue;
    await pace();
    const there = await carrying.built.lookup(path);
    if (!carry(carrying, path, there === undefined || there.kind === "omitted")) stay.push(path);
  }
  return stay;
}

/** Whether nothing of it is left in its old place. A refusal of the system is a no. */
function carry(carrying: Carrying, path: WorkspacePath, free: boolean): boolean {
  const { from, to, ownDirectories, assertHeld } = carrying;
  try {
    const source = openBelow(from, parentOf(path));
    using _source = source;
    const name = baseName(path);
    const stat = source.lstat(name);
    if (!free || ownDirectories.some(({ dev, ino }) => dev === stat.dev && ino === stat.ino)) return false;
    using target = openOrMake(carrying, to, parentOf(path));
    assertHeld();
    if (stat.isDirectory()) moveDirectory(carrying.fileSystem, source, target, name);
    else moveFile(carrying.fileSystem, source, target, name);
    target.sync();
    return true;
  } catch (error) {
    if (errnoOf(error) === undefined && !isLooprigError(error, "path.escapes")) throw error;
    return isGone(from, path);
  }
}

/** A link is made only where no name is; the old name goes after it. */
function moveFile(fileSystem: FileSystem, source: Directory, target: Directory, name: string): void {
  try {
    fileSystem.link(source.at(name), target.at(name));
  } catch (error) {
    if (errnoOf(error) !== "EEXIST" || !isSameFile(source.lstat(name), target.lstat(name))) throw error;
  }
  fileSystem.unlink(source.at(name));
}

const isSameFile = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;

/** A directory takes the place of an empty one, and of nothing else. */
function moveDirectory(fileSystem: FileSystem, source: Directory, target: Directory, name: string): void {
  let made = true;
  try {
    fileSystem.mkdir(target.at(name), 0o700);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    made = false;
  }
  try {
    fileSystem.rename(source.at(name), target.at(name));
  } catch (error) {
    if (made) fileSystem.rmdir(target.at(name));
    throw error;
  }
}

/** The directory at `path` below the new root; parents that are missing are made as the old ones are, and writable. */
function openOrMake({ fileSystem, from }: Carrying, to: Directory, path: WorkspacePath): Directory {
  let [old, made] = [from.child("."), to.child(".")];
  try {
    for (const name of components(path)) {
      const nextOld = old.child(name);
      old.close();
      old = nextOld;
      const nextMade = childOrNew(fileSystem, made, name, Number(fileSystem.stat(old.self()).mode & 0o777n) | 0o700);
      made.close();
      made = nextMade;
    }
    return made;
  } catch (error) {
    made.close();
    throw error;
  } finally {
    old.close();
  }
}

function childOrNew(fileSystem: FileSystem, directory: Directory, name: string, mode: number): Directory {
  try {
    return directory.child(name);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  fileSystem.mkdir(directory.at(name), mode);
  fileSystem.chmod(directory.at(name), mode);
  directory.sync();
  return directory.child(name);
}

function isGone(from: Directory, path: WorkspacePath): boolean {
  try {
    using directory = openBelow(from, parentOf(path));
    directory.lstat(baseName(path));
    return false;
  } catch (error) {
    return errnoOf(error) === "ENOENT";
  }
}
