/**
 * The one seam to the file system. Every effect of looprig on disk goes through a value of this type, so that a test can
 * fail, delay, count or kill each single call. Calls are synchronous because that is what is fast in Node (three times the
 * speed of `fs.promises` for small files); long work slices them (`pacer`). Asynchronous are those of which one call can take
 * longer than the event loop may be held: `fsyncLater` and `cloneFile`.
 *
 * A method is an *effect* when it changes the disk and an *observation* when it does not; `interceptFileSystem` tells them apart.
 */
import fs from "node:fs";
import type { BigIntStats, StatsFs } from "node:fs";

export type FsPath = string | Buffer;

export interface FileSystem {
  // observations
  lstat(path: FsPath): BigIntStats;
  stat(path: FsPath): BigIntStats;
  fstat(fd: number): BigIntStats;
  readdir(path: FsPath): Buffer[] | string[];
  /** The names as bytes, for directories in which some name is not UTF-8. */
  readdirBytes(path: FsPath): Buffer[];
  readlink(path: FsPath): Buffer;
  realpath(path: string): string;
  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number | null): number;
  statfs(path: FsPath): StatsFs;
  // effects (`open` is one exactly when its flags can create, truncate or write)
  open(path: FsPath, flags: number, mode?: number): number;
  close(fd: number): void;
  write(fd: number, buffer: Uint8Array, offset: number, length: number, position: number | null): number;
  ftruncate(fd: number, length: number): void;
  fsync(fd: number): void;
  fsyncLater(fd: number): Promise<void>;
  fchmod(fd: number, mode: number): void;
  fchown(fd: number, uid: number, gid: number): void;
  chmod(path: FsPath, mode: number): void;
  mkdir(path: FsPath, mode: number): void;
  rmdir(path: FsPath): void;
  unlink(path: FsPath): void;
  rename(from: FsPath, to: FsPath): void;
  link(from: FsPath, to: FsPath): void;
  symlink(target: FsPath, path: FsPath): void;
  /**
   * Makes `to`, which must not exist, a file that shares the blocks of `from` until either is written to. Rejects where the
   * file system cannot (ENOTSUP, EXDEV, ...) rather than copy.
   */
  cloneFile(from: FsPath, to: FsPath): Promise<void>;
}

/** The real one. */
export const nodeFileSystem: FileSystem = {
  lstat: (path) => fs.lstatSync(path, { bigint: true }),
  stat: (path) => fs.statSync(path, { bigint: true }),
  fstat: (fd) => fs.fstatSync(fd, { bigint: true }),
  readdir: (path) => fs.readdirSync(path),
  readdirBytes: (path) => fs.readdirSync(path, { encoding: "buffer" }),
  readlink: (path) => fs.readlinkSync(path, { encoding: "buffer" }),
  realpath: (path) => fs.realpathSync.native(path),
  read: (fd, buffer, offset, length, position) => fs.readSync(fd, buffer, offset, length, position),
  statfs: (path) => fs.statfsSync(path),
  open: (path, flags, mode) => fs.openSync(path, flags, mode),
  close: (fd) => fs.closeSync(fd),
  write: (fd, buffer, offset, length, position) => fs.writeSync(fd, buffer, offset, length, position),
  ftruncate: (fd, length) => fs.ftruncateSync(fd, length),
  fsync: (fd) => fs.fsyncSync(fd),
  fsyncLater: (fd) => new Promise((resolve, reject) => fs.fsync(fd, (error) => (error ? reject(error) : resolve()))),
  fchmod: (fd, mode) => fs.fchmodSync(fd, mode),
  fchown: (fd, uid, gid) => fs.fchownSync(fd, uid, gid),
  chmod: (path, mode) => fs.chmodSync(path, mode),
  mkdir: (path, mode) => {
    fs.mkdirSync(path, { mode });
  },
  rmdir: (path) => fs.rmdirSync(path),
  unlink: (path) => fs.unlinkSync(path),
  rename: (from, to) => fs.renameSync(from, to),
  link: (from, to) => fs.linkSync(from, to),
  symlink: (target, path) => fs.symlinkSync(target, path),
  cloneFile: (from, to) =>
    new Promise((resolve, reject) => {
      const how = fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE_FORCE;
      fs.copyFile(from, to, how, (error) => (error ? reject(error) : resolve()));
    }),
};

export interface FileSystemCall {
  readonly name: keyof FileSystem;
  readonly args: readonly unknown[];
  readonly effect: boolean;
}

const effects: ReadonlySet<keyof FileSystem> = new Set<keyof FileSystem>([
  "write",
  "ftruncate",
  "fsync",
  "fsyncLater",
  "fchmod",
  "fchown",
  "chmod",
  "mkdir",
  "rmdir",
  "unlink",
  "rename",
  "link",
  "symlink",
  "cloneFile",
]);
const asynchronous: ReadonlySet<keyof FileSystem> = new Set<keyof FileSystem>(["fsyncLater", "cloneFile"]);

const { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC } = fs.constants;

/** Calls `before` ahead of every call: it may throw (the call fails), kill the process, or look on. */
export function interceptFileSystem(base: FileSystem, before: (call: FileSystemCall) => void): FileSystem {
  const methods = base as unknown as Readonly<Record<keyof FileSystem, (...args: unknown[]) => unknown>>;
  const wrap = (name: keyof FileSystem) => {
    const method = methods[name];
    return (...args: unknown[]): unknown => {
      const effect =
        effects.has(name) || (name === "open" && ((args[1] as number) & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) !== 0);
      if (!asynchronous.has(name)) {
        before({ name, args, effect });
        return method(...args);
      }
      // An asynchronous method fails the way its callers expect: by rejecting.
      return new Promise((resolve) => {
        before({ name, args, effect });
        resolve(method(...args));
      });
    };
  };
  const names = Object.keys(base) as (keyof FileSystem)[];
  return Object.fromEntries(names.map((name) => [name, wrap(name)])) as unknown as FileSystem;
}

/** The code of an operating system error ("ENOENT"), or undefined. */
export function errnoOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}

export const isMissing = (error: unknown): boolean => {
  const code = errnoOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
};
export const isFull = (error: unknown): boolean => {
  const code = errnoOf(error);
  return code === "ENOSPC" || code === "EDQUOT";
};
