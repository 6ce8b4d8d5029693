/**
 * What can be known of a root without holding it: its record, the history of its sessions, the live tree. The view is made
 * of it, and the workspace, which may also write, builds on the same.
 */
import { isLooprigError, nodeFileSystem, WorkspaceRootChangedError } from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem, SessionId, SnapshotRef, WorkspacePath } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { Placement, SessionEvent, SessionStore } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import { createWorkspaceStore } from "../workspace-store/index.js";
import type {
  CaptureProgress,
  CaptureRules,
  PresentPaths,
  ScanResult,
  Tree,
  WorkspaceStore,
} from "../workspace-store/index.js";
import { captureRules } from "./capture-rules.js";
import type { CaptureSettings } from "./contracts.js";
import { foldHistory } from "./history.js";
import type { FoldedHistory, SessionTrace } from "./history.js";
import { foldingIn } from "./name-folding.js";
import { checkRecordedRoot, identify, identityFromStored } from "./root-identity.js";
import { RootRecord } from "./root-record.js";
import { createPlanStore } from "./restore/plan-store.js";
import type { PlanStore } from "./restore/plan-store.js";
import { ownPathsOf } from "./restore/plan-record.js";
import { readDropped } from "./retention/drop-records.js";
import { markDropped } from "./retention/dropped-trees.js";
import { createKeptStore } from "./retention/kept-store.js";
import type { KeptStore } from "./retention/kept-store.js";
import { rootKey } from "./root-lease.js";

export interface ReaderOptions {
  readonly storage: Storage;
  readonly root: CanonicalRoot;
  readonly placement: Placement;
  readonly settings?: CaptureSettings | undefined;
  readonly onProgress?: ((progress: CaptureProgress) => void) | undefined;
  readonly fileSystem?: FileSystem | undefined;
  readonly clock?: (() => Date) | undefined;
  /** Looks at the directory that is there although it is not the one recorded. */
  readonly adoptRoot?: boolean | undefined;
}

export class RootReader {
  readonly storage: Storage;
  readonly root: CanonicalRoot;
  readonly placement: Placement;
  readonly settings: CaptureSettings;
  readonly fileSystem: FileSystem;
  readonly clock: () => Date;
  readonly sessions: SessionStore;
  readonly store: WorkspaceStore;
  readonly record: RootRecord;
  readonly plans: PlanStore;
  readonly onProgress: ((progress: CaptureProgress) => void) | undefined;
  readonly #adoptRoot: boolean;
  readonly #kept: KeptStore;
  #foldsNames: boolean | undefined;

  constructor(options: ReaderOptions) {
    const { storage, root, fileSystem = nodeFileSystem, clock = () => new Date() } = options;
    this.storage = storage;
    this.root = root;
    this.placement = options.placement;
    this.settings = options.settings ?? {};
    this.fileSystem = fileSystem;
    this.clock = clock;
    this.onProgress = options.onProgress;
    this.#adoptRoot = options.adoptRoot ?? false;
    this.sessions = createSessionStore(storage, { clock });
    this.#kept = createKeptStore(createWorkspaceStore(storage, { fileSystem }));
    this.store = this.#kept.store;
    this.record = new RootRecord(storage.kv, root);
    this.plans = createPlanStore(storage, { root, rootKey: rootKey(root, fileSystem) });
  }

  async history(options: Abortable = {}): Promise<FoldedHistory> {
    const summaries = await this.sessions.list({ ...options, root: this.root });
    const traces: SessionTrace[] = [];
    for (const { id, state } of summaries) {
      if (state !== "deleting") traces.push(await this.trace(id, state === "live", options));
    }
    const folded = foldHistory(this.root, (await this.record.read(options)) !== undefined, traces);
    // After the journals: a checkpoint that is dropped meanwhile is then known to be.
    const dropped = await readDropped(this.storage.kv, new Set(folded.sessions), options);
    const { history, trees } = markDropped(folded, dropped);
    this.#kept.setDropped(trees);
    return history;
  }

  /** The events of one session, as far as they can be read. */
  async trace(id: SessionId, live: boolean, options: Abortable = {}): Promise<SessionTrace> {
    const events: SessionEvent[] = [];
    try {
      for await (const event of this.sessions.read(id, options)) events.push(event);
      return { id, live, damaged: false, events };
    } catch (error) {
      if (isLooprigError(error, "journal.damaged")) return { id, live, damaged: true, events };
      // Deleted between the listing and the reading.
      if (isLooprigError(error, "session.unknown")) return { id, live, damaged: false, events };
      throw error;
    }
  }

  async rules(options: Abortable = {}): Promise<CaptureRules> {
    return captureRules(await this.record.read(options), this.settings, this.placement, this.storage.locality);
  }

  /** The live tree, hashed and not stored. Throws `workspace_root.changed` when the root is gone or another directory (R7). */
  async scan(options: Abortable = {}): Promise<ScanResult> {
    await this.#assertSame(options);
    return this.store.scan({ ...(await this.scanOptions(options)), ...options });
  }

  /** Asks with what stands at single paths now, found as by a scan and without a walk. Throws as `scan` does. */
  async look<T>(work: (present: PresentPaths) => Promise<T>, options: Abortable = {}): Promise<T> {
    await this.#assertSame(options);
    return this.store.look(await this.lookOptions(options), work);
  }

  async lookOptions(options: Abortable = {}) {
    if (this.#foldsNames === undefined) {
      const folding = foldingIn(this.fileSystem, this.root);
      this.#foldsNames = folding.case || folding.composition;
    }
    return { ...(await this.scanOptions(options)), foldsNames: this.#foldsNames, signal: options.signal };
  }

  async scanOptions(options: Abortable = {}) {
    return {
      root: this.root,
      rules: await this.rules(options),
      ownDirectories: this.#ownDirectories(),
      ownPaths: await this.#ownPaths(options),
      onProgress: this.onProgress,
    };
  }

  async #assertSame(options: Abortable): Promise<void> {
    const recorded = this.#adoptRoot ? undefined : (await this.record.read(options))?.identity;
    if (recorded !== undefined) checkRecordedRoot(this.fileSystem, this.root, identityFromStored(recorded));
    else if (identify(this.fileSystem, this.root) === undefined) {
      throw new WorkspaceRootChangedError(
        "workspace_root.changed",
        `Cannot look at "${this.root}": no directory stands there`,
        { root: this.root, state: "missing" },
      );
    }
  }

  async tree(ref: SnapshotRef | "now", options: Abortable = {}): Promise<Tree> {
    return ref === "now" ? (await this.scan(options)).tree : this.store.open(ref, options);
  }

  /** Our own stores, known by identity, so that a link or bind mount cannot make us capture ourselves (B2). */
  #ownDirectories(): readonly { readonly dev: bigint; readonly ino: bigint }[] {
    return this.store.persistencePaths().flatMap((each) => {
      try {
        const { dev, ino } = this.fileSystem.stat(each);
        return [{ dev, ino }];
      } catch {
        return [];
      }
    });
  }

  /** Files that an unsettled plan has beside their targets (U9). */
  async #ownPaths(options: Abortable): Promise<ReadonlySet<WorkspacePath>> {
    const plan = await this.plans.read(options);
    return plan === undefined ? new Set() : ownPathsOf(plan.record);
  }
}
