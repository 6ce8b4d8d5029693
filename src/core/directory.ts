/**
 * A directory held open, and operations on the names in it (U10).
 *
 * On Linux a handle is an `O_PATH` descriptor and a name in it is reached as `/proc/self/fd/N/name`: each component was
 * opened without following links, so nothing that happens to the path afterwards can send a call elsewhere, and no path
 * is too long. Elsewhere the path is joined, and `assertUnmoved` before and after a call finds a swap that happened.
 *
 * The invariant callers rely on: a call through `at(name)` touches only an entry of this very directory. The last
 * component itself may be a link; whoever must not follow it uses lstat, O_NOFOLLOW, rename, unlink and the like.
 */
import fs from "node:fs";
import type { BigIntStats } from "node:fs";
import { LooprigError } from "./errors.js";
import { errnoOf } from "./file-system.js";
import { invariant } from "./invariant.js";
import type { FileSystem, FsPath } from "./file-system.js";
import { displayName, nameFromBytes, toFsPath } from "./names.js";
import type { WorkspacePath } from "./workspace-path.js";
import { components } from "./workspace-path.js";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;
/** Not in Node's constants. The value is that of every Linux architecture Node runs on. */
const O_PATH = 0o10000000;
const linux = process.platform === "linux";

export class Directory implements Disposable {
  readonly #fs: FileSystem;
  readonly #fd: number;
  readonly #path: string;
  readonly dev: bigint;
  readonly ino: bigint;
  /** What it was like when it was opened. */
  readonly asOpened: BigIntStats;
  #open = true;

  private constructor(fileSystem: FileSystem, fd: number, path: string) {
    this.#fs = fileSystem;
    this.#fd = fd;
    this.#path = path;
    try {
      this.asOpened = fileSystem.fstat(fd);
      this.dev = this.asOpened.dev;
      this.ino = this.asOpened.ino;
    } catch (error) {
      fileSystem.close(fd);
      throw error;
    }
  }

  /** Opens the directory at an absolute path; links in the path are followed, as its owner meant them. */
  static open(fileSystem: FileSystem, path: string): Directory {
    const flags = linux ? O_PATH | O_DIRECTORY : O_RDONLY | O_DIRECTORY;
    return new Directory(fileSystem, fileSystem.open(toFsPath(path), flags), path);
  }

  /**
   * Opens a directory in this one. A link or another kind in its place is ENOTDIR or ELOOP, never followed.
   */
  child(name: string): Directory {
    const flags = (linux ? O_PATH : O_RDONLY) | O_DIRECTORY | O_NOFOLLOW;
    return new Directory(this.#fs, this.#fs.open(this.at(name), flags), `${this.#path}/${name}`);
  }

  /** What to give a file system call to mean `name` in this directory. */
  at(name: string): FsPath {
    // The last guard of U10: names also come from stored trees, and one of these would lead out of the directory.
    invariant(name !== "" && name !== ".." && !name.includes("/"), "BUG: a path was used where a name belongs");
    if (!linux) return toFsPath(`${this.#path}/${name}`);
    return toFsPath(`/proc/self/fd/${this.#fd}/${name}`);
  }

  /** The directory itself, for readdir, stat, chmod and statfs. */
  self(): FsPath {
    return linux ? `/proc/self/fd/${this.#fd}/.` : toFsPath(this.#path);
  }

  lstat(name: string): BigIntStats {
    return this.#fs.lstat(this.at(name));
  }

  /** The names in it, unordered. */
  names(): string[] {
    const names = this.#fs.readdir(this.self()) as string[];
    // U+FFFD is what Node decodes a bad byte to; a name may also hold it rightly, which the bytes then show.
    if (names.some((name) => name.includes("\ufffd"))) return this.#fs.readdirBytes(this.self()).map(nameFromBytes);
    return names;
  }

  /** Where the kernel says this directory is now (Linux), else where it was opened. */
  currentPath(): string {
    if (!linux) return this.#path;
    return nameFromBytes(this.#fs.readlink(`/proc/self/fd/${this.#fd}`));
  }

  /** Makes the names changed in it durable. */
  sync(): void {
    const fd = this.#fs.open(this.self(), O_RDONLY | O_DIRECTORY);
    try {
      this.#fs.fsync(fd);
    } catch (error) {
      // Some file systems cannot sync a directory; they order names themselves.
      if (errnoOf(error) !== "EINVAL") throw error;
    } finally {
      this.#fs.close(fd);
    }
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#fs.close(this.#fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Opens the directory `path` below `root`, component by component, following nothing.
 * Throws `path.escapes` where a component is a link; ENOENT and ENOTDIR stay as they are.
 * The caller closes what is returned; it is never `root` itself.
 */
export function openBelow(root: Directory, path: WorkspacePath): Directory {
  let current = root.child(".");
  for (const name of components(path)) {
    let next: Directory;
    try {
      next = current.child(name);
    } catch (error) {
      if (errnoOf(error) === "ELOOP" || (errnoOf(error) === "ENOTDIR" && isLink(current, name))) {
        throw new LooprigError(
          "path.escapes",
          `Cannot go through ${displayName(name)} in ${displayName(path)}: it is a symbolic link`,
          { path, component: name },
          { cause: error },
        );
      }
      throw error;
    } finally {
      current.close();
    }
    current = next;
  }
  return current;
}

function isLink(directory: Directory, name: string): boolean {
  try {
    return directory.lstat(name).isSymbolicLink();
  } catch {
    return false;
  }
}
