/**
 * The enduring events of a session (E1–E3): one row per type says what it adds to the envelope. The union, the guards and
 * the replay come from this table. Records are read for ever: a field may be added, never renamed or given a new meaning.
 */
import type { CallId, EventId, GateId, Json, LoopId, SessionId, SnapshotRef, StepId, TurnId } from "../core/index.js";
import type { AssistantPart, TokenUsage, ToolOutcome, TurnLimit } from "./messages.js";

/** Why a checkpoint was taken. */
export type CheckpointTrigger =
  | "seed"
  | "baseline"
  | "manual"
  | "idle"
  | "turn-done"
  | "step-done"
  | "interrupt"
  | "resume"
  | "window"
  | "interval"
  | "pre-restore"
  | "post-restore";

/** Where a session has its root: one for one writer, one per session, one that is shared, or none (P1). */
export type Placement = "exclusive" | "session" | "shared" | "none";

/** R7 across processes; decimal strings, since inode numbers and nanoseconds exceed what JSON numbers hold. */
export interface StoredIdentity {
  readonly dev: string;
  readonly ino: string;
  readonly birthtimeNs: string;
  /** Permission bits of the root directory, for a restore that has to make it again. */
  readonly mode: number;
}

/** Names an entry of the undo list (U3): a turn by its number, a restore by the checkpoint that ended it. */
export type UndoEntryName = `t${number}` | `c${number}`;

/**
 * `order` is a place on the root's own clock: a counter that every session of the root draws from (`roots/<key>`), so
 * what sessions did to one root has one order, whatever their clocks say. Numbers of checkpoints and turns come from the same record.
 */
export interface EventPayloads {
  "session-started": {
    readonly placement: Placement;
    readonly root?: string;
    readonly identity?: StoredIdentity;
    /** What people call it: the command line, or the program that opened the workspace. */
    readonly command: string;
    /** Of the rig the session was started with, and what it is the digest of; absent for a workspace without an agent. */
    readonly fingerprint?: string;
    readonly manifest?: Json;
  };
  "session-active": { readonly doing: string };
  "session-idle": Record<never, never>;
  "session-faulted": { readonly code: string };
  "session-recovered": Record<never, never>;
  "session-closed": Record<never, never>;
  /** A loop of the rig has become an actor of this session; the envelope's `loopId` is its name from here on. */
  "loop-started": { readonly name: string };
  /** Input goes to this loop from here on. */
  "active-loop-changed": { readonly name: string };
  "turn-started": {
    readonly number: number;
    readonly order: number;
    /** The prompt, or the command line. */
    readonly input: string;
    readonly kind: "prompt" | "command";
    /** The commit git's HEAD named, where the root is a repository. Read from files; git is never run. */
    readonly head?: string;
  };
  /** The assistant's message, durable before any of its calls runs. */
  "step-started": {
    /** Who wrote it: `provider/model`. */
    readonly model: string;
    readonly content: readonly AssistantPart[];
    /** Why the message ends where it does: the model's own reason, or "error", "interrupted" for one that was cut short. */
    readonly finish?: string;
  };
  /** The call is about to have effects. A call without this event never ran. */
  "tool-started": { readonly callId: CallId; readonly name: string };
  "tool-done": {
    readonly callId: CallId;
    readonly name: string;
    readonly outcome: ToolOutcome;
    /** What the model is told. */
    readonly text: string;
    /** What the tool adds for programs. */
    readonly data?: Json;
  };
  "step-done": { readonly usage: TokenUsage };
  "turn-done": TurnEnd & {
    readonly exitCode?: number;
    readonly signal?: string;
    /** The reply, for a prompt. */
    readonly text?: string;
    /** Model calls. */
    readonly steps?: number;
    readonly usage?: TokenUsage;
    /** The limit that ended the turn before the model did. */
    readonly limit?: TurnLimit;
  };
  "turn-failed": TurnEnd & { readonly code: string; readonly message: string };
  "turn-interrupted": TurnEnd & { readonly reason: string };
  "workspace-checkpointed": {
    readonly ref: SnapshotRef;
    readonly number: number;
    readonly order: number;
    readonly trigger: CheckpointTrigger;
    readonly consistency: "quiescent" | "fuzzy";
    readonly completeness: "complete" | "partial";
    /** Only the paths of an undo or restore were looked at; everything else is as the checkpoint before it says (U8). */
    readonly derived?: boolean;
    readonly label?: string;
    /** Regular files in the tree. */
    readonly files: number;
    /** Paths that differ from the checkpoint it closes a window of; absent for others. */
    readonly changed?: number;
    /** How many paths were left out, by class. */
    readonly omitted: { readonly [cls: string]: number };
  };
  "checkpoint-failed": { readonly trigger: CheckpointTrigger; readonly code: string };
  "workspace-changed": WindowRecord | PathsRecord;
  /**
   * A call may write anywhere from here on, durable before it does. Without its `window-closed` it still may, or did when
   * the process was killed: whoever settles the turn closes it.
   */
  "window-opened": {
    readonly callId: CallId;
    /** The tree it opened on; absent when none was captured in the turn. */
    readonly from?: SnapshotRef;
    /** False when the command started before the opening capture was complete (U2). */
    readonly opened: boolean;
    readonly order: number;
    /** Why it was not. */
    readonly code?: string;
  };
  /** Follows the `workspace-changed` of the window; alone where nothing changed in it. */
  "window-closed": { readonly callId: CallId };
  "workspace-restored": RestoreRecord;
  /** Another session undid or restored something in this one's root; its loops were told (U8). Never more than a screenful of paths. */
  "restore-noticed": RestoreNotice;
  /** A call waits for a yes or no. Without a `gate-resolved` it still does, whatever happened to the process. */
  "gate-opened": { readonly gateId: GateId; readonly callId: CallId; readonly tool: string; readonly input: Json };
  /** The reason of a no is told to the model; that of a yes is for whoever reads the record. */
  "gate-resolved": { readonly gateId: GateId; readonly approved: boolean; readonly reason?: string };
  "process-started": {
    readonly callId: CallId;
    readonly pid: number;
    /** Start time of the process in clock ticks since boot, as the kernel states it; with the boot id it proves identity. */
    readonly startTime: string;
    readonly bootId: string;
    readonly command: string;
    /** It leads a process group of its own, which whoever takes the root next may end; else it is signalled alone (G5). */
    readonly group?: boolean;
  };
  "process-exited": { readonly callId: CallId; readonly exitCode?: number; readonly signal?: string };
  "configuration-adopted": {
    readonly changes: readonly { readonly field: string; readonly stored: Json; readonly live: Json }[];
  };
}

interface TurnEnd {
  readonly order: number;
  readonly head?: string;
  /** Files and links the turn changed; directories are not counted. */
  readonly changed: number;
}

/** E3 for a process: whatever changed between the two refs may be its work. */
export interface WindowRecord {
  readonly kind: "window";
  readonly callId: CallId;
  readonly from: SnapshotRef;
  readonly to: SnapshotRef;
  /** False when the command started before its opening capture was complete: listed, not undoable (U2). */
  readonly opened: boolean;
  /** Two windows of a root overlap exactly when these intervals do. */
  readonly openOrder: number;
  readonly closeOrder: number;
  /** Closed by a later session, because the one that opened it was killed. */
  readonly settled?: boolean;
}

/**
 * E3 for a file tool: its own writes, durable before the first of them is visible. An id is content, kind and permission
 * bits in one string, or null for absent (docs/formats/journal.md).
 */
export interface PathsRecord {
  readonly kind: "paths";
  readonly callId: CallId;
  readonly order: number;
  readonly changes: readonly { readonly path: string; readonly before: string | null; readonly after: string | null }[];
  /** Holds what stood there before, where no captured tree of the turn does. */
  readonly kept?: SnapshotRef;
  /** Names beside the paths that the write needs for its moment; whoever settles it removes those that were left. */
  readonly staged?: readonly string[];
  /**
   * A second name, for its moment, of the file at the last path, which is replaced (C10). Whoever settles the write removes
   * it if it still holds what was recorded as `before`: somebody may have written into it.
   */
  readonly replaced?: string;
}

/** What an undo, a redo or a restore did to the tree. */
export interface RestoreRecord {
  readonly action: "undo" | "redo" | "restore";
  /** The entry that was undone or redone; for a restore its own name, under which it can be undone. */
  readonly entry: UndoEntryName;
  /** What was asked for: the ref restored to; absent for undo and redo. */
  readonly target?: SnapshotRef;
  /** The tree before, in which everything overwritten or deleted is kept. */
  readonly from: SnapshotRef;
  /** The tree after. */
  readonly ref: SnapshotRef;
  readonly order: number;
  readonly planId: string;
  readonly result: "done" | "partly";
  readonly written: readonly string[];
  readonly deleted: readonly string[];
  readonly kept: readonly { readonly path: string; readonly reason: string }[];
  readonly conflicts: readonly { readonly path: string }[];
}

/** What a session keeps of a restore that another one did: its own words are in that session's journal. */
export interface RestoreNotice extends Pick<
  RestoreRecord,
  "planId" | "action" | "entry" | "order" | "written" | "deleted"
> {
  readonly by: SessionId;
  /** How many further paths it changed. */
  readonly more: number;
}

/** The names of all events (E2). More may come; a reader passes over those it does not know. */
export type EventType = keyof EventPayloads;

/** What every event bears. `cause` names the event that led to it. */
export interface EventEnvelope {
  /** From 1, without gaps, per session. */
  readonly seq: number;
  readonly id: EventId;
  readonly at: Date;
  readonly sessionId: SessionId;
  readonly loopId?: LoopId;
  readonly turnId?: TurnId;
  readonly stepId?: StepId;
  readonly cause?: EventId;
}

/** An event of one type, or a union for several. */
export type EventOf<T extends EventType> = T extends unknown
  ? EventEnvelope & { readonly type: T } & EventPayloads[T]
  : never;
/** Any event of a session: tell them apart by `type`. */
export type SessionEvent = EventOf<EventType>;

/** What is handed to `append`: the envelope's `seq`, `id`, `at` and `sessionId` are the journal's to give. */
export type NewEvent<T extends EventType = EventType> = T extends unknown
  ? { readonly type: T } & EventPayloads[T] & Partial<Pick<EventEnvelope, "loopId" | "turnId" | "stepId" | "cause">>
  : never;
