/** File systems that this machine does not have, played by the seam. For tests. */
import fs from "node:fs";
import path from "node:path";
import type { FileSystem, FsPath } from "../../../core/index.js";
import { unsyncedFileSystem } from "./scene.js";

const refuse = (code: string, what: string): never => {
  throw Object.assign(new Error(`${code}: ${what}`), { code });
};

const { O_CREAT, O_WRONLY, O_RDWR, O_DIRECTORY } = fs.constants;
const O_PATH = 0o10000000;

/** Permissions as they are for an owner who is not root. */
export function asOwner(base: FileSystem = unsyncedFileSystem): FileSystem {
  const parentMode = (at: FsPath): number => fs.statSync(path.dirname(String(at))).mode;
  const search = (at: FsPath): void => {
    if ((parentMode(at) & 0o100) === 0) refuse("EACCES", `search ${String(at)}`);
  };
  const change = (at: FsPath): void => {
    search(at);
    if ((parentMode(at) & 0o200) === 0) refuse("EACCES", `write ${String(at)}`);
  };
  return {
    ...base,
    lstat: (at) => (search(at), base.lstat(at)),
    open: (at, flags, mode) => {
      if ((flags & O_CREAT) !== 0) change(at);
      else {
        search(at);
        const found = fs.lstatSync(at, { throwIfNoEntry: false });
        const wanted = (flags & (O_WRONLY | O_RDWR)) === 0 ? 0o400 : 0o200;
        const named = (flags & O_PATH) !== 0;
        const isTarget = found?.isFile() === true || ((flags & O_DIRECTORY) !== 0 && found?.isDirectory() === true);
        if (!named && isTarget && (found.mode & wanted) === 0) refuse("EACCES", `open ${String(at)}`);
      }
      return base.open(at, flags, mode);
    },
    mkdir: (at, mode) => {
      change(at);
      base.mkdir(at, mode);
    },
    rmdir: (at) => {
      change(at);
      base.rmdir(at);
    },
    unlink: (at) => {
      change(at);
      base.unlink(at);
    },
    rename: (from, to) => {
      change(from);
      change(to);
      base.rename(from, to);
    },
    link: (from, to) => {
      search(from);
      change(to);
      base.link(from, to);
    },
    symlink: (target, at) => {
      change(at);
      base.symlink(target, at);
    },
  };
}

/** No hard links: FAT, some network and FUSE mounts. */
export const withoutLinks = (base: FileSystem = unsyncedFileSystem): FileSystem => ({
  ...base,
  link: (_, to) => refuse("EPERM", `link ${String(to)}`),
});

/** One name for all spellings that differ in case or composition only, and the spelling of who made it kept. */
export function folding(base: FileSystem = unsyncedFileSystem): FileSystem {
  const fold = (name: string): string => name.normalize("NFC").toLowerCase();
  /** The spelling that is there, if any. */
  const there = <P extends FsPath>(at: P): P => {
    if (typeof at !== "string" || !at.startsWith("/proc/self/fd/")) return at;
    const parent = path.dirname(at);
    const name = path.basename(at);
    if (name === "." || !fs.statSync(parent).isDirectory()) return at;
    const found = fs.readdirSync(parent).find((known) => fold(known) === fold(name));
    return found === undefined ? at : (`${parent}/${found}` as P & string);
  };
  return {
    ...base,
    lstat: (at) => base.lstat(there(at)),
    readlink: (at) => base.readlink(there(at)),
    open: (at, flags, mode) => base.open(there(at), flags, mode),
    mkdir: (at, mode) => base.mkdir(there(at), mode),
    rmdir: (at) => base.rmdir(there(at)),
    unlink: (at) => base.unlink(there(at)),
    rename: (from, to) => base.rename(there(from), there(to)),
    link: (from, to) => base.link(there(from), there(to)),
    symlink: (target, at) => base.symlink(target, there(at)),
  };
}
