/** A plan that an earlier session began is settled before anything else is done to its root (U9). */
import { isLooprigError } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { acquireCommitLease } from "./commit-section.js";
import { journalRestore, operationsDone } from "./journal-restore.js";
import type { OwnedRoot } from "./owned-root.js";
import { parsePurpose } from "./restore-purpose.js";
import { settlePlan } from "./restore/settle.js";

/**
 * Completes or takes back the root's unsettled plan, and journals a completed one that its own session did not come to
 * journal. A plan whose applier is alive is left to it.
 */
export async function settlePlans(owned: OwnedRoot, options: Abortable = {}): Promise<void> {
  const { reader } = owned;
  if ((await reader.plans.read(options)) === undefined) return;
  const { root, fileSystem } = reader;
  const asking = { leaser: reader.storage.leaser, root, fileSystem, sessionId: owned.sessionId };
  try {
    await using _commit = await acquireCommitLease(asking, "settling a restore", options);
    await settle(owned, options);
  } catch (error) {
    if (!isLooprigError(error, "lease.held")) throw error;
  }
}

async function settle(owned: OwnedRoot, options: Abortable): Promise<void> {
  const { reader } = owned;
  // Read again under the lease: the applier may just have finished.
  const plan = await reader.plans.read(options);
  if (plan === undefined) return;
  using permit = await owned.coordinator.acquire({ operation: "checkpoint" }, options);
  const settled = await settlePlan({
    root: owned.directory(),
    plan,
    store: reader.store,
    plans: reader.plans,
    fileSystem: reader.fileSystem,
    assertHeld: () => permit.assertHeld(),
  });
  const journaled = (await reader.history(options)).restorations.some(({ planId }) => planId === settled.planId);
  if (settled.outcome === "completed" && !journaled) {
    const purpose = parsePurpose(settled.purpose);
    const conflicts = [...purpose.conflicts, ...settled.skipped.map((path: WorkspacePath) => ({ path }))];
    await journalRestore(owned, {
      planId: settled.planId,
      purpose: { ...purpose, conflicts },
      ...operationsDone(settled.record.operations, settled.skipped),
    });
  }
  await settled.finish();
}
