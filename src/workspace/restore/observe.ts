/**
 * What stands at a path, compared with what may stand there: by kind, permission bits, link target and content digest.
 * Time stamps are never proof of content; a stamp only says that a file looked at in this very call is the same one still.
 */
import type { BigIntStats } from "node:fs";
import type { WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { hashFile, readFully } from "./content-hash.js";
import type { PlannedEntry } from "./plan.js";
import type { TreeAccess } from "./tree-access.js";

/** Identity of what was looked at. */
export interface Stamp {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mode: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

export type Look =
  | { readonly at: "absent" }
  /** `index` is that of the first candidate that equals it. Directories compare by kind alone. */
  | { readonly at: "candidate"; readonly index: number; readonly stamp: Stamp }
  | { readonly at: "other"; readonly stamp: Stamp };

export type Pace = () => Promise<void> | undefined;

export const permissionsOf = (stamp: Pick<Stamp, "mode">): number => Number(stamp.mode & 0o777n);

/** Whether the file is reached by another name too: what is done to it where it stands is done to that name. */
export const hasOtherNames = (stats: BigIntStats | undefined): boolean => stats?.isFile() === true && stats.nlink > 1n;

export const stampOf = ({ dev, ino, size, mode, mtimeNs, ctimeNs }: BigIntStats): Stamp => ({
  dev,
  ino,
  size,
  mode,
  mtimeNs,
  ctimeNs,
});

/** Whether it is the same file with the same content, as far as a stamp can say; renaming changes ctime and is allowed. */
export const sameFile = (a: Stamp, b: Stamp): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.size === b.size && a.mode === b.mode && a.mtimeNs === b.mtimeNs;

export async function look(
  tree: TreeAccess,
  path: WorkspacePath,
  candidates: readonly (PlannedEntry | undefined)[],
  pace: Pace,
): Promise<Look> {
  const stats = tree.stat(path);
  if (stats === undefined) return { at: "absent" };
  const stamp = stampOf(stats);
  if (stats.isDirectory())
    return found(
      candidates.findIndex((entry) => entry?.kind === "directory"),
      stamp,
    );
  if (stats.isSymbolicLink()) {
    if (!candidates.some((entry) => entry?.kind === "symlink")) return { at: "other", stamp };
    const target = tree.readlink(path);
    return found(
      candidates.findIndex((entry) => entry?.kind === "symlink" && entry.target === target),
      stamp,
    );
  }
  const alike = (entry: PlannedEntry | undefined): boolean =>
    entry?.kind === "file" && entry.mode === permissionsOf(stamp) && BigInt(entry.size) === stamp.size;
  if (!stats.isFile() || !candidates.some(alike)) return { at: "other", stamp };
  const id = await digest(tree, path, stamp, pace);
  return found(
    candidates.findIndex((entry) => alike(entry) && entry?.kind === "file" && entry.id === id),
    stamp,
  );
}

const found = (index: number, stamp: Stamp): Look =>
  index < 0 ? { at: "other", stamp } : { at: "candidate", index, stamp };

/** The content id of the file whose stamp was taken, or undefined when it changed while it was read. */
async function digest(tree: TreeAccess, path: WorkspacePath, stamp: Stamp, pace: Pace): Promise<string | undefined> {
  const { fileSystem } = tree;
  const fd = tree.openFile(path);
  try {
    const before = stampOf(fileSystem.fstat(fd));
    if (!sameFile(before, stamp)) return undefined;
    const id = await hashFile(fileSystem, fd, Number(stamp.size), pace);
    const after = stampOf(fileSystem.fstat(fd));
    return sameFile(after, stamp) && after.ctimeNs === before.ctimeNs ? id : undefined;
  } finally {
    fileSystem.close(fd);
  }
}

/**
 * Whether the file at `path` is one of ours that is not complete, or not complete with its mode: its bytes are the first
 * of the target's, which the store holds, so nothing is lost with it. Doubt, also of the store, says no.
 */
export async function isUnfinished(
  tree: TreeAccess,
  path: WorkspacePath,
  target: PlannedEntry | undefined,
  store: Pick<WorkspaceStore, "read">,
): Promise<boolean> {
  const stats = tree.stat(path);
  if (target?.kind !== "file" || stats?.isFile() !== true || stats.size > BigInt(target.size)) return false;
  if (stats.size === 0n) return true;
  const { fileSystem } = tree;
  const fd = tree.openFile(path);
  try {
    let left = Number(fileSystem.fstat(fd).size);
    let position = 0;
    for await (const piece of store.read(target, { path })) {
      const own = Buffer.alloc(Math.min(piece.length, left));
      if (readFully(fileSystem, fd, own, position) !== own.length || !own.equals(piece.subarray(0, own.length))) {
        return false;
      }
      position += own.length;
      left -= own.length;
      if (left === 0) return true;
    }
    return left === 0;
  } catch {
    return false;
  } finally {
    fileSystem.close(fd);
  }
}
