/**
 * Settles the plan a process left behind (U9): completes it when it was past its commit point, takes it back when it was
 * not. Everything is decided from what is on disk, so settling can itself be killed anywhere and run again.
 *
 * What someone changed after the crash is left and named in `skipped`; nothing of theirs is written over.
 */
import { errnoOf, LooprigError, pacer, RestoreError } from "../../core/index.js";
import type { Directory, FileSystem, Json, PlanId, WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { aliasedPaths } from "./aliases.js";
import { setDirectoryModes, settleOperations } from "./carry-out.js";
import type { Work } from "./carry-out.js";
import { cleanUp } from "./clean-up.js";
import type { Raced } from "./clean-up.js";
import { isDirectory } from "./plan.js";
import { reversed } from "./plan-record.js";
import type { PlanRecord } from "./plan-record.js";
import type { PlanStore, StoredPlan } from "./plan-store.js";
import { TreeAccess } from "./tree-access.js";

export interface SettleOptions {
  /** The root, opened; its identity was checked. Stays open until `finish` has returned. */
  readonly root: Directory;
  /** As `plans.read()` gave it. */
  readonly plan: StoredPlan;
  readonly store: Pick<WorkspaceStore, "read">;
  readonly plans: PlanStore;
  readonly fileSystem: FileSystem;
  readonly assertHeld: () => void;
}

/** The tree is settled, the record is still there. Journal a completed one, if that was not done yet, then `finish`. */
export interface SettledPlan {
  readonly planId: PlanId;
  readonly outcome: "completed" | "rolled-back";
  readonly purpose: Json;
  readonly record: PlanRecord;
  /** Paths that someone changed after the crash and that were left as they are. */
  readonly skipped: readonly WorkspacePath[];
  /** Removes what is left beside the tree, and the record. */
  finish(): Promise<{ readonly raced: readonly Raced[] }>;
}

/**
 * Settles `plan`. Rejects with `restore.unsettled` when the system refused something: nothing is lost, and the next call
 * goes on; with the error of `assertHeld` when that threw. It cannot be aborted.
 */
export async function settlePlan(options: SettleOptions): Promise<SettledPlan> {
  const { root, plan, store, plans, fileSystem, assertHeld } = options;
  const { record } = plan;
  const relaxable = new Set([
    ...record.relaxed.map(({ path }) => path),
    ...record.operations.filter((o) => isDirectory(o.expected) || isDirectory(o.target)).map(({ path }) => path),
  ]);
  const tree = new TreeAccess({
    fileSystem,
    root,
    mayRelax: (path) => relaxable.has(path),
    aliased: aliasedPaths(record.operations.map(({ path }) => path)),
  });
  const place = { path: "" as WorkspacePath, operation: "begin" };
  const slice = pacer(undefined);
  const work: Work = {
    tree,
    store,
    doing: (path, operation) => Object.assign(place, { path, operation }),
    pace: () => {
      const yielded = slice();
      if (yielded === undefined) return undefined;
      tree.release();
      return yielded.then(assertHeld);
    },
    rejoin: () => {
      tree.release();
      assertHeld();
    },
  };

  const guarded = async <T>(act: () => Promise<T>): Promise<T> => {
    try {
      assertHeld();
      return await act();
    } catch (error) {
      throw errnoOf(error) === undefined || error instanceof LooprigError ? error : unsettled(record, place, error);
    } finally {
      tree.release();
    }
  };

  const settled = await guarded(() => settle(plan, work, plans));
  return {
    planId: record.planId,
    purpose: record.purpose,
    record,
    ...settled,
    finish: () =>
      guarded(async () => {
        const direction = settled.outcome === "completed" ? "forward" : "back";
        const raced = await cleanUp(record, { ...work, direction });
        await plans.remove(record.planId);
        return { raced };
      }),
  };
}

async function settle(
  { phase, record, skipped }: StoredPlan,
  work: Work,
  plans: PlanStore,
): Promise<Pick<SettledPlan, "outcome" | "skipped">> {
  switch (phase) {
    case "staging": {
      // No path of the tree was touched: only staged files are there, which `finish` removes, and relaxed directories.
      const modes = record.operations.filter(({ expected, target }) => isDirectory(expected) && isDirectory(target));
      await setDirectoryModes(record.relaxed, modes.map(reversed), work);
      return { outcome: "rolled-back", skipped: [] };
    }
    case "committing": {
      const outcome = await settleOperations(record, "forward", work);
      await plans.advance(record.planId, "committed", outcome.skipped);
      return { outcome: "completed", skipped: outcome.skipped };
    }
    case "rolling-back": {
      const outcome = await settleOperations(record, "back", work);
      return { outcome: "rolled-back", skipped: outcome.skipped };
    }
    case "committed":
      return { outcome: "completed", skipped };
    default:
      return phase satisfies never;
  }
}

function unsettled(
  record: PlanRecord,
  { path, operation }: { readonly path: string; readonly operation: string },
  cause: unknown,
): RestoreError {
  return new RestoreError(
    "restore.unsettled",
    `Cannot settle the unfinished restore ${record.planId} of "${record.root}": to ${operation} ${JSON.stringify(path)} failed with ${errnoOf(cause) ?? "an error"}; nothing is lost, mend the cause and try again`,
    { root: record.root, planId: record.planId },
    { cause },
  );
}
