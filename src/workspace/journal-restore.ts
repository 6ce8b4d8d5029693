/** The record of a restore that was carried out, by this process or by one that died after it (U8). */
import type { PlanId, WorkspacePath } from "../core/index.js";
import type { EventOf, NewEvent } from "../session-store/index.js";
import type { Checkpoint } from "./contracts.js";
import { toCheckpoint } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import type { RestorePurpose } from "./restore-purpose.js";
import type { PlannedOperation } from "./restore/plan.js";

export interface CarriedOut {
  readonly planId: PlanId;
  readonly purpose: RestorePurpose;
  readonly written: readonly WorkspacePath[];
  readonly deleted: readonly WorkspacePath[];
}

/** Captures the tree it left and journals both in one append. */
export async function journalRestore(owned: OwnedRoot, carried: CarriedOut): Promise<Checkpoint> {
  const { planId, purpose, written, deleted } = carried;
  const { result, event } = await owned.takeAlways({ trigger: "post-restore", countedFrom: purpose.from });
  const { order } = await owned.reader.record.draw({}, owned.reader.clock());
  const restored: NewEvent<"workspace-restored"> = {
    type: "workspace-restored",
    action: purpose.action,
    entry: purpose.entry ?? `c${event.number}`,
    ...(purpose.target === undefined ? {} : { target: purpose.target }),
    from: purpose.from,
    ref: result.ref,
    order,
    planId,
    result: isPartly(purpose) ? "partly" : "done",
    ...{ written, deleted, kept: purpose.kept, conflicts: purpose.conflicts },
  };
  const [checkpointed] = await owned.append(event, restored, { type: "session-idle" });
  const checkpoint = toCheckpoint(checkpointed as EventOf<"workspace-checkpointed">, undefined);
  return { ...checkpoint, restored: { action: restored.action, entry: restored.entry } };
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
