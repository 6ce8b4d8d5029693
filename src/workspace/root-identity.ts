/**
 * Which directory a root is (R7). A path is only where it was; device, inode and birth time say whether what stands there
 * now is the same directory, so that no operation succeeds on the wrong one and none recreates a missing one silently.
 *
 * The device number counts within a process only: it changes with reboots and mounts. The birth time is what tells a new
 * directory from a removed one whose inode was given out again; file systems without one report 0, which matches any.
 */
import { displayName, isMissing, WorkspaceRootChangedError } from "../core/index.js";
import type { CanonicalRoot, Directory, FileSystem, FsPath } from "../core/index.js";
import type { StoredIdentity } from "../session-store/index.js";

export interface RootIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
  /** 0 where the file system keeps none. */
  readonly birthtimeNs: bigint;
  /** Permission bits, for making the directory again. No part of the comparison. */
  readonly mode: number;
}

/** The identity of the directory at `root`, which no link stands for; undefined when no directory is there. */
export function identify(fileSystem: FileSystem, root: CanonicalRoot): RootIdentity | undefined {
  return identityAt(fileSystem, root);
}

/** The identity of the directory of that name in an opened one; undefined when none is there. */
export const identifyIn = (fileSystem: FileSystem, parent: Directory, name: string): RootIdentity | undefined =>
  identityAt(fileSystem, parent.at(name));

/** The identity of a directory held open, wherever it is now. */
export function identifyDirectory(fileSystem: FileSystem, directory: Directory): RootIdentity {
  return toIdentity(fileSystem.stat(directory.self()));
}

/** Whether both are one directory, both having been read by this process. */
export const sameWithinProcess = (a: RootIdentity, b: RootIdentity): boolean =>
  a.dev === b.dev && sameAcrossProcesses(a, b);

/** Whether both are one directory, one of them having been read in another process or before a reboot. */
export const sameAcrossProcesses = (a: RootIdentity, b: RootIdentity): boolean =>
  a.ino === b.ino && (a.birthtimeNs === b.birthtimeNs || a.birthtimeNs === 0n || b.birthtimeNs === 0n);

export const storedIdentity = ({ dev, ino, birthtimeNs, mode }: RootIdentity): StoredIdentity => ({
  dev: String(dev),
  ino: String(ino),
  birthtimeNs: String(birthtimeNs),
  mode,
});

export const identityFromStored = ({ dev, ino, birthtimeNs, mode }: StoredIdentity): RootIdentity => ({
  dev: BigInt(dev),
  ino: BigInt(ino),
  birthtimeNs: BigInt(birthtimeNs),
  mode,
});

/**
 * Throws `WorkspaceRootChangedError` unless the directory at `root` is the recorded one, which `handle` holds open since it
 * was recorded. "replaced": something else stands there; "moved": nothing does, and the directory is elsewhere (`movedTo`);
 * "missing": nothing does, and it was removed or cannot be found. `movedTo` also comes with "replaced" when it is known.
 */
export function checkRoot(
  fileSystem: FileSystem,
  handle: Directory,
  root: CanonicalRoot,
  recorded: RootIdentity,
): void {
  const found = identityAt(fileSystem, root);
  if (found !== undefined && sameWithinProcess(found, recorded)) return;
  const movedTo = whereabouts(fileSystem, handle, root, recorded);
  const replaced = found !== undefined || exists(fileSystem, root);
  throw changed(root, replaced ? "replaced" : movedTo === undefined ? "missing" : "moved", movedTo);
}

/** The same for a root recorded by an earlier process (a resume), of which no handle is left to ask for its whereabouts. */
export function checkRecordedRoot(fileSystem: FileSystem, root: CanonicalRoot, recorded: RootIdentity): RootIdentity {
  const found = identityAt(fileSystem, root);
  if (found !== undefined && sameAcrossProcesses(found, recorded)) return found;
  throw changed(root, found !== undefined || exists(fileSystem, root) ? "replaced" : "missing", undefined);
}

/** Where the held directory is now. The kernel's answer may be stale or end in " (deleted)", so it is looked at. */
function whereabouts(
  fileSystem: FileSystem,
  handle: Directory,
  root: CanonicalRoot,
  recorded: RootIdentity,
): string | undefined {
  const path = handle.currentPath();
  if (path === root) return undefined;
  const found = identityAt(fileSystem, path);
  return found !== undefined && sameWithinProcess(found, recorded) ? path : undefined;
}

function identityAt(fileSystem: FileSystem, path: FsPath): RootIdentity | undefined {
  const stat = lstat(fileSystem, path);
  return stat?.isDirectory() === true ? toIdentity(stat) : undefined;
}

const exists = (fileSystem: FileSystem, path: string): boolean => lstat(fileSystem, path) !== undefined;

function lstat(fileSystem: FileSystem, path: FsPath): ReturnType<FileSystem["lstat"]> | undefined {
  try {
    return fileSystem.lstat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const toIdentity = ({ dev, ino, birthtimeNs, mode }: ReturnType<FileSystem["lstat"]>): RootIdentity => ({
  dev,
  ino,
  birthtimeNs: birthtimeNs > 0n ? birthtimeNs : 0n,
  mode: Number(mode & 0o777n),
});

function changed(
  root: CanonicalRoot,
  state: "replaced" | "moved" | "missing",
  movedTo: string | undefined,
): WorkspaceRootChangedError {
  const elsewhere = movedTo === undefined ? "" : `, and the one recorded is now ${displayName(movedTo)}`;
  const what = {
    replaced: `another directory or file stands there now${elsewhere}; adopt it, or choose the one that was recorded`,
    moved: `the directory was moved to ${displayName(movedTo ?? "")}; move it back, or choose it there`,
    missing: "the directory is gone; restore it, or choose another",
  }[state];
  return new WorkspaceRootChangedError("workspace_root.changed", `Cannot go on in ${displayName(root)}: ${what}`, {
    root,
    state,
    ...(movedTo === undefined ? {} : { movedTo }),
  });
}
