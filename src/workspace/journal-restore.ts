/** The record of a restore that was carried out, by this process or by one that died after it (U8). */
import { isLooprigError } from "../core/index.js";
import type { PlanId, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { EventOf, NewEvent } from "../session-store/index.js";
import type { Checkpoint } from "./contracts.js";
import { toCheckpoint } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import type { RestorePurpose } from "./restore-purpose.js";
import type { PlannedOperation } from "./restore/plan.js";
import type { Safety } from "./safety.js";
import { unreadable } from "./turn-record.js";

export interface CarriedOut {
  readonly planId: PlanId;
  readonly purpose: RestorePurpose;
  readonly written: readonly WorkspacePath[];
  readonly deleted: readonly WorkspacePath[];
}

/**
 * Journals a restore and the tree it left in one append. That tree is derived from the one before it, where that is at hand:
 * what others wrote elsewhere meanwhile is then no part of the restore, and undoing it leaves that alone. Else it is captured.
 */
export async function journalRestore(owned: OwnedRoot, carried: CarriedOut, before?: Safety): Promise<Checkpoint> {
  const { planId, purpose, written, deleted } = carried;
  const { ref, event } = await leftBy(owned, carried, before);
  const { order } = await owned.reader.record.draw({}, owned.reader.clock());
  const restored: NewEvent<"workspace-restored"> = {
    type: "workspace-restored",
    action: purpose.action,
    entry: purpose.entry ?? `c${event.number}`,
    ...(purpose.target === undefined ? {} : { target: purpose.target }),
    from: purpose.from,
    ref,
    order,
    planId,
    result: isPartly(purpose) ? "partly" : "done",
    ...{ written, deleted, kept: purpose.kept, conflicts: purpose.conflicts },
  };
  const [checkpointed] = await owned.append(event, restored, { type: "session-idle" });
  const checkpoint = toCheckpoint(checkpointed as EventOf<"workspace-checkpointed">, undefined);
  return { ...checkpoint, restored: { action: restored.action, entry: restored.entry } };
}

async function leftBy(
  owned: OwnedRoot,
  { purpose, written, deleted }: CarriedOut,
  before: Safety | undefined,
): Promise<{ readonly ref: SnapshotRef; readonly event: NewEvent<"workspace-checkpointed"> }> {
  const request = { trigger: "post-restore", countedFrom: purpose.from } as const;
  if (before !== undefined) {
    try {
      const known = await owned.derive(request, before, [...written, ...deleted]);
      const event = await owned.name({ ...request, derived: before.derived }, known);
      return { ref: known.tree.ref, event };
    } catch (error) {
      if (!isLooprigError(error, ...unreadable)) throw error;
    }
  }
  const { result, event } = await owned.takeAlways(request);
  return { ref: result.ref, event };
}

export function operationsDone(
  operations: readonly PlannedOperation[],
  skipped: readonly WorkspacePath[] = [],
): { readonly written: readonly WorkspacePath[]; readonly deleted: readonly WorkspacePath[] } {
  const left = new Set(skipped);
  const done = operations.filter(({ path }) => !left.has(path));
  return {
    written: done.filter(({ target }) => target !== undefined).map(({ path }) => path),
    deleted: done.filter(({ target }) => target === undefined).map(({ path }) => path),
  };
}

/** Whether something of what was asked for is left as it was. */
export const isPartly = ({ action, conflicts, kept, partial }: RestorePurpose): boolean =>
  conflicts.length > 0 || (action !== "restore" && (partial || kept.some(({ reason }) => reason === "omitted")));
