/**
 * Takes away what a plan leaves beside the tree: staged files and backups, by their recorded names, and each only while
 * its bytes are ones the store holds. What someone else wrote there, or into it, stays and is reported.
 */
import type { WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { directoriesOf, setDirectoryModes } from "./carry-out.js";
import type { Direction } from "./decide.js";
import { isUnfinished, look, stampOf } from "./observe.js";
import type { Pace, Stamp } from "./observe.js";
import { isDirectory } from "./plan.js";
import type { PlannedEntry } from "./plan.js";
import { reversed } from "./plan-record.js";
import type { PlanRecord } from "./plan-record.js";
import type { TreeAccess } from "./tree-access.js";

/** Bytes that were written beside the plan: they are kept under `storedAs`, next to or above `path`. */
export interface Raced {
  readonly path: WorkspacePath;
  readonly storedAs: WorkspacePath;
}

export interface CleanUpOptions {
  readonly tree: TreeAccess;
  readonly store: Pick<WorkspaceStore, "read">;
  readonly pace: Pace;
  readonly rejoin: () => void;
  readonly doing: (path: WorkspacePath, operation: string) => void;
  /** Which way the plan went, and so which modes its directories have. */
  readonly direction: Direction;
  /** Stamps of backups that this process has read to the end. */
  readonly stamps?: ReadonlyMap<WorkspacePath, Stamp> | undefined;
}

export async function cleanUp(record: PlanRecord, options: CleanUpOptions): Promise<readonly Raced[]> {
  const { tree, store, pace, rejoin, doing, stamps, direction } = options;
  const raced: Raced[] = [];
  const changed = new Set<WorkspacePath>();

  const removeIf = async (
    path: WorkspacePath,
    name: WorkspacePath | undefined,
    entry: PlannedEntry | undefined,
    mayBeUnfinished: boolean,
  ): Promise<void> => {
    if (name === undefined) return;
    doing(path, "clean up after");
    const stats = tree.stat(name);
    if (stats === undefined) return;
    const known = stamps?.get(name);
    const ours =
      (known !== undefined && isUnchanged(known, stampOf(stats))) ||
      (await look(tree, name, [entry], pace)).at === "candidate" ||
      (mayBeUnfinished && (await isUnfinished(tree, name, entry, store)));
    if (ours) {
      tree.unlink(name);
      changed.add(name);
    } else raced.push({ path, storedAs: name });
    await pace();
  };

  for (const { path, expected, target, staged, backup } of record.operations) {
    await removeIf(path, staged, target, true);
    await removeIf(path, backup, expected, false);
  }
  // Before the record goes: a name that came back with the next boot would be nobody's.
  const cleaned = directoriesOf(record.operations.filter((operation) => wasCleaned(operation, changed)));
  await tree.syncAll(cleaned, (path) => doing(path, "sync"));
  rejoin();
  // A directory may have been made writable once more to take something out of it.
  const operations = direction === "forward" ? record.operations : record.operations.map(reversed);
  const modes = operations.filter(({ expected, target }) => isDirectory(expected) && isDirectory(target));
  await setDirectoryModes(record.relaxed, modes, options);
  return raced;
}

const wasCleaned = (
  { staged, backup }: PlanRecord["operations"][number],
  changed: ReadonlySet<WorkspacePath>,
): boolean => (staged !== undefined && changed.has(staged)) || (backup !== undefined && changed.has(backup));

const tickNs = 50_000_000n;

/**
 * Whether the file is untouched since its stamp was taken. Believed only where a later write must show: our own rename
 * set ctime, so a write after it sets an mtime that differs from an old one. A file written in the same tick is read.
 */
const isUnchanged = (a: Stamp, b: Stamp): boolean =>
  a.dev === b.dev &&
  a.ino === b.ino &&
  a.size === b.size &&
  a.mode === b.mode &&
  a.mtimeNs === b.mtimeNs &&
  a.ctimeNs === b.ctimeNs &&
  a.mtimeNs + tickNs < a.ctimeNs &&
  a.mtimeNs % 1_000_000_000n !== 0n;
