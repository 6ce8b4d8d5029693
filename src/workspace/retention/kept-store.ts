/**
 * The workspace store as one root sees it: a tree that was dropped is refused as dropped, whether or not its bytes are still
 * there. They go when collection comes to them, perhaps in the middle of a read, and must then not look like damage.
 */
import type { SnapshotRef } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import type { DroppedTrees } from "./dropped-trees.js";
import { treeDropped } from "./dropped-trees.js";

export interface KeptStore {
  readonly store: WorkspaceStore;
  /** What is known to be dropped from here on. */
  setDropped(trees: DroppedTrees): void;
}

export function createKeptStore(inner: WorkspaceStore): KeptStore {
  let dropped: DroppedTrees = new Map();
  /** Stored again by this process since: whatever the record says, it is there. */
  let stored = new Set<SnapshotRef>();
  return {
    setDropped(trees) {
      dropped = trees;
      stored = new Set([...stored].filter((ref) => trees.has(ref)));
    },
    store: Object.freeze({
      ...inner,
      open: async (ref, options) => {
        const tree = stored.has(ref) ? undefined : dropped.get(ref);
        if (tree !== undefined) throw treeDropped(tree.name, tree.at);
        return inner.open(ref, options);
      },
      capture: async (options) => {
        const result = await inner.capture(options);
        if (dropped.has(result.ref)) stored.add(result.ref);
        return result;
      },
      derive: async (options) => {
        const result = await inner.derive(options);
        if (dropped.has(result.ref)) stored.add(result.ref);
        return result;
      },
      keep: async (files, options) => {
        const ref = await inner.keep(files, options);
        if (dropped.has(ref)) stored.add(ref);
        return ref;
      },
    } satisfies WorkspaceStore),
  };
}
