/**
 * Puts on record what the tools of a session change (E3, U1, U2), one turn at a time. docs/formats/journal.md has the order
 * of the records and what a kill leaves.
 *
 * 1. A permit whose holder says what it writes (`records.acquire`) needs no walk: `record` is durable before the write.
 * 2. Any other permit to mutate is a window: the tree is captured before the holder may write, and after it is done, under
 *    the same permit. The closing capture runs beside the next model call; whoever wants to write next waits for it.
 * 3. A permit that was taken away (C6) is followed by a capture under the checkpoint permit.
 * 4. A turn has ended when its windows are closed.
 */
import { isLooprigError, parseWorkspacePath } from "../core/index.js";
import type { Abortable, CallId, LoopId, SnapshotRef, TurnId, WorkspacePath } from "../core/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import { emptyDirectoryId, fileEntryOf, isSameEntry } from "../workspace-store/index.js";
import type { KeptFile, Tree, TreeEntry } from "../workspace-store/index.js";
import type { ChangeRecords, FileChange, FileState, RecordedPermit, RecordingCall } from "./change-records.js";
import type { RecordingCoordinator } from "./change-records.js";
import { assertCovered } from "./record-scope.js";
import { revoked } from "./coordinator-refusals.js";
import type { MutationScope, OwnedCoordinator, WorkspacePermit } from "./coordinator-contract.js";
import { entryId } from "./entry-id.js";
import { entryKind } from "./file-diff.js";
import { foldHistory } from "./history.js";
import type { CheckpointRequest, OwnedRoot, TakenCheckpoint } from "./owned-root.js";
import { composeChanges } from "./own-changes.js";
import type { OwnChange } from "./own-changes.js";
import { identifyProcess } from "./process-identity.js";
import { changesIn, changesOf, inWindow } from "./turn-record.js";

/** U2: how long a command waits for its opening capture. */
const windowOpenMs = 2_000;

interface RecordedTurn {
  readonly of: { readonly turnId: TurnId; readonly loopId?: LoopId };
  /** Trees whose bytes are in the store: the baseline, and the newest one captured since. */
  baseline: Tree | undefined;
  latest: Tree | undefined;
  /** Whether something was recorded that the newest tree does not show. */
  dirty: boolean;
  readonly changes: OwnChange[];
  readonly closing: Set<Promise<void>>;
}

interface OpenedWindow {
  readonly callId: CallId;
  readonly turn: RecordedTurn;
  readonly from: Tree | undefined;
  readonly opened: boolean;
  readonly openOrder: number;
}

export class ChangeRecorder {
  readonly coordinator: RecordingCoordinator;
  readonly #owned: OwnedRoot;
  #turn: RecordedTurn | undefined;

  constructor(owned: OwnedRoot) {
    this.#owned = owned;
    this.coordinator = recording(owned.coordinator, (callId) => this.#call(callId));
  }

  /** From here on what tools change is this turn's. `baseline` is what it began with, where it could be captured. */
  begin(of: RecordedTurn["of"], baseline: Tree | undefined): void {
    this.#turn = { of, baseline, latest: baseline, dirty: false, changes: [], closing: new Set() };
  }

  /** Goes on with a turn of before a restart, as its events tell of it. */
  async resume(of: RecordedTurn["of"], before: readonly SessionEvent[], options: Abortable = {}): Promise<void> {
    const { reader } = this.#owned;
    const session = { id: this.#owned.sessionId, live: true, damaged: false, events: before };
    const history = foldHistory(reader.root, true, [session]);
    const turn = history.turns.find(({ turnId }) => turnId === of.turnId);
    const open = async (ref: SnapshotRef | undefined): Promise<Tree | undefined> =>
      ref === undefined ? undefined : reader.store.open(ref, options);
    this.begin(of, await open(turn?.from));
    const resumed = this.#turn as unknown as RecordedTurn;
    resumed.latest = (await open(turn?.to)) ?? resumed.baseline;
    for (const write of history.writes) if (write.turnId === of.turnId) resumed.changes.push(...changesOf(write));
    for (const window of history.windows) {
      if (window.turnId === of.turnId)
        resumed.changes.push(...(await changesIn(reader.store, history, window, options)));
    }
    resumed.dirty = resumed.changes.length > 0;
  }

  /**
   * Waits for the windows of the turn and looks once more at the tree if something was recorded since the last look. Returns
   * what the append that ends the turn takes along, and how many files and links the turn changed.
   */
  async end(): Promise<{ readonly events: readonly NewEvent[]; readonly changed: number }> {
    const turn = this.#turn;
    if (turn === undefined) return { events: [], changed: 0 };
    await this.windowsClosed();
    this.#turn = undefined;
    const events: NewEvent[] = [];
    if (turn.dirty) {
      using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" });
      const taken = await this.#capture(turn, {}).catch(onlyOurs);
      if (taken?.event !== undefined) events.push({ ...taken.event, ...turn.of });
    }
    return { events, changed: await countStanding(turn) };
  }

  /** Until the captures that close windows of the turn are done: they hold the tree, and see what any other one would. */
  async windowsClosed(): Promise<void> {
    const turn = this.#turn;
    while (turn !== undefined && turn.closing.size > 0) await Promise.all(turn.closing);
  }

  #call(callId: CallId): RecordingCall {
    const call = this.#owned.coordinator.forCall(callId);
    const records: ChangeRecords = {
      acquire: async (paths, options) => {
        const scope: MutationScope = { operation: "path-mutation", paths };
        return this.#recorded(callId, scope, await call.acquire(scope, options));
      },
      processStarted: async ({ pid, command }) => {
        const { fileSystem } = this.#owned.reader;
        const identity = identifyProcess(fileSystem, pid) ?? { pid, startTime: "", bootId: "" };
        await this.#append({ type: "process-started", callId, ...identity, command, group: true });
      },
      processExited: ({ exitCode, signal }) =>
        this.#append({
          ...{ type: "process-exited", callId },
          ...(exitCode === undefined ? {} : { exitCode }),
          ...(signal === undefined ? {} : { signal }),
        }),
    };
    return {
      callId,
      records,
      acquire: async (scope, options) => this.#windowed(callId, scope, await call.acquire(scope, options), options),
      assertHealthy: () => call.assertHealthy(),
      [Symbol.dispose]: () => call[Symbol.dispose](),
    };
  }

  // ── recorded writes ───────────────────────────────────────────────────────────────────────────────────────────────

  #recorded(callId: CallId, scope: MutationScope, permit: WorkspacePermit): RecordedPermit {
    let held = permit;
    return {
      release: () => held.release(),
      get revoked() {
        return permit.revoked;
      },
      assertHeld: () => held.assertHeld(),
      [Symbol.dispose]: () => held.release(),
      record: async (changes, options) => {
        const { fold, reader } = this.#owned;
        const { staged = [], replaced } = options ?? {};
        assertCovered(scope, changes, replaced === undefined ? staged : [...staged, replaced], {
          root: reader.root,
          fold,
        });
        await this.#record(callId, changes, options);
      },
      keep: ({ path, mode, bytes }) => this.#keep(callId, [{ path: parseWorkspacePath(path), mode, bytes }], {}),
      openWindow: async (options) => {
        if (held === permit) held = await this.#opened(callId, scope, permit, options);
      },
    };
  }

  async #record(
    callId: CallId,
    given: readonly FileChange[],
    { staged = [], replaced, ...options }: NonNullable<Parameters<RecordedPermit["record"]>[1]> = {},
  ): Promise<void> {
    const turn = this.#turn;
    const changes = given
      .map(({ path, before, after }) => ({
        path: parseWorkspacePath(path),
        ...{ before: entryOf(before), after: entryOf(after), bytes: before },
      }))
      .filter(({ before, after }) => !isSameEntry(before, after));
    if (turn === undefined || changes.length === 0) return;
    const kept = await this.#keepUnknown(callId, turn, changes, options);
    const { order } = await this.#owned.reader.record.draw({}, this.#owned.reader.clock(), options);
    turn.dirty = true;
    for (const { path, before, after } of changes) {
      turn.changes.push({
        ...{ path, before, after, openOrder: order, closeOrder: order },
        ...{ kind: "paths", strength: "recorded", uncertain: false, finished: true },
      });
    }
    await this.#owned.append({
      ...{ type: "workspace-changed", kind: "paths", callId, order, ...turn.of },
      changes: changes.map(({ path, before, after }) => ({ path, before: entryId(before), after: entryId(after) })),
      ...(kept === undefined ? {} : { kept }),
      ...(staged.length === 0 ? {} : { staged }),
      ...(replaced === undefined ? {} : { replaced }),
    });
  }

  /** Somebody else's bytes that no tree of the turn holds are stored before they are written over. */
  async #keepUnknown(
    callId: CallId,
    turn: RecordedTurn,
    changes: readonly { path: WorkspacePath; before: TreeEntry | undefined; bytes: FileState | undefined }[],
    options: Abortable,
  ): Promise<SnapshotRef | undefined> {
    const files: KeptFile[] = [];
    for (const { path, before, bytes } of changes) {
      if (bytes?.kind !== "file" || (await isHeld(turn, path, before))) continue;
      files.push({ path, bytes: bytes.bytes, mode: bytes.mode });
    }
    return files.length === 0 ? undefined : this.#keep(callId, files, options);
  }

  async #keep(callId: CallId, files: readonly KeptFile[], options: Abortable): Promise<SnapshotRef> {
    const { store } = this.#owned.reader;
    return store.keep(files, { ...options, pin: { owner: this.#owned.sessionId, id: callId } });
  }

  // ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #windowed(
    callId: CallId,
    scope: MutationScope,
    permit: WorkspacePermit,
    options: Abortable = {},
  ): Promise<WorkspacePermit> {
    return scope.operation === "checkpoint" ? permit : this.#opened(callId, scope, permit, options);
  }

  /** The permit with a window open under it. On failure it is released. */
  async #opened(
    callId: CallId,
    scope: MutationScope,
    permit: WorkspacePermit,
    { signal }: Abortable = {},
  ): Promise<WorkspacePermit> {
    const turn = this.#turn;
    if (turn === undefined) return permit;
    let window: OpenedWindow;
    try {
      window = await this.#open(turn, callId, permit, signal);
    } catch (error) {
      permit.release();
      throw error;
    }
    return this.#untilClosed(permit, scope, window);
  }

  async #open(
    turn: RecordedTurn,
    callId: CallId,
    permit: WorkspacePermit,
    signal: AbortSignal | undefined,
  ): Promise<OpenedWindow> {
    const { record, clock } = this.#owned.reader;
    const { order: openOrder } = await record.draw({}, clock(), { signal });
    const stops = [permit.revoked, ...(signal === undefined ? [] : [signal])];
    const limit = AbortSignal.any([...stops, AbortSignal.timeout(windowOpenMs)]);
    let taken: TakenCheckpoint | undefined;
    let code: string | undefined;
    try {
      taken = await this.#capture(turn, { signal: limit, failureToldByCaller: true });
    } catch (error) {
      // A command that is not to run is not begun; one whose tree cannot be captured in time is, and cannot be undone.
      if (!isLooprigError(error) || stops.some(({ aborted }) => aborted)) throw error;
      code = error.code;
    }
    const from = taken?.result.tree ?? turn.latest;
    const opened = taken !== undefined;
    const marker: NewEvent = {
      ...{ type: "window-opened", callId, opened, order: openOrder, ...turn.of },
      ...(from === undefined ? {} : { from: from.ref }),
      ...(code === undefined ? {} : { code }),
    };
    await this.#owned.append(...(taken?.event === undefined ? [] : [{ ...taken.event, ...turn.of }]), marker);
    return { callId, turn, from, opened, openOrder };
  }

  /** Its release closes the window, and only then gives the permit back. */
  #untilClosed(permit: WorkspacePermit, scope: MutationScope, window: OpenedWindow): WorkspacePermit {
    const { coordinator } = this.#owned;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      permit.revoked.removeEventListener("abort", onRevoked);
      coordinator.detach(permit);
      this.#track(window, async () => {
        try {
          await this.#close(window);
        } finally {
          permit.release();
        }
      });
    };
    const onRevoked = (): void => {
      if (released) return;
      released = true;
      this.#track(window, async () => {
        using _permit = await coordinator.acquire({ operation: "checkpoint" });
        await this.#close(window);
      });
    };
    permit.revoked.addEventListener("abort", onRevoked, { once: true });
    if (permit.revoked.aborted) onRevoked();
    return {
      release,
      get revoked() {
        return permit.revoked;
      },
      assertHeld: () => {
        // What is written now would come after the look that closes the window.
        if (released) throw revoked(scope);
        permit.assertHeld();
      },
      [Symbol.dispose]: release,
    };
  }

  #track({ turn }: OpenedWindow, work: () => Promise<void>): void {
    // A capture that fails is journaled where it fails; a journal that fails is found by the next append.
    const closing: Promise<void> = work()
      .catch(() => undefined)
      .finally(() => turn.closing.delete(closing));
    turn.closing.add(closing);
  }

  async #close({ callId, turn, from, opened, openOrder }: OpenedWindow): Promise<void> {
    const { reader } = this.#owned;
    const taken = await this.#capture(turn, { countedFrom: from?.ref });
    const { order: closeOrder } = await reader.record.draw({}, reader.clock());
    const to = taken.result.tree;
    const events: NewEvent[] = taken.event === undefined ? [] : [{ ...taken.event, ...turn.of }];
    if (from !== undefined && from.ref !== to.ref) {
      const strength = reader.placement === "session" ? "recorded" : "window";
      const span = { openOrder, closeOrder, strength, uncertain: this.#owned.shared } as const;
      for await (const change of reader.store.diff(from, to)) turn.changes.push(inWindow(change, span));
      events.push({
        ...{ type: "workspace-changed", kind: "window", callId, from: from.ref, to: to.ref, opened },
        ...{ openOrder, closeOrder, ...turn.of },
      });
    }
    await this.#owned.append(...events, { type: "window-closed", callId, ...turn.of });
  }

  async #capture(
    turn: RecordedTurn,
    options: Pick<CheckpointRequest, "signal" | "countedFrom" | "failureToldByCaller">,
  ): Promise<TakenCheckpoint> {
    turn.dirty = false;
    const others = this.#owned.coordinator.counts().held > 1;
    try {
      const taken = await this.#owned.take({
        ...{ trigger: "window", turnId: turn.of.turnId, unlessEqual: turn.latest?.ref, fuzzy: others },
        ...options,
      });
      turn.latest = taken.result.tree;
      // What was being written beside the walk may have come after it.
      turn.dirty ||= others;
      return taken;
    } catch (error) {
      turn.dirty = true;
      throw error;
    }
  }

  async #append(event: NewEvent): Promise<void> {
    await this.#owned.append({ ...event, ...this.#turn?.of });
  }
}

/** Files and links that are as the turn left them: a write that was refused, or that somebody wrote over, is not counted. */
async function countStanding({ changes, latest }: RecordedTurn): Promise<number> {
  let count = 0;
  for (const change of composeChanges(changes)) {
    if (entryKind(change) === "directory") continue;
    if (latest === undefined || isSameEntry(await latest.lookup(change.path), change.after)) count++;
  }
  return count;
}

/** A capture that failed was journaled; what is no failure of ours goes on. */
function onlyOurs(error: unknown): undefined {
  if (!isLooprigError(error)) throw error;
}

const entryOf = (state: FileState | undefined): TreeEntry | undefined =>
  state === undefined
    ? undefined
    : state.kind === "file"
      ? fileEntryOf(state.bytes, state.mode)
      : { kind: "directory", mode: state.mode, id: emptyDirectoryId };

/** Whether the store holds what stands there: a tree of this turn has it. What was only written is stored nowhere yet. */
async function isHeld(turn: RecordedTurn, path: WorkspacePath, entry: TreeEntry | undefined): Promise<boolean> {
  for (const tree of [turn.latest, turn.baseline]) {
    if (tree !== undefined && isSameEntry(await tree.lookup(path), entry)) return true;
  }
  return false;
}

function recording(owned: OwnedCoordinator, forCall: (callId: CallId) => RecordingCall): RecordingCoordinator {
  const calls = new Map<CallId, RecordingCall>();
  return {
    acquire: (scope, options) => owned.acquire(scope, options),
    assertHealthy: () => owned.assertHealthy(),
    revoke: (target) => owned.revoke(target),
    detach: (permit) => owned.detach(permit),
    idle: () => owned.idle(),
    counts: () => owned.counts(),
    // The same view until it is disposed, like the owner's own.
    forCall: (callId) => {
      const known = calls.get(callId);
      if (known !== undefined) return known;
      const made = forCall(callId);
      const call: RecordingCall = {
        ...made,
        [Symbol.dispose]: () => {
          calls.delete(callId);
          made[Symbol.dispose]();
        },
      };
      calls.set(callId, call);
      return call;
    },
  };
}
