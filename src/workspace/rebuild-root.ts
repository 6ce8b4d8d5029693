/**
 * A root that is gone is built anew (R7): into a directory beside it, which takes its place in one rename.
 *
 * Crash order: the staging directory's name is recorded with the root before it is made; a crash leaves the directory and
 * the record, and the next rebuild removes exactly that one. After the rename the root stands; the next opener meets a
 * directory that is not the recorded one and asks for `adoptRoot`, unless the record was still written.
 */
import path from "node:path";
import { Directory, RestoreError, WorkspaceRootChangedError, mintPlanId } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { RefLike, RestoreReceipt } from "./contracts.js";
import { toCheckpoint } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import { resolveRef } from "./references.js";
import { removeTree } from "./remove-tree.js";
import { identify } from "./root-identity.js";

export async function rebuildRoot(owned: OwnedRoot, given: RefLike, options: Abortable): Promise<RestoreReceipt> {
  const { reader } = owned;
  const resolved = resolveRef(await reader.history(options), given);
  if (resolved.ref === "now") {
    throw new RestoreError(
      "restore.nothing",
      `Cannot restore "${reader.root}" from its present state: it is gone; name a checkpoint`,
      {
        action: "restore",
      },
    );
  }
  const tree = await reader.store.open(resolved.ref, options);
  using _permit = await owned.coordinator.acquire({ operation: "checkpoint" }, options);
  await buildBeside(owned, tree, options);
  const { result, event } = await owned.takeAlways({ trigger: "post-restore", signal: options.signal });
  const entry = `c${event.number}` as const;
  const { order } = await reader.record.draw({}, reader.clock());
  const [journaled] = await owned.append(event, {
    ...{ type: "workspace-restored", action: "restore", entry, target: resolved.ref, order, planId: mintPlanId() },
    // There was no tree before, so there is none to go back to: an entry from a tree to itself takes nothing back.
    ...{ from: result.ref, ref: result.ref, result: "done", written: [], deleted: [], kept: [], conflicts: [] },
  });
  return {
    action: "restore",
    entry: resolved.checkpoint === undefined ? given : `c${resolved.checkpoint.number}`,
    ...{ passedOver: [], kept: [], conflicts: [], omitted: [], foreign: [], window: [] },
    ...{ result: "done", written: [], deleted: [], safety: null, reverse: null },
    checkpoint: toCheckpoint(journaled as typeof journaled & { type: "workspace-checkpointed" }, undefined),
  };
}

async function buildBeside(
  owned: OwnedRoot,
  tree: Parameters<OwnedRoot["reader"]["store"]["materialize"]>[0],
  options: Abortable,
): Promise<void> {
  const { reader } = owned;
  const { fileSystem, root, record } = reader;
  const recorded = await record.read(options);
  using parent = Directory.open(fileSystem, path.dirname(root));
  if (recorded?.staging !== undefined) removeTree(fileSystem, parent, recorded.staging);
  const staging = `.${path.basename(root)}.${mintPlanId()}.staging`;
  await record.update((data) => ({ ...data, staging }), options);
  await reader.store.materialize(tree, path.join(path.dirname(root), staging), options);
  fileSystem.chmod(parent.at(staging), recorded?.identity?.mode ?? 0o755);
  if (identify(fileSystem, root) !== undefined) {
    throw new WorkspaceRootChangedError(
      "workspace_root.changed",
      `Cannot build "${root}" anew: a directory has appeared there; look at it, then adopt it or move it away`,
      { root, state: "replaced" },
    );
  }
  owned.coordinator.assertHealthy();
  fileSystem.rename(parent.at(staging), parent.at(path.basename(root)));
  parent.sync();
  await owned.attach(Directory.open(fileSystem, root), options);
}
