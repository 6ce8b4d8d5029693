/**
 * A root is built from a captured tree (R7, E4): into a directory beside it, which takes its place in one rename, where
 * nothing or an empty directory is.
 *
 * Crash order: the staging directory's name is recorded with the root before it is made; a crash leaves the directory and
 * the record, and whoever next takes the root removes exactly that one. After the rename the root stands; the next opener
 * meets a directory that is not the recorded one and asks for `adoptRoot`, unless the record was still written.
 */
import path from "node:path";
import { Directory, errnoOf, mintPlanId } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { Tree } from "../workspace-store/index.js";
import { removeTree } from "./remove-tree.js";
import { identifyDirectory, storedIdentity } from "./root-identity.js";
import type { RootReader } from "./root-reader.js";

export interface BuildOptions extends Abortable {
  /** Permission bits of the root directory. */
  readonly mode: number;
  /** Called right before the rename: whether the root is still ours to make, and nothing of anybody's stands there. */
  readonly assertFree: () => void;
}

/**
 * Returns the new root, held open; its identity is recorded. Rejects with what the rename meets when the place is not free
 * after all (`ENOTEMPTY`, `EEXIST`, `EBUSY` for a mount point), and with what `materialize` rejects with; nothing is left then.
 */
export async function buildRoot(
  reader: RootReader,
  tree: Tree,
  { mode, assertFree, signal }: BuildOptions,
): Promise<Directory> {
  const { fileSystem, root, record } = reader;
  const staging = await stageRoot(reader, tree, { mode, signal });
  using parent = Directory.open(fileSystem, path.dirname(root));
  try {
    assertFree();
    fileSystem.rename(parent.at(staging), parent.at(path.basename(root)));
  } catch (error) {
    await removeStaging(reader);
    throw error;
  }
  parent.sync();
  const built = Directory.open(fileSystem, root);
  const identity = storedIdentity(identifyDirectory(fileSystem, built));
  await record.update((data) => ({ ...data, identity, staging: undefined }), { signal });
  return built;
}

/** The tree in a directory beside the root, on record and synced; returns its name. Nothing is left when it rejects. */
export async function stageRoot(
  reader: RootReader,
  tree: Tree,
  { mode, signal }: Pick<BuildOptions, "mode" | "signal">,
): Promise<string> {
  const { fileSystem, root, record } = reader;
  await removeStaging(reader, { signal });
  using parent = Directory.open(fileSystem, path.dirname(root));
  const staging = `.${path.basename(root)}.${mintPlanId()}.staging`;
  await record.update((data) => ({ ...data, staging }), { signal });
  try {
    await reader.store.materialize(tree, path.join(path.dirname(root), staging), { durable: true, signal });
    fileSystem.chmod(parent.at(staging), mode);
  } catch (error) {
    await removeStaging(reader);
    throw error;
  }
  return staging;
}

/** What a build that was killed left beside the root: exactly the directory that is on record. */
export async function removeStaging(reader: RootReader, options: Abortable = {}): Promise<void> {
  const { fileSystem, root, record } = reader;
  const recorded = await record.read(options);
  if (recorded?.staging === undefined) return;
  try {
    using parent = Directory.open(fileSystem, path.dirname(root));
    removeTree(fileSystem, parent, recorded.staging);
  } catch (error) {
    // Gone with the directory it was made in.
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  await record.update((data) => ({ ...data, staging: undefined }), options);
}
