/**
 * Applies a plan: record, stage, check, commit (docs/formats/plans.md). Until the commit point a failure leaves nothing;
 * after it a failure is taken back; if that fails too, or the lease is lost, the plan stays for the next opener.
 *
 * The layer above owns what surrounds it: the leases, the identity of the root, the safety capture before it (U4), pins
 * that keep what the plan names, and the journal record between `applyPlan` and `finish`.
 */
import {
  compareNames,
  errnoOf,
  isLooprigError,
  LooprigError,
  mintPlanId,
  pacer,
  parentOf,
  RestoreError,
} from "../../core/index.js";
import type { Abortable, CanonicalRoot, Directory, FileSystem, Json, PlanId, WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { aliasedPaths } from "./aliases.js";
import { commit, directoriesOf, MovedError, setDirectoryModes, takeBack } from "./carry-out.js";
import type { Checked, Work } from "./carry-out.js";
import { checkTree } from "./check.js";
import { cleanUp } from "./clean-up.js";
import type { Raced } from "./clean-up.js";
import { layOut, OwnNames } from "./layout.js";
import type { Stamp } from "./observe.js";
import { isDirectory } from "./plan.js";
import type { PlannedOperation } from "./plan.js";
import type { PlanRecord } from "./plan-record.js";
import { reversed } from "./plan-record.js";
import type { PlanStore } from "./plan-store.js";
import { NameTakenError, Stager } from "./stage.js";
import { TreeAccess } from "./tree-access.js";

export interface ApplyOptions extends Abortable {
  /** The root, opened; its identity was checked. Stays open until `finish` has returned. */
  readonly root: Directory;
  readonly canonicalRoot: CanonicalRoot;
  /** Of a `TreePlan`: in byte order, consistent. */
  readonly operations: readonly PlannedOperation[];
  /** Default: a fresh one. */
  readonly planId?: PlanId | undefined;
  /** What the layer above needs to journal the restore after a crash. */
  readonly purpose: Json;
  readonly store: Pick<WorkspaceStore, "read">;
  readonly plans: PlanStore;
  readonly fileSystem: FileSystem;
  /** Throws when the right to write may be lost. Then nothing is touched any more: not even to take something back. */
  readonly assertHeld: () => void;
}

/** The tree is as planned; backups and record are still there. Journal it, then `finish`. */
export interface AppliedPlan {
  readonly planId: PlanId;
  /**
   * Removes backups and record. Bytes that someone wrote meanwhile into a file that was replaced or deleted are not: they
   * stay where `raced` says. Rejects with `restore.unsettled` when it could not; the next opener does it then.
   */
  finish(): Promise<{ readonly raced: readonly Raced[] }>;
}

/**
 * Carries out the operations, all or none. Rejects with `restore.tree_moved` when a path is not what the plan expects,
 * `restore.failed` when the system refused, `snapshot.*` when bytes are missing or damaged, the signal's reason when it
 * aborted before the commit point (after it an abort is not heard): the tree is as before. `restore.unsettled`, or the
 * error of `assertHeld`: the plan stays and the next opener settles it.
 */
export async function applyPlan(options: ApplyOptions): Promise<AppliedPlan> {
  const application = new Application(options);
  await application.prepare();
  const stamps = await application.commit();
  return { planId: application.planId, finish: () => application.finish(stamps) };
}

class Application {
  readonly planId: PlanId;
  readonly #options: ApplyOptions;
  readonly #tree: TreeAccess;
  readonly #work: Work;
  readonly #names: OwnNames;
  #record: PlanRecord;
  #checked: Checked = { paths: new Map(), staged: new Map() };
  #place = { path: "" as WorkspacePath, operation: "begin" };
  #committing = false;

  constructor(options: ApplyOptions) {
    this.#options = options;
    this.planId = options.planId ?? mintPlanId();
    const { canonicalRoot: root, purpose, operations } = options;
    this.#record = { planId: this.planId, root, purpose, operations: [], relaxed: [] };
    const directories = new Set(operations.filter(isAboutDirectories).map(({ path }) => path));
    this.#tree = new TreeAccess({
      fileSystem: options.fileSystem,
      root: options.root,
      mayRelax: (path) => directories.has(path) || this.#record.relaxed.some((relaxed) => relaxed.path === path),
      aliased: aliasedPaths(operations.map(({ path }) => path)),
    });
    this.#names = new OwnNames(this.planId, this.#tree);
    const slice = pacer(options.signal);
    const committed = pacer(undefined);
    this.#work = {
      tree: this.#tree,
      store: options.store,
      pace: () => this.#paced(this.#committing ? committed() : slice()),
      rejoin: () => {
        this.#tree.release();
        if (this.#committing) this.#assertHeld();
      },
      doing: (path, operation) => {
        this.#place = { path, operation };
      },
    };
  }

  /** After others ran: directories are found anew, and while committing the lease is asserted again. */
  #paced(yielded: Promise<void> | undefined): Promise<void> | undefined {
    if (yielded === undefined) return undefined;
    this.#tree.release();
    return yielded.then(() => this.#work.rejoin());
  }

  #assertHeld(): void {
    try {
      this.#options.assertHeld();
    } catch (error) {
      throw new LeaseGoneError(error);
    }
  }

  /** Up to, not including, the commit point. On an error the tree is as before and the record is gone. */
  async prepare(): Promise<void> {
    const { plans, signal } = this.#options;
    const stager = new Stager({ ...this.#work, signal });
    try {
      signal?.throwIfAborted();
      this.#work.doing("" as WorkspacePath, "record");
      const layout = await layOut(this.#options.operations, this.#names, this.#tree, this.#work.pace);
      this.#record = { ...this.#record, ...layout };
      await plans.create(this.#record, { signal });
      const staged = await this.#stage(stager);
      this.#checked = await checkTree(this.#record, staged, this.#work);
      this.#assertHeld();
    } catch (error) {
      stager.abandon();
      throw await this.#unstage(stager.created, error);
    } finally {
      this.#tree.release();
    }
  }

  async #stage(stager: Stager): Promise<ReadonlyMap<WorkspacePath, Stamp>> {
    const { signal } = this.#options;
    const stamps = new Map<WorkspacePath, Stamp>();
    for (let index = 0; index < this.#record.operations.length; index++) {
      signal?.throwIfAborted();
      const operation = this.#record.operations[index];
      const { target } = operation ?? {};
      let staged = operation?.staged;
      if (operation === undefined || staged === undefined || target === undefined || target.kind === "directory")
        continue;
      this.#work.doing(operation.path, "stage");
      while (!stamps.has(staged)) {
        try {
          stamps.set(staged, await stager.write(target, operation.path, staged));
        } catch (error) {
          if (!(error instanceof NameTakenError)) throw error;
          // Someone has that name: whatever it is, it is not ours. Another one is recorded before it is used.
          staged = this.#names.next(parentOf(staged));
          this.#record = {
            ...this.#record,
            operations: this.#record.operations.with(index, { ...operation, staged }),
          };
          await this.#options.plans.rewrite(this.#record);
        }
      }
      await this.#work.pace();
    }
    await stager.settle();
    const directories = directoriesOf(this.#record.operations.filter(({ staged }) => staged !== undefined));
    await this.#tree.syncAll(directories, (path) => this.#work.doing(path, "sync"));
    this.#work.rejoin();
    return stamps;
  }

  /** Takes back the staging; returns the error to be thrown. */
  async #unstage(created: ReadonlySet<WorkspacePath>, error: unknown): Promise<unknown> {
    if (error instanceof LeaseGoneError) return error.cause;
    try {
      this.#options.assertHeld();
    } catch (lost) {
      return lost;
    }
    const failure = this.#failure(error);
    // Another plan is in the way: none of ours was recorded.
    if (isLooprigError(failure, "restore.unsettled", "restore.plan_damaged")) return failure;
    try {
      for (const path of created) if (this.#tree.stat(path) !== undefined) this.#tree.unlink(path);
      const relaxed = this.#record.operations.filter(({ path }) => this.#tree.relaxed.has(path));
      await setDirectoryModes(this.#record.relaxed, relaxed.map(reversed), { ...this.#work, pace: () => undefined });
      await this.#options.plans.remove(this.planId);
      return failure;
    } catch (second) {
      return this.#unsettled(failure, second);
    }
  }

  /** The commit point and everything visible. */
  async commit(): Promise<ReadonlyMap<WorkspacePath, Stamp>> {
    const { plans } = this.#options;
    const begun = new Set<WorkspacePath>();
    this.#committing = true;
    try {
      this.#work.doing("" as WorkspacePath, "record");
      await plans.advance(this.planId, "committing");
      this.#assertHeld();
      const { backups } = await commit(this.#record, this.#work, this.#checked, begun);
      this.#assertHeld();
      this.#work.doing("" as WorkspacePath, "record");
      await plans.advance(this.planId, "committed");
      return backups;
    } catch (error) {
      throw await this.#takeBack(begun, error);
    } finally {
      this.#tree.release();
    }
  }

  /** Undoes what the commit began; returns the error to be thrown. */
  async #takeBack(begun: ReadonlySet<WorkspacePath>, error: unknown): Promise<unknown> {
    if (error instanceof LeaseGoneError) return error.cause;
    try {
      this.#options.assertHeld();
    } catch (lost) {
      return lost;
    }
    const failure = this.#failure(error);
    this.#tree.release();
    try {
      await this.#options.plans.advance(this.planId, "rolling-back");
      await takeBack(this.#record, this.#work, begun);
      const raced = await cleanUp(this.#record, { ...this.#work, direction: "back" });
      await this.#options.plans.remove(this.planId);
      return raced.length === 0 ? failure : withRaced(failure, raced);
    } catch (second) {
      if (second instanceof LeaseGoneError) return second.cause;
      return this.#unsettled(failure, second);
    }
  }

  async finish(stamps: ReadonlyMap<WorkspacePath, Stamp>): Promise<{ readonly raced: readonly Raced[] }> {
    try {
      this.#assertHeld();
      const raced = await cleanUp(this.#record, { ...this.#work, direction: "forward", stamps });
      await this.#options.plans.remove(this.planId);
      return { raced };
    } catch (error) {
      if (error instanceof LeaseGoneError) throw error.cause;
      throw this.#unsettled(this.#failure(error), error);
    } finally {
      this.#tree.release();
    }
  }

  #failure(error: unknown): unknown {
    const { path, operation } = this.#place;
    // A link where the way to a path led through a directory has moved it as well.
    const moved =
      error instanceof MovedError ? error.paths : isLooprigError(error, "path.escapes") ? [path] : undefined;
    if (moved !== undefined) {
      const paths = [...new Set(moved)].sort(compareNames);
      return new RestoreError(
        "restore.tree_moved",
        `Cannot restore in "${this.#options.canonicalRoot}": ${paths.length} of its paths changed since the plan was made, ${JSON.stringify(paths[0])} first; nothing was changed, make a new plan`,
        { paths },
        { retryable: true },
      );
    }
    const errno = errnoOf(error);
    if (errno === undefined || error instanceof LooprigError) return error;
    return new RestoreError(
      "restore.failed",
      `Cannot restore in "${this.#options.canonicalRoot}": to ${operation} ${JSON.stringify(path)} failed with ${errno}; the tree is as before`,
      { path, operation, errno },
      { cause: error },
    );
  }

  #unsettled(failure: unknown, second: unknown): RestoreError {
    return new RestoreError(
      "restore.unsettled",
      `Cannot take back a failed restore of "${this.#options.canonicalRoot}": the plan ${this.planId} is kept; the next command on this root goes on with it`,
      { root: this.#options.canonicalRoot, planId: this.planId },
      { cause: new AggregateError([failure, second]) },
    );
  }
}

/** The lease may be lost: nothing is ours to touch any more. */
class LeaseGoneError extends Error {
  override readonly name = "LeaseGoneError";
  constructor(cause: unknown) {
    super("the lease is gone", { cause });
  }
}

const isAboutDirectories = ({ expected, target }: PlannedOperation): boolean =>
  isDirectory(expected) || isDirectory(target);

function withRaced(failure: unknown, raced: readonly Raced[]): unknown {
  if (!(failure instanceof RestoreError)) return failure;
  const kept = raced.map(({ storedAs }) => JSON.stringify(storedAs)).join(", ");
  return new RestoreError(
    failure.code,
    `${failure.message}; what was written meanwhile is kept as ${kept}`,
    failure.details,
    {
      cause: failure.cause,
      retryable: failure.retryable,
    },
  );
}
