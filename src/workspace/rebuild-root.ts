/** A root that is gone is built anew from a checkpoint (R7), and that is journaled like every restore. */
import { RestoreError, WorkspaceRootChangedError, mintPlanId } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { Tree } from "../workspace-store/index.js";
import { buildRoot } from "./build-root.js";
import type { RefLike, RestoreReceipt } from "./contracts.js";
import { toCheckpoint } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import { resolveRef } from "./references.js";
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
  await build(owned, tree, options);
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
    ...{ passedOver: [], kept: [], conflicts: [], omitted: [], foreign: [], unproven: [], window: [] },
    ...{ result: "done", written: [], deleted: [], safety: null, reverse: null },
    checkpoint: toCheckpoint(journaled as typeof journaled & { type: "workspace-checkpointed" }, undefined),
  };
}

/** Where nothing stands, and only there. */
async function build(owned: OwnedRoot, tree: Tree, options: Abortable): Promise<void> {
  const { reader } = owned;
  const { fileSystem, root } = reader;
  const recorded = await reader.record.read(options);
  const built = await buildRoot(reader, tree, {
    ...options,
    mode: recorded?.identity?.mode ?? 0o755,
    assertFree: () => {
      owned.coordinator.assertHealthy();
      if (identify(fileSystem, root) === undefined) return;
      throw new WorkspaceRootChangedError(
        "workspace_root.changed",
        `Cannot build "${root}" anew: a directory has appeared there; look at it, then adopt it or move it away`,
        { root, state: "replaced" },
      );
    },
  });
  await owned.attach(built, options);
}
