/**
 * The directories of an exchange (U7): the root, the tree built to take its place, and the stranger that makes way. Owns the
 * two renames and, from the record and the disk alone, what a kill between them left. docs/formats/roots.md has the table.
 *
 * Whatever is met that the table does not have is left where it is.
 */
import path from "node:path";
import { Directory, WorkspaceRootChangedError, errnoOf, isMissing } from "../core/index.js";
import type { Abortable, FileSystem } from "../core/index.js";
import type { StoredIdentity } from "../session-store/index.js";
import { removeStaging } from "./build-root.js";
import { identifyIn, identityFromStored, sameAcrossProcesses } from "./root-identity.js";
import type { RootReader } from "./root-reader.js";
import { withBackup } from "./root-record.js";
import type { RootRecordData, RootSwap } from "./root-record.js";

/** A `RootSwap` whose renames may begin. */
export interface ReadySwap extends RootSwap {
  readonly backup: string;
  readonly built: StoredIdentity;
}

/**
 * Steps 6 and 7. `assertReady` is called right before the first rename. On a failure the stranger is back in its place,
 * unless somebody put something there meanwhile.
 */
export function exchange(
  { fileSystem, root }: RootReader,
  staging: string,
  { backup, stranger }: ReadySwap,
  assertReady: () => void,
): void {
  using parent = Directory.open(fileSystem, path.dirname(root));
  const name = path.basename(root);
  assertReady();
  fileSystem.rename(parent.at(name), parent.at(backup));
  try {
    // The look before and the rename are two calls: what was moved is looked at again.
    if (!stands(fileSystem, parent, backup, stranger)) throw movedAway(root);
    fileSystem.rename(parent.at(staging), parent.at(name));
  } catch (error) {
    if (isFree(parent, name)) fileSystem.rename(parent.at(backup), parent.at(name));
    throw error;
  }
  parent.sync();
}

/**
 * Brings an exchange that was cut short to where either nothing was moved or the tree of ours is in place, and removes what
 * was being built. Idempotent; `assertHeld` is called right before each rename.
 */
export async function settlePlaces(reader: RootReader, assertHeld: () => void, options: Abortable = {}): Promise<void> {
  const { fileSystem, root, record } = reader;
  const recorded = await record.read(options);
  const { swap, staging } = recorded ?? {};
  if (swap?.phase === "renaming" && swap.backup !== undefined && swap.built !== undefined) {
    const settled = settle(fileSystem, root, { ...swap, backup: swap.backup, built: swap.built }, staging, assertHeld);
    await record.update((data) => ({ ...data, ...settled(data) }), options);
  }
  await removeStaging(reader, options);
}

function settle(
  fileSystem: FileSystem,
  root: string,
  swap: ReadySwap,
  staging: string | undefined,
  assertHeld: () => void,
): (data: RootRecordData) => Partial<RootRecordData> {
  const { backup, built, stranger } = swap;
  const begun = { ...swap, phase: "staging", backup: undefined, built: undefined } as const;
  const done = { identity: built, staging: undefined, swap: { ...swap, phase: "swapped" } } as const;
  const parent = openParent(fileSystem, root);
  if (parent === undefined) return () => ({ swap: begun });
  using _parent = parent;
  const name = path.basename(root);
  if (stands(fileSystem, parent, name, built)) return () => done;
  if (!stands(fileSystem, parent, backup, stranger)) return () => ({ swap: begun });
  // Something else was put there in between.
  if (!isFree(parent, name)) return ({ backups }) => ({ swap: begun, ...withBackup(backups, backup) });
  const forward = staging !== undefined && stands(fileSystem, parent, staging, built);
  assertHeld();
  fileSystem.rename(parent.at(forward ? staging : backup), parent.at(name));
  parent.sync();
  return () => (forward ? done : { swap: begun });
}

/** Whether the directory of that name is the one that is on record. */
export function stands(fileSystem: FileSystem, parent: Directory, name: string, recorded: StoredIdentity): boolean {
  const found = identifyIn(fileSystem, parent, name);
  return found !== undefined && sameAcrossProcesses(found, identityFromStored(recorded));
}

function isFree(parent: Directory, name: string): boolean {
  try {
    parent.lstat(name);
    return false;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return true;
    throw error;
  }
}

/** Undefined when even the directory that held the root is gone. */
function openParent(fileSystem: FileSystem, root: string): Directory | undefined {
  try {
    return Directory.open(fileSystem, path.dirname(root));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const movedAway = (root: RootReader["root"]): WorkspaceRootChangedError =>
  new WorkspaceRootChangedError(
    "workspace_root.changed",
    `Cannot build "${root}" anew: another directory was put there in this very moment; look at it, then try again`,
    { root, state: "replaced" },
  );
