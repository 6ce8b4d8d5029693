/**
 * What happened to a root, folded from the journals of every session that was attached to it. Pure: events in, history out.
 *
 * Rules of the fold:
 * 1. Order is the root's clock (`order`), never wall time: sessions of one root drew from it one after the other.
 * 2. A turn is an entry of the undo list once it has ended and both its trees are known; a restore always is (U3).
 * 3. Undo moves an entry to the redo stack, redo takes it from there; the end of a turn and a restore empty the stack.
 * 4. What a damaged journal holds after the damage is unknown; the session is named, the rest counts.
 */
import type { CallId, CanonicalRoot, SessionId, StepId, TurnId } from "../core/index.js";
import type {
  EventOf,
  PathsRecord,
  RestoreRecord,
  SessionEvent,
  UndoEntryName,
  WindowRecord,
} from "../session-store/index.js";
import type { Checkpoint, RootHistory, TurnSummary, UndoEntry } from "./contracts.js";

/** One session's part: its events, and whether its lease is held now. */
export interface SessionTrace {
  readonly id: SessionId;
  readonly live: boolean;
  readonly damaged: boolean;
  readonly events: readonly SessionEvent[];
}

/** Whose a record of changes is. */
interface OfTurn {
  readonly sessionId: SessionId;
  readonly turnId: TurnId;
  readonly turn: number;
}

/** What is known of the call that made a record. */
interface OfCall {
  readonly tool?: string;
  readonly stepId?: StepId;
  /** What ran. */
  readonly command?: string;
}

/** A window of a turn: what changed between its refs may be that turn's work. */
export interface Window extends WindowRecord, OfTurn, OfCall {
  /**
   * Somebody else may well have written in it: other sessions were allowed beside it, or looprig was killed and the window
   * stayed open until the next session closed it. Undo and restore need consent for what only such a window explains (U1).
   */
  readonly uncertain: boolean;
  /** "recorded" in a root of the session's own, where nobody else is (U1). */
  readonly strength: "recorded" | "window";
}

/** What a file tool of a turn wrote. */
export interface RecordedWrite extends PathsRecord, OfTurn, OfCall {
  /** The call told that it did what it recorded; otherwise the disk decides (E3). */
  readonly finished: boolean;
}

/** A window that was opened and not closed: its call may be writing now, or was when its process was killed. */
export interface OpenWindow extends OfTurn {
  readonly opened: EventOf<"window-opened">;
}

export interface Restoration extends RestoreRecord {
  readonly sessionId: SessionId;
  readonly at: Date;
}

/** The history with what attribution and planning need besides. */
export interface FoldedHistory extends RootHistory {
  readonly windows: readonly Window[];
  readonly openWindows: readonly OpenWindow[];
  readonly writes: readonly RecordedWrite[];
  /**
   * Names that writes recorded as theirs for their moment (U9). A capture beside a write may hold one; it is nobody's
   * change, and is put back nowhere.
   */
  readonly staged: ReadonlySet<string>;
  readonly restorations: readonly Restoration[];
  /** Entries that were undone and can be put back, the next one last. */
  readonly redoable: readonly UndoEntryName[];
  /** Sessions that are not live and left something open: the next writer settles them. */
  readonly orphans: readonly SessionId[];
}

export function foldHistory(root: CanonicalRoot, known: boolean, traces: readonly SessionTrace[]): FoldedHistory {
  const checkpoints: Checkpoint[] = [];
  const turns = new Map<TurnId, Mutable<TurnSummary>>();
  const windows: Window[] = [];
  const openWindows: OpenWindow[] = [];
  const writes: RecordedWrite[] = [];
  const restorations: Restoration[] = [];
  for (const trace of traces) foldSession(trace, { checkpoints, turns, windows, openWindows, writes, restorations });

  checkpoints.sort(byOrder);
  windows.sort((a, b) => a.closeOrder - b.closeOrder);
  writes.sort(byOrder);
  restorations.sort(byOrder);
  const numbered = [...turns.values()].sort((a, b) => a.number - b.number);
  const { entries, redoable } = foldEntries(numbered, restorations, checkpoints);
  return {
    root,
    known,
    checkpoints,
    turns: numbered,
    entries,
    sessions: traces.map((trace) => trace.id),
    damaged: traces.filter((trace) => trace.damaged).map((trace) => trace.id),
    windows,
    openWindows,
    writes,
    staged: new Set(writes.flatMap(({ staged = [] }) => staged)),
    restorations,
    redoable,
    orphans: traces.filter((trace) => !trace.live && !isSettled(trace)).map((trace) => trace.id),
  };
}

/** A turn whose end is not recorded. */
export interface OpenTurn {
  readonly started: EventOf<"turn-started">;
  readonly baseline: EventOf<"workspace-checkpointed"> | undefined;
  /** Processes whose end is not recorded: of the command of `exec`, or of shell commands. */
  readonly processes: readonly EventOf<"process-started">[];
}

/** The turn a session died in, if it did. */
export function openTurn(events: readonly SessionEvent[]): OpenTurn | undefined {
  let started: EventOf<"turn-started"> | undefined;
  let baseline: EventOf<"workspace-checkpointed"> | undefined;
  const processes = new Map<CallId, EventOf<"process-started">>();
  for (const event of events) {
    if (event.type === "turn-started") {
      [started, baseline] = [event, undefined];
      processes.clear();
    } else if (isTurnEnd(event)) started = undefined;
    else if (
      event.type === "workspace-checkpointed" &&
      event.trigger === "baseline" &&
      event.turnId === started?.turnId
    )
      baseline = event;
    else if (event.type === "process-started") processes.set(event.callId, event);
    else if (event.type === "process-exited") processes.delete(event.callId);
  }
  return started === undefined ? undefined : { started, baseline, processes: [...processes.values()] };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Folding {
  readonly checkpoints: Checkpoint[];
  readonly turns: Map<TurnId, Mutable<TurnSummary>>;
  readonly windows: Window[];
  readonly openWindows: OpenWindow[];
  readonly writes: RecordedWrite[];
  readonly restorations: Restoration[];
}

function foldSession(trace: SessionTrace, into: Folding): void {
  const calls = callsOf(trace.events);
  for (const event of trace.events) {
    const turn = event.turnId === undefined ? undefined : into.turns.get(event.turnId);
    switch (event.type) {
      case "turn-started":
        if (event.turnId !== undefined) into.turns.set(event.turnId, startTurn(event, event.turnId, trace));
        break;
      case "workspace-checkpointed": {
        into.checkpoints.push(toCheckpoint(event, turn?.number));
        if (turn === undefined) break;
        if (event.trigger === "baseline") turn.from = event.ref;
        else turn.to = event.ref;
        break;
      }
      case "checkpoint-failed":
        // A missed interval costs an intermediate state, not the way back.
        if (turn !== undefined && event.trigger !== "interval") turn.protected = false;
        break;
      case "window-opened":
        if (turn === undefined) break;
        into.openWindows.push({ opened: event, ...ofTurn(trace, turn) });
        break;
      case "window-closed":
        remove(into.openWindows, ({ opened }) => opened.callId === event.callId);
        break;
      case "workspace-changed":
        if (turn === undefined) break;
        if (event.kind === "window") foldWindow(event, turn, trace, calls, into);
        else into.writes.push(toWrite(event, turn, trace, calls));
        break;
      case "turn-done":
      case "turn-failed":
      case "turn-interrupted":
        if (turn !== undefined) endTurn(turn, event);
        break;
      case "workspace-restored":
        into.restorations.push({ ...event, sessionId: trace.id });
        nameRestored(into.checkpoints, event);
        break;
      default:
        break;
    }
  }
  for (const { opened, turnId } of into.openWindows) {
    const turn = into.turns.get(turnId);
    if (turn !== undefined && !opened.opened) turn.protected = false;
  }
}

const ofTurn = (trace: SessionTrace, { turnId, number }: TurnSummary): OfTurn => ({
  ...{ sessionId: trace.id, turnId, turn: number },
});

type Mutation<K> = Extract<EventOf<"workspace-changed">, { readonly kind: K }>;

function foldWindow(
  event: Mutation<"window">,
  turn: Mutable<TurnSummary>,
  trace: SessionTrace,
  calls: ReadonlyMap<CallId, Call>,
  into: Folding,
): void {
  const { kind, callId, from, to, opened, openOrder, closeOrder, settled = false } = event;
  const placement = placementOf(trace);
  into.windows.push({
    ...{ kind, callId, from, to, opened, openOrder, closeOrder, ...ofTurn(trace, turn), ...calls.get(callId)?.of },
    uncertain: placement === "shared" || (settled && placement !== "session"),
    strength: placement === "session" ? "recorded" : "window",
  });
  turn.from ??= from;
  turn.to = to;
  // Of the command of `exec` both trees are known now, whatever failed on the way there. Of a loop's turn this is a part.
  turn.protected = turn.kind === "command" ? opened : turn.protected && opened;
}

function toWrite(
  { kind, callId, order, changes, kept, staged, replaced }: Mutation<"paths">,
  turn: TurnSummary,
  trace: SessionTrace,
  calls: ReadonlyMap<CallId, Call>,
): RecordedWrite {
  const call = calls.get(callId);
  return {
    ...{ kind, callId, order, changes, ...ofTurn(trace, turn), finished: call?.done === true },
    ...call?.of,
    ...(kept === undefined ? {} : { kept }),
    ...(staged === undefined ? {} : { staged }),
    ...(replaced === undefined ? {} : { replaced }),
  };
}

interface Call {
  readonly of: OfCall;
  /** It told that it did what it set out to. */
  readonly done: boolean;
}

function callsOf(events: readonly SessionEvent[]): ReadonlyMap<CallId, Call> {
  const calls = new Map<CallId, Call>();
  for (const event of events) {
    if (event.type !== "tool-started" && event.type !== "tool-done" && event.type !== "process-started") continue;
    const known = calls.get(event.callId) ?? { of: {}, done: false };
    const step = event.stepId === undefined ? {} : { stepId: event.stepId };
    const said = event.type === "process-started" ? { command: event.command } : { tool: event.name, ...step };
    calls.set(event.callId, {
      of: { ...known.of, ...said },
      done: event.type === "tool-done" ? event.outcome === "ok" : known.done,
    });
  }
  return calls;
}

function remove<T>(list: T[], matches: (item: T) => boolean): void {
  const at = list.findIndex(matches);
  if (at >= 0) list.splice(at, 1);
}

/** The post-restore checkpoint is journaled in one append with its restore, right before it. */
function nameRestored(checkpoints: Checkpoint[], event: EventOf<"workspace-restored">): void {
  const last = checkpoints.at(-1);
  if (last?.trigger !== "post-restore" || last.sessionId !== event.sessionId) return;
  checkpoints[checkpoints.length - 1] = { ...last, restored: { action: event.action, entry: event.entry } };
}

function startTurn(event: EventOf<"turn-started">, turnId: TurnId, trace: SessionTrace): Mutable<TurnSummary> {
  return {
    ...{ number: event.number, turnId, sessionId: trace.id, order: event.order, input: event.input, kind: event.kind },
    startedAt: event.at,
    state: trace.live ? "running" : "unsettled",
    changed: 0,
    protected: true,
    ...(event.head === undefined ? {} : { head: event.head }),
  };
}

function endTurn(turn: Mutable<TurnSummary>, event: EventOf<"turn-done" | "turn-failed" | "turn-interrupted">): void {
  turn.endedAt = event.at;
  turn.order = event.order;
  turn.changed = event.changed;
  turn.state = event.type === "turn-done" ? "done" : event.type === "turn-failed" ? "failed" : "interrupted";
  if (event.head !== undefined) turn.endHead = event.head;
  if (event.type === "turn-done" && event.exitCode !== undefined) turn.exitCode = event.exitCode;
  // Equal refs journal nothing: a turn after which the tree is as it was captured before ends where it began.
  if (turn.to === undefined && turn.protected && turn.from !== undefined) turn.to = turn.from;
}

export function toCheckpoint(event: EventOf<"workspace-checkpointed">, turn: number | undefined): Checkpoint {
  const { ref, number, order, at, sessionId, trigger, label, consistency, completeness, derived } = event;
  const { files, changed, omitted } = event;
  return {
    ...{ ref, number, order, at, sessionId, trigger, consistency, completeness, files, omitted },
    ...(turn === undefined ? {} : { turn }),
    ...(derived === undefined ? {} : { derived }),
    ...(label === undefined ? {} : { label }),
    ...(changed === undefined ? {} : { changed }),
  };
}

function foldEntries(
  turns: readonly Mutable<TurnSummary>[],
  restorations: readonly Restoration[],
  checkpoints: readonly Checkpoint[],
): { entries: readonly UndoEntry[]; redoable: readonly UndoEntryName[] } {
  const entries = new Map<UndoEntryName, Mutable<UndoEntry>>();
  const turnOf = new Map(turns.map((turn) => [`t${turn.number}` as UndoEntryName, turn]));
  let redoable: UndoEntryName[] = [];
  const happenings = [
    ...turns
      .filter((turn) => turn.endedAt !== undefined)
      .map((turn) => ({ order: turn.order, turn, restored: undefined })),
    ...restorations.map((restored) => ({ order: restored.order, turn: undefined, restored })),
  ].sort(byOrder);

  for (const { turn, restored } of happenings) {
    if (turn !== undefined) {
      redoable = [];
      if (turn.from === undefined || turn.to === undefined) continue;
      const name = `t${turn.number}` as const;
      entries.set(name, {
        ...{ name, kind: "turn", sessionId: turn.sessionId, order: turn.order, at: turn.endedAt ?? turn.startedAt },
        ...{ title: turn.input, state: "applied", from: turn.from, to: turn.to },
      });
    } else if (restored.action === "restore") {
      redoable = [];
      const target = checkpoints.find((checkpoint) => checkpoint.ref === restored.target);
      entries.set(restored.entry, {
        ...{
          name: restored.entry,
          kind: "restore",
          sessionId: restored.sessionId,
          order: restored.order,
          at: restored.at,
        },
        title: target === undefined ? "restore" : `restore c${target.number}`,
        ...{ state: "applied", from: restored.from, to: restored.ref },
      });
    } else {
      const { entry: name, action } = restored;
      const entry = entries.get(name);
      const of = turnOf.get(name);
      redoable = redoable.filter((each) => each !== name);
      if (action === "undo") redoable.push(name);
      const state = action === "redo" ? "applied" : restored.result === "done" ? "undone" : "partly";
      if (entry !== undefined) entry.state = state;
      if (of === undefined) continue;
      if (state === "applied") {
        delete of.undone;
        of.redoneAt = restored.at;
      } else {
        of.undone = state;
        of.undoneAt = restored.at;
      }
    }
  }
  return { entries: [...entries.values()], redoable };
}

const isTurnEnd = (event: SessionEvent): boolean =>
  event.type === "turn-done" || event.type === "turn-failed" || event.type === "turn-interrupted";

/** Closed, with no turn left open: a session whose last turn could not be recorded may still have been closed. */
const isSettled = (trace: SessionTrace): boolean =>
  trace.events.at(-1)?.type === "session-closed" && openTurn(trace.events) === undefined;

function placementOf(trace: SessionTrace): EventOf<"session-started">["placement"] | undefined {
  const started = trace.events.find((event) => event.type === "session-started");
  return started?.placement;
}

const byOrder = (a: { readonly order: number }, b: { readonly order: number }): number => a.order - b.order;
