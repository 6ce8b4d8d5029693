/**
 * Does a plan on a root that is held (U4–U9).
 *
 * Order, and what a crash after each step leaves:
 * 1. commit lease of the root (C10, U9), checkpoint permit
 * 2. what it would write over is stored (`safety`); `workspace-checkpointed` if new  – one checkpoint more
 * 3. every path of the plan is what the plan expects, in that very tree              – nothing
 * 4. the plan is carried out (`restore/apply`), its record saying what to journal   – settled by the next opener
 * 5. the tree it left, derived; with `workspace-restored` in one append             – the next opener journals it
 * 6. backups and the plan's record go                                              – the next opener removes them
 */
import { RestoreError, displayName, isLooprigError, mintPlanId } from "../core/index.js";
import type { Abortable, CanonicalRoot, PlanId, SnapshotRef } from "../core/index.js";
import type { Lease } from "../storage/index.js";
import type { ChangedBy } from "./changed-by.js";
import { acquireCommitLease } from "./commit-section.js";
import type { Checkpoint, RestorePlan, RestoreReceipt } from "./contracts.js";
import { isPartly, journalRestore, operationsDone } from "./journal-restore.js";
import type { OwnedRoot } from "./owned-root.js";
import { detailsOf } from "./planning.js";
import type { PlanDetails } from "./planning.js";
import { toJson } from "./restore-purpose.js";
import type { RestorePurpose } from "./restore-purpose.js";
import { applyPlan } from "./restore/apply.js";
import type { Raced } from "./restore/clean-up.js";
import { takeSafety } from "./safety.js";
import { settlePlans } from "./settle-plans.js";

/** `fresh`: the plan was made in this very call, under whatever keeps others of this session from writing. */
export async function applyToRoot(
  owned: OwnedRoot,
  plan: RestorePlan,
  { fresh, ...options }: Abortable & { readonly fresh: boolean },
): Promise<RestoreReceipt> {
  const details = detailsOf(plan);
  const refused = decideWithoutWriting(plan, details);
  if (refused !== undefined) return refused;
  assertConsent(plan, details);

  // A restore of this very session may have been cut short by a failure.
  await settlePlans(owned, options);
  await using _commit = await commitLease(owned, options);
  using permit = await owned.coordinator.acquire({ operation: "checkpoint" }, options);
  const before = await takeSafety(owned, details, { ...options, fresh });

  const planId = mintPlanId();
  const { ref: from } = before.tree;
  await owned.reader.store.pin({ owner: owned.sessionId, id: `p${planId}` }, pinned(from, details));
  const purpose = purposeOf(plan, details, from);
  const applied = await applyPlan({
    root: owned.directory(),
    canonicalRoot: owned.reader.root,
    operations: details.tree.operations,
    planId,
    purpose: toJson(purpose),
    store: owned.reader.store,
    plans: owned.reader.plans,
    fileSystem: owned.reader.fileSystem,
    assertHeld: () => permit.assertHeld(),
    signal: options.signal,
  });
  const done = operationsDone(details.tree.operations);
  const checkpoint = await journalRestore(owned, { planId, purpose, ...done }, before).catch((error: unknown) => {
    throw unrecorded(owned.reader.root, planId, error);
  });
  const { raced } = await applied.finish();
  return receipt(plan, purpose, done, checkpoint, raced);
}

/** The receipt of a plan that is not carried out: nothing to do, or conflicts that stop it. */
function decideWithoutWriting(plan: RestorePlan, { action, tree }: PlanDetails): RestoreReceipt | undefined {
  const empty = tree.operations.length === 0;
  const stops = empty || (action.kind !== "restore" && (action.onConflict ?? "stop") === "stop");
  // An entry of which nothing can be brought back is refused; a restore that finds nothing to do has nothing to do.
  const idle = action.kind !== "restore" && plan.kept.length > 0 ? "refused" : "nothing";
  const result = stops && plan.conflicts.length > 0 ? "conflict" : empty ? idle : undefined;
  if (result === undefined) return undefined;
  const { writes: _writes, deletes: _deletes, ...seen } = plan;
  return { ...seen, result, written: [], deleted: [], safety: null, reverse: null };
}

/** U1: what only an uncertain window explains is somebody's work, perhaps not ours. */
function assertConsent(plan: RestorePlan, { action }: PlanDetails): void {
  if (plan.window.length === 0) return;
  if (action.kind !== "redo" && action.includeWindow === true) return;
  if (action.kind === "redo" && action.includeWindow !== false) return;
  const [first] = plan.window;
  throw new RestoreError(
    "undo.needs_consent",
    `Cannot ${plan.action} ${plan.entry ?? ""}: ${plan.window.length} of its paths, ${displayName(first ?? "")} first, changed while others ` +
      "could write here too and may be theirs; allow it with `includeWindow`",
    { turn: plan.entry ?? "", paths: plan.window },
  );
}

/** After step 4 a failure cannot mean that the tree is as before: whoever goes on with the plan records what was done. */
function unrecorded(root: CanonicalRoot, planId: PlanId, cause: unknown): unknown {
  if (isLooprigError(cause, "workspace_root.lease_lost", "workspace_root.changed")) return cause;
  return new RestoreError(
    "restore.unsettled",
    `Cannot record the restore ${planId} of "${root}": the tree is as planned, and the next command on this root puts that on record; ` +
      "see to the cause, and do not repeat the restore",
    { root, planId },
    { cause },
  );
}

/** Held to the end, so that sessions of a shared root never change it at the same time (U9, C10). */
function commitLease(owned: OwnedRoot, options: Abortable): Promise<Lease> {
  const { storage, root, fileSystem } = owned.reader;
  return acquireCommitLease(
    { leaser: storage.leaser, root, fileSystem, sessionId: owned.sessionId },
    "restore",
    options,
  );
}

/** Everything a crash in the middle needs: the bytes to go back to and the bytes to go on to. */
function pinned(before: SnapshotRef, { entry, target }: PlanDetails): readonly SnapshotRef[] {
  return [before, ...(entry === undefined ? [] : [entry.from, entry.to]), ...(target === undefined ? [] : [target])];
}

function purposeOf(plan: RestorePlan, { action, entry, target }: PlanDetails, from: SnapshotRef): RestorePurpose {
  return {
    v: 0,
    action: action.kind,
    ...(entry === undefined ? {} : { entry: entry.name }),
    ...(target === undefined ? {} : { target }),
    from,
    kept: plan.kept,
    conflicts: plan.conflicts.map(({ path }) => ({ path })),
    partial: "paths" in action && action.paths !== undefined,
  };
}

function receipt(
  plan: RestorePlan,
  purpose: RestorePurpose,
  done: ReturnType<typeof operationsDone>,
  checkpoint: Checkpoint,
  raced: readonly Raced[],
): RestoreReceipt {
  const { writes: _writes, deletes: _deletes, ...seen } = plan;
  const foreign: ChangedBy = { kind: "foreign" };
  const conflicts = [...plan.conflicts, ...raced.map((each) => ({ ...each, by: foreign }))];
  return {
    ...seen,
    ...done,
    conflicts,
    result: conflicts.length > 0 || isPartly(purpose) ? "partly" : "done",
    safety: purpose.from,
    checkpoint,
    reverse: purpose.action === "undo" ? "looprig redo" : "looprig undo",
  };
}
