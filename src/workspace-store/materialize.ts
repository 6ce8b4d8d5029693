/**
 * Writes a tree into an absent or empty directory (G8).
 *
 * 1. Everything that can refuse does so before the first write: limits, missing objects, colliding names.
 * 2. Every name is created exclusively, relative to a directory opened without following links; nothing is overwritten.
 * 3. On a failure or an abort what was made is removed again, and nothing else.
 *
 * `materialize-plan.ts` owns 1, `tree-writer.ts` 2 and 3.
 */
import type { FileSystem } from "../core/index.js";
import type { MaterializeOptions, Tree } from "./contracts.js";
import { prepareDestination } from "./materialize-destination.js";
import { assertNoCollisions, assertStored, planTree } from "./materialize-plan.js";
import type { ObjectStore } from "./object-store.js";
import { TreeWriter } from "./tree-writer.js";

export async function materializeTree(
  fileSystem: FileSystem,
  objects: ObjectStore,
  tree: Tree,
  dest: string,
  options: MaterializeOptions = {},
): Promise<{ readonly entries: number; readonly bytes: number }> {
  options.signal?.throwIfAborted();
  const plan = await planTree(tree, options);
  await assertStored(objects, plan, options);
  const destination = prepareDestination(fileSystem, dest);
  try {
    await assertNoCollisions(fileSystem, destination.directory, plan, dest, options);
    using writer = new TreeWriter(fileSystem, objects, destination.directory, dest, options);
    await writer.write(plan, destination.sync);
  } catch (error) {
    destination.giveUp();
    throw error;
  } finally {
    destination.directory.close();
  }
  return { entries: plan.entries, bytes: plan.bytes };
}
