/**
 * Single effects on paths below a root, each relative to an opened directory and through no link (U10).
 *
 * Owned here: opening parents, and making recorded directories writable where the system refused (nothing is relaxed
 * where nothing was refused). Not owned: what is done and in which order, which is `carry-out`'s.
 *
 * Directories stay open between calls of one synchronous slice, at most `openMax` of them; whoever lets others run calls
 * `release`, so that a directory that was swapped meanwhile is found anew by its path.
 */
import fs from "node:fs";
import type { BigIntStats } from "node:fs";
import {
  baseName,
  errnoOf,
  isLooprigError,
  isMissing,
  isWithin,
  nameFromBytes,
  openBelow,
  parentOf,
  rootPath,
  toFsPath,
} from "../../core/index.js";
import type { Directory, FileSystem, FsPath, WorkspacePath } from "../../core/index.js";
import { hasOtherNames } from "./observe.js";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = fs.constants;
/** Not in Node's constants; the value is that of every Linux architecture Node runs on. */
const O_PATH = 0o10000000;
const linux = process.platform === "linux";
const openMax = 8;
/** Directories that are synced at once; each holds a descriptor. */
const syncsMax = 32;

/** Errors by which a file system says that it has no hard links, or none for this file. */
const noLinks: ReadonlySet<string | undefined> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
  "EXDEV",
]);
const permissionBits = 0o7777n;
const specialBits = 0o7000;

export interface TreeAccessOptions {
  readonly fileSystem: FileSystem;
  readonly root: Directory;
  /** Whether a directory may be made writable for a moment; its mode is given back by `carry-out`. */
  readonly mayRelax: (directory: WorkspacePath) => boolean;
  /** Paths of which another one might be the same name to the volume: they exist only if a listing says so. */
  readonly aliased?: ReadonlySet<WorkspacePath> | undefined;
}

export class TreeAccess {
  readonly fileSystem: FileSystem;
  readonly #root: Directory;
  readonly #mayRelax: (directory: WorkspacePath) => boolean;
  readonly #aliased: ReadonlySet<WorkspacePath>;
  readonly #open = new Map<WorkspacePath, Directory>();
  readonly #modesSet = new Set<string>();
  /** Directories this value made writable. */
  readonly relaxed = new Set<WorkspacePath>();

  constructor({ fileSystem, root, mayRelax, aliased }: TreeAccessOptions) {
    this.fileSystem = fileSystem;
    this.#root = root;
    this.#mayRelax = mayRelax;
    this.#aliased = aliased ?? new Set();
  }

  /** What stands at the path itself; undefined when nothing does, or its parent is no directory or is reached by a link. */
  stat(path: WorkspacePath): BigIntStats | undefined {
    try {
      if (path === rootPath) return this.fileSystem.stat(this.#root.self());
      const stats = this.#at([path], (at) => this.fileSystem.lstat(at));
      return this.#isAlias(path) ? undefined : stats;
    } catch (error) {
      if (isMissing(error) || isLooprigError(error, "path.escapes")) return undefined;
      throw error;
    }
  }

  /** The names in a directory, unordered. */
  names(directory: WorkspacePath): string[] {
    return this.#retry([directory], () => this.#directory(directory).names(), true);
  }

  readlink(path: WorkspacePath): string {
    return nameFromBytes(this.#at([path], (at) => this.fileSystem.readlink(at)));
  }

  /** Opens for reading; never blocks on a fifo, never follows a link. The caller closes. */
  openFile(path: WorkspacePath): number {
    return this.#at([path], (at) => this.fileSystem.open(at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  }

  create(path: WorkspacePath, flags: number, mode: number): number {
    return this.#at([path], (at) => this.fileSystem.open(at, flags, mode));
  }

  symlink(target: string, path: WorkspacePath): void {
    this.#at([path], (at) => this.fileSystem.symlink(toFsPath(target), at));
  }

  unlink(path: WorkspacePath): void {
    this.#at([path], (at) => this.fileSystem.unlink(at));
  }

  /** The caller knows that `to` is free: a name of ours that was just looked at. */
  rename(from: WorkspacePath, to: WorkspacePath): void {
    this.#at([from, to], (a, b) => this.fileSystem.rename(a, b));
  }

  mkdir(path: WorkspacePath, mode: number): void {
    this.#at([path], (at) => this.fileSystem.mkdir(at, mode));
  }

  rmdir(path: WorkspacePath): void {
    this.#forget(path);
    this.#at([path], (at) => this.fileSystem.rmdir(at));
  }

  /**
   * Gives what stands at `from` the name `to`, if that is free, and takes the old name away. False when it is not free.
   * A link is made anew, since link(2) follows it on some systems. Without hard links: a check and a rename.
   */
  moveNoReplace(from: WorkspacePath, to: WorkspacePath): boolean {
    try {
      if (this.stat(from)?.isSymbolicLink() === true) this.symlink(this.readlink(from), to);
      else this.#at([from, to], (a, b) => this.fileSystem.link(a, b));
    } catch (error) {
      if (errnoOf(error) === "EEXIST") return false;
      if (!noLinks.has(errnoOf(error))) throw error;
      if (this.stat(to) !== undefined) return false;
      this.rename(from, to);
      return true;
    }
    this.unlink(from);
    return true;
  }

  /**
   * Sets the permission bits of a file or directory, durably, and never of what a link points to. Set-id and sticky bits
   * stay as they are. False when something of another kind, another file than `ino`, or a file that has other names too
   * stands there: those may be outside the root, and would change with it (U10). A file whose mode this value has set before
   * is ours to set back, whatever names it got since.
   */
  setMode(path: WorkspacePath, mode: number, kind: "file" | "directory", ino?: bigint): boolean {
    if (path === rootPath) {
      const stats = this.fileSystem.stat(this.#root.self());
      this.fileSystem.chmod(this.#root.self(), mode | special(stats));
      return true;
    }
    const stats = this.stat(path);
    if (stats === undefined || !isKind(stats, kind) || (ino !== undefined && stats.ino !== ino)) return false;
    const fd = this.#openForMode(path, kind);
    try {
      const opened = this.fileSystem.fstat(fd.fd);
      if (opened.ino !== stats.ino || !isKind(opened, kind)) return false;
      const identity = `${opened.dev}:${opened.ino}`;
      if (hasOtherNames(opened) && !this.#modesSet.has(identity)) return false;
      if (kind === "file") this.#modesSet.add(identity);
      if (fd.pathOnly) this.fileSystem.chmod(`/proc/self/fd/${fd.fd}`, mode | special(opened));
      else {
        this.fileSystem.fchmod(fd.fd, mode | special(opened));
        syncFile(this.fileSystem, fd.fd);
      }
      return true;
    } finally {
      this.fileSystem.close(fd.fd);
    }
  }

  /**
   * Makes the names in these directories durable; one that is gone has none. Beside each other: a file system gathers syncs
   * that it is asked for at once into one commit. Others run meanwhile. `doing` is told of the one that failed.
   */
  async syncAll(directories: readonly WorkspacePath[], doing: (path: WorkspacePath) => void): Promise<void> {
    for (let from = 0; from < directories.length; from += syncsMax) {
      const opened: { readonly path: WorkspacePath; readonly fd: number }[] = [];
      try {
        for (const path of directories.slice(from, from + syncsMax)) {
          doing(path);
          const fd = this.#openForSync(path);
          if (fd !== undefined) opened.push({ path, fd });
        }
        this.release();
        const synced = await Promise.allSettled(opened.map(({ fd }) => this.fileSystem.fsyncLater(fd)));
        for (const [i, result] of synced.entries()) {
          // Some file systems cannot sync a directory; they order names themselves.
          if (result.status === "fulfilled" || errnoOf(result.reason) === "EINVAL") continue;
          doing(opened[i]?.path ?? rootPath);
          throw result.reason;
        }
      } finally {
        for (const { fd } of opened) this.fileSystem.close(fd);
      }
    }
  }

  #openForSync(directory: WorkspacePath): number | undefined {
    try {
      const open = (): number => this.fileSystem.open(this.#directory(directory).self(), O_RDONLY | O_DIRECTORY);
      return this.#retry([directory], open, true);
    } catch (error) {
      if (isMissing(error) || isLooprigError(error, "path.escapes")) return undefined;
      throw error;
    }
  }

  /** Closes what is open. Called before others run, and at the end. */
  release(): void {
    for (const directory of this.#open.values()) directory.close();
    this.#open.clear();
  }

  #at<T>(paths: readonly [WorkspacePath], call: (at: FsPath) => T): T;
  #at<T>(paths: readonly [WorkspacePath, WorkspacePath], call: (a: FsPath, b: FsPath) => T): T;
  #at<T>(paths: readonly WorkspacePath[], call: (...at: [FsPath, FsPath]) => T): T {
    return this.#retry(paths, () => {
      const at = paths.map((path) => this.#directory(parentOf(path)).at(baseName(path)));
      return call(...(at as [FsPath, FsPath]));
    });
  }

  #retry<T>(paths: readonly WorkspacePath[], call: () => T, itself = false): T {
    try {
      return call();
    } catch (error) {
      if (errnoOf(error) !== "EACCES" || !this.#relaxAlong(paths, itself)) throw error;
      return call();
    }
  }

  /** Makes the recorded directories on the way to the paths writable; whether that changed anything. */
  #relaxAlong(paths: readonly WorkspacePath[], itself: boolean): boolean {
    let changed = false;
    for (const path of paths) {
      const parts = path.split("/");
      for (let depth = 0; depth < parts.length + (itself && path !== rootPath ? 1 : 0); depth++) {
        const directory = parts.slice(0, depth).join("/") as WorkspacePath;
        if (!this.#mayRelax(directory)) continue;
        const stats = this.stat(directory);
        if (stats?.isDirectory() !== true || (stats.mode & 0o700n) === 0o700n) continue;
        // Noted first: a call that fails may have done its work all the same.
        const before = this.relaxed.has(directory);
        this.relaxed.add(directory);
        if (this.setMode(directory, Number(stats.mode & 0o777n) | 0o700, "directory", stats.ino)) changed = true;
        else if (!before) this.relaxed.delete(directory);
      }
    }
    return changed;
  }

  #directory(path: WorkspacePath): Directory {
    const known = this.#open.get(path);
    const directory = known ?? openBelow(this.#root, path);
    // Last used, last in order: a call that needs two directories never loses the first to the opening of the second.
    this.#open.delete(path);
    this.#open.set(path, directory);
    const oldest = this.#open.size > openMax ? this.#open.entries().next().value : undefined;
    if (oldest !== undefined) {
      oldest[1].close();
      this.#open.delete(oldest[0]);
    }
    return directory;
  }

  #forget(path: WorkspacePath): void {
    for (const [open, handle] of this.#open) {
      if (!isWithin(open, path)) continue;
      handle.close();
      this.#open.delete(open);
    }
  }

  #openForMode(path: WorkspacePath, kind: "file" | "directory"): { readonly fd: number; readonly pathOnly: boolean } {
    const flags = O_NOFOLLOW | (kind === "directory" ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY);
    return this.#at([path], (at) => {
      try {
        return { fd: this.fileSystem.open(at, O_RDONLY | flags), pathOnly: false };
      } catch (error) {
        // What may not be read can still be named, and its owner may change its mode.
        if (errnoOf(error) !== "EACCES" || !linux) throw error;
        return { fd: this.fileSystem.open(at, O_PATH | O_NOFOLLOW), pathOnly: true };
      }
    });
  }

  /** Whether the volume found the path under another spelling of one of its names. */
  #isAlias(path: WorkspacePath): boolean {
    if (this.#aliased.size === 0) return false;
    for (let at = path; at !== rootPath; at = parentOf(at)) {
      if (this.#aliased.has(at) && !this.names(parentOf(at)).includes(baseName(at))) return true;
    }
    return false;
  }
}

const special = (stats: BigIntStats): number => Number(stats.mode & permissionBits) & specialBits;
const isKind = (stats: BigIntStats, kind: "file" | "directory"): boolean =>
  kind === "file" ? stats.isFile() : stats.isDirectory();

function syncFile(fileSystem: FileSystem, fd: number): void {
  try {
    fileSystem.fsync(fd);
  } catch (error) {
    if (errnoOf(error) !== "EINVAL") throw error;
  }
}
