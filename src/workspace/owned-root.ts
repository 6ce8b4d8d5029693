/**
 * A root held for writing by one session: its leases, its journal, the directory held open, and the one way in which a
 * checkpoint is taken. Turns, restores and settling are built on it.
 *
 * Rules:
 * 1. The root's identity is checked before and after every capture (R7): a tree of another directory is never recorded.
 * 2. Bytes durable → number drawn → pinned → journaled (K3, G2). A crash in between leaves at worst an unused number or pin.
 * 3. Everything that writes holds a permit of the coordinator; `assertHeld` is called right before each commit (C5).
 */
import { SnapshotError, WorkspaceRootChangedError, displayName, invariant, isLooprigError } from "../core/index.js";
import type { Abortable, Directory, EventId, SessionId, SnapshotRef, TurnId, WorkspacePath } from "../core/index.js";
import type { CheckpointTrigger, EventOf, Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import type { Lease } from "../storage/index.js";
import type { CaptureResult, Tree } from "../workspace-store/index.js";
import { ChangeRecorder } from "./change-recorder.js";
import type { Checkpoint } from "./contracts.js";
import { entryKind } from "./file-diff.js";
import type { OwnedCoordinator } from "./coordinator-contract.js";
import { toCheckpoint } from "./history.js";
import { capturedTree, changedTree, completenessOf } from "./known-tree.js";
import type { KnownTree } from "./known-tree.js";
import { checkRoot, identifyDirectory, storedIdentity } from "./root-identity.js";
import type { RootIdentity } from "./root-identity.js";
import type { RootReader } from "./root-reader.js";
import { isBuilt, withoutSwap } from "./root-record.js";

export interface CheckpointRequest extends Abortable {
  readonly trigger: CheckpointTrigger;
  readonly turnId?: TurnId | undefined;
  readonly label?: string | undefined;
  /** The event whose boundary this is (K1). */
  readonly cause?: EventId | undefined;
  /** Set while something of ours may be writing. */
  readonly fuzzy?: boolean | undefined;
  /** A tree that is this one is captured, and neither numbered nor journaled. */
  readonly unlessEqual?: SnapshotRef | undefined;
  /** Whose pin keeps it: the session whose journal will name it. Default: this one. */
  readonly owner?: SessionId | undefined;
  /** The caller puts on record why it failed. */
  readonly failureToldByCaller?: boolean | undefined;
  /** Counts the files and links that differ from this tree. */
  readonly countedFrom?: SnapshotRef | undefined;
  /** Only some paths were looked at; the rest is as an earlier checkpoint says. */
  readonly derived?: boolean | undefined;
  /** Refused with `capture.incomplete` when something could not be read, or would not stand still. */
  readonly complete?: boolean | undefined;
}

/** A durable capture and, unless it was equal to what it was compared with, the event that will name it; pinned then. */
export interface TakenCheckpoint<E = NewEvent<"workspace-checkpointed"> | undefined> {
  readonly result: CaptureResult;
  readonly event: E;
}

/** The directory at the root, while there is one. */
export interface AttachedDirectory {
  readonly handle: Directory;
  readonly identity: RootIdentity;
  /** It is not the recorded one, and is to make way (P1). Until then it may be captured, and nothing else. */
  readonly stranger?: boolean | undefined;
}

/** How often a checkpoint is tried whose bytes are collected before they are pinned. */
const takesMax = 3;

export class OwnedRoot {
  readonly reader: RootReader;
  readonly journal: Journal;
  readonly rootLease: Lease | undefined;
  readonly coordinator: OwnedCoordinator;
  /** Makes names equal that are one on the root's volume (R1); undefined where every name is its own. */
  readonly fold: ((name: string) => string) | undefined;
  /** What the tools of a session get instead of the coordinator: it puts on record what they change. */
  readonly recorder: ChangeRecorder;
  /** A command of a killed session was accepted as still running (G5). */
  readonly #orphansRun: boolean;
  /** Calls that were given up and may still be writing (C6). */
  #unsettled = 0;
  #directory: AttachedDirectory | undefined;
  /** The newest checkpoint of the root, and how long our journal was then. */
  #newest: { readonly ref: SnapshotRef | undefined; readonly head: number } | undefined;

  constructor(parts: {
    readonly reader: RootReader;
    readonly journal: Journal;
    readonly rootLease: Lease | undefined;
    readonly coordinator: OwnedCoordinator;
    readonly fold: ((name: string) => string) | undefined;
    readonly directory: AttachedDirectory | undefined;
    readonly disturbed: boolean;
  }) {
    this.reader = parts.reader;
    this.journal = parts.journal;
    this.rootLease = parts.rootLease;
    this.coordinator = parts.coordinator;
    this.fold = parts.fold;
    this.recorder = new ChangeRecorder(this);
    this.#orphansRun = parts.disturbed;
    this.#directory = parts.directory;
  }

  get sessionId(): SessionId {
    return this.journal.sessionId;
  }

  get shared(): boolean {
    return this.reader.placement === "shared";
  }

  /** Something that asks for no permits may be writing: captures here are fuzzy. */
  get disturbed(): boolean {
    return this.#orphansRun || this.#unsettled > 0;
  }

  /** A call was given up and works on until `settled` resolves, perhaps for ever (C6). */
  disturbUntil(settled: Promise<void>): void {
    const over = (): void => {
      this.#unsettled--;
    };
    this.#unsettled++;
    settled.then(over, over);
  }

  /** The root's directory, held open; throws `workspace_root.changed` unless it is still the one at the root's path. */
  directory(): Directory {
    if (this.#directory === undefined) {
      throw new WorkspaceRootChangedError(
        "workspace_root.changed",
        `Cannot work in "${this.reader.root}": no directory stands there now; \`looprig restore\` builds it anew`,
        { root: this.reader.root, state: "missing" },
      );
    }
    const { handle, identity } = this.#directory;
    checkRoot(this.reader.fileSystem, handle, this.reader.root, identity);
    return handle;
  }

  get missing(): boolean {
    return this.#directory === undefined;
  }

  /** The identity of a directory that is not ours and still stands at the root. */
  get stranger(): RootIdentity | undefined {
    return this.#directory?.stranger === true ? this.#directory.identity : undefined;
  }

  /** Takes over a directory that was just built at the root, and records its identity. */
  async attach(handle: Directory, options: Abortable = {}): Promise<void> {
    const identity = identifyDirectory(this.reader.fileSystem, handle);
    this.#directory?.handle.close();
    this.#directory = { handle, identity };
    await this.reader.record.update(
      (data) => ({
        ...(isBuilt(data, identity) ? data : withoutSwap(data)),
        ...{ identity: storedIdentity(identity), staging: undefined },
      }),
      options,
    );
  }

  append(...events: readonly NewEvent[]): Promise<readonly SessionEvent[]> {
    return this.journal.append(events);
  }

  /** Captures and compares; what is new is numbered and pinned, and the caller journals its event. */
  async take(request: CheckpointRequest): Promise<TakenCheckpoint> {
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.#takeOnce(request);
        } catch (error) {
          // A collection without a grace was faster than the pin; the next capture stores again what went.
          if (attempt === takesMax || !isLooprigError(error, "snapshot.object_missing")) throw error;
        }
      }
    } catch (error) {
      const told = request.failureToldByCaller === true || isLooprigError(error, "capture.canceled");
      if (!told) await this.#recordFailure(request, error);
      throw error;
    }
  }

  async #takeOnce(request: CheckpointRequest): Promise<TakenCheckpoint> {
    const before = this.disturbed;
    const result = await this.capture(request);
    if (request.complete === true) assertComplete(this.reader.root, result);
    const fuzzy = request.fuzzy === true || before || this.disturbed;
    return { result, event: await this.name({ ...request, fuzzy }, capturedTree(result)) };
  }

  /** `base` with these paths as they are now, put together without a walk and stored. Nothing is numbered or pinned. */
  async derive(
    { trigger, signal }: Pick<CheckpointRequest, "trigger" | "signal">,
    base: KnownTree,
    paths: readonly WorkspacePath[],
  ): Promise<KnownTree> {
    this.directory();
    const { store } = this.reader;
    const useReserve = trigger === "pre-restore";
    const options = await this.reader.lookOptions({ signal });
    const { tree } = await store.derive({ ...options, base: base.tree, paths, useReserve });
    this.directory();
    return changedTree(store, base, tree, { signal });
  }

  /** The same for a tree that is recorded whatever it is. */
  async takeAlways(request: CheckpointRequest): Promise<TakenCheckpoint<NewEvent<"workspace-checkpointed">>> {
    const { result, event } = await this.take({ ...request, unlessEqual: undefined });
    invariant(event !== undefined, "BUG: a checkpoint compared with nothing was found equal");
    return { result, event };
  }

  /** What was just read to be the newest checkpoint of the root. */
  noteNewest(ref: SnapshotRef | undefined): void {
    this.#newest = { ref, head: this.journal.head };
  }

  /**
   * The ref of the root's newest checkpoint. It is not read again while it must be what it was: nobody else writes as long as
   * we hold the root's lease, and our own journal has not grown.
   */
  async newestRef(options: Abortable = {}): Promise<SnapshotRef | undefined> {
    if (this.rootLease !== undefined && this.#newest?.head === this.journal.head) return this.#newest.ref;
    return (await this.reader.history(options)).checkpoints.at(-1)?.ref;
  }

  /** Takes a checkpoint and journals it at once. */
  async checkpoint(request: CheckpointRequest): Promise<{ checkpoint: Checkpoint; result: CaptureResult }> {
    const { result, event } = await this.takeAlways(request);
    const journaled = (await this.append(event))[0] as EventOf<"workspace-checkpointed">;
    this.#newest = { ref: journaled.ref, head: journaled.seq };
    return { checkpoint: toCheckpoint(journaled, undefined), result };
  }

  async release(): Promise<void> {
    this.#directory?.handle.close();
    this.#directory = undefined;
    // The root first, then the session (K6): whoever finds the root free finds a journal that is complete.
    await this.rootLease?.release();
    await this.journal.close();
  }

  /** Stores the tree as it is. Nothing is numbered or pinned. */
  async capture(request: Pick<CheckpointRequest, "trigger" | "signal">): Promise<CaptureResult> {
    this.directory();
    const record = await this.reader.record.read(request);
    const result = await this.reader.store.capture({
      ...(await this.reader.scanOptions(request)),
      signal: request.signal,
      strict: this.reader.settings.strict,
      allowLarge: record?.allowLarge ?? false,
      // What a restore writes over is worth the last of the disk (U4).
      useReserve: request.trigger === "pre-restore",
    });
    this.directory();
    return result;
  }

  /**
   * Numbers and pins a tree that the store holds; the caller journals the event. Undefined for one that is `unlessEqual`. Rejects
   * with `snapshot.object_missing` when a collection was faster than the pin.
   */
  async name(
    request: CheckpointRequest & { readonly unlessEqual?: undefined },
    known: KnownTree,
  ): Promise<NewEvent<"workspace-checkpointed">>;
  async name(request: CheckpointRequest, known: KnownTree): Promise<NewEvent<"workspace-checkpointed"> | undefined>;
  async name(request: CheckpointRequest, known: KnownTree): Promise<NewEvent<"workspace-checkpointed"> | undefined> {
    const { trigger, turnId, label, cause, countedFrom, unlessEqual, derived, owner = this.sessionId } = request;
    const { tree, files, omitted } = known;
    if (tree.ref === unlessEqual) return undefined;
    const changed = countedFrom === undefined ? undefined : await this.#countChanges(countedFrom, tree);
    const { checkpoint: number, order } = await this.reader.record.draw({ checkpoint: true }, this.reader.clock());
    await this.reader.store.pin({ owner, id: `c${number}` }, [tree.ref]);
    return {
      type: "workspace-checkpointed",
      ...{ ref: tree.ref, number, order, trigger },
      consistency: request.fuzzy === true || this.shared ? "fuzzy" : "quiescent",
      completeness: completenessOf(known),
      ...{ files, omitted },
      ...(derived === true ? { derived } : {}),
      ...(label === undefined ? {} : { label }),
      ...(changed === undefined ? {} : { changed }),
      ...(turnId === undefined ? {} : { turnId }),
      ...(cause === undefined ? {} : { cause }),
    };
  }

  async #countChanges(from: SnapshotRef, to: Tree): Promise<number> {
    let count = 0;
    for await (const change of this.reader.store.diff(await this.reader.store.open(from), to)) {
      if (entryKind(change) !== "directory") count++;
    }
    return count;
  }

  /** K5: a failed capture is never silent. That the journal cannot be written either is the error that is already on its way. */
  async #recordFailure(request: CheckpointRequest, error: unknown): Promise<void> {
    const code = isLooprigError(error) ? error.code : "unknown";
    await this.append({
      type: "checkpoint-failed",
      trigger: request.trigger,
      code,
      ...(request.turnId === undefined ? {} : { turnId: request.turnId }),
      ...(request.cause === undefined ? {} : { cause: request.cause }),
    }).catch(() => undefined);
  }
}

function assertComplete(root: string, { completeness, omitted }: CaptureResult): void {
  if (completeness === "complete") return;
  const paths = omitted.filter(({ class: cls }) => cls === "unreadable" || cls === "unstable");
  const first = paths[0];
  throw new SnapshotError(
    "capture.incomplete",
    `Cannot capture "${root}" completely: ${displayName(first?.path ?? "")} is ${first?.class ?? "missing"}; make it readable and still`,
    { paths },
  );
}
