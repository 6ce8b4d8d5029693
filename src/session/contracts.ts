/**
 * The session: one durable execution of a rig. It owns the journal, the leases, the boundaries at which the tree is
 * captured, and which loop is active; the loop owns turns and steps; the workspace owns the tree.
 */
import type { Abortable, CanonicalRoot, Json, LoopId, SessionId, SnapshotRef, TurnId } from "../core/index.js";
import type { LoopDefinition } from "../loop/index.js";
import type { SessionEvent, TokenUsage } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import type { CaptureSettings, Workspace } from "../workspace/index.js";
import type { SessionWorld } from "./parts.js";

/** Where a session gets its root (P1). Paths are canonical. */
export type PlacementDefinition =
  | {
      readonly mode: "exclusive";
      readonly root: CanonicalRoot;
      readonly store: Storage;
      readonly capture: CaptureSettings;
    }
  | {
      readonly mode: "session";
      readonly baseDir: CanonicalRoot;
      readonly store: Storage;
      readonly capture: CaptureSettings;
    }
  | {
      readonly mode: "shared";
      readonly root: CanonicalRoot;
      readonly store: Storage;
      readonly capture: CaptureSettings;
    };

/** The complete policy of a rig (S1, S2): `timeoutMs` is in milliseconds and never 0. */
export interface SnapshotPolicy {
  readonly trigger: "manual" | "idle" | "turn-done" | "step-done";
  readonly priority: "best-effort" | "required";
  readonly timeoutMs: number;
}

/** What `defineRig` has validated and frozen: everything a session is made from. */
export interface SessionDefinition {
  readonly loops: readonly LoopDefinition[];
  /** Names of the loops every session starts; the first is active unless `activePrimer` says another. */
  readonly primers: readonly string[];
  readonly activePrimer: string;
  /** Journals, session leases and, unless the placement has a store of its own, snapshots. */
  readonly storage: Storage;
  readonly placement: PlacementDefinition | undefined;
  /** Present exactly with a placement (S1). */
  readonly snapshots: SnapshotPolicy | undefined;
  /** What the caller configured, canonical (R4). */
  readonly manifest: Json;
  readonly fingerprint: string;
  /** What leases are shown to be held for; the primers' names when absent. */
  readonly command?: string | undefined;
  /** What its sessions take from outside; the system's own when absent. */
  readonly world?: SessionWorld | undefined;
}

/** `breaking`: the session cannot go on as it was (placement mode, fixed root, a loop it used is gone). `notable`: the rest (R5). */
export type DriftSeverity = "breaking" | "notable";
/** One difference between the configuration a session was stored with and the one it is resumed with. */
export interface DriftChange {
  readonly field: string;
  readonly stored: Json;
  readonly live: Json;
  readonly severity: DriftSeverity;
}

export interface StartOptions extends Abortable {
  /** A captured tree to begin with (E4): for session roots and empty exclusive ones. */
  readonly seed?: SnapshotRef | undefined;
  /** R7: accepts the directory that is there, though another one was recorded. */
  readonly root?: "adopt" | undefined;
}

export interface ResumeOptions extends Abortable {
  /** R7: accepts the directory that is there, or builds it anew. */
  readonly root?: "adopt" | "recreate" | undefined;
  /** R5: decides on every drift; without it breaking ones reject and notable ones are adopted. */
  readonly onDrift?: ((drift: { readonly changes: readonly DriftChange[] }) => "accept" | "reject") | undefined;
  /** Compares the stored manifest with this definition's; the rig's, since it knows what the fields mean. */
  readonly drift?: ((stored: Json, live: Json, usedLoops: readonly string[]) => readonly DriftChange[]) | undefined;
}

/** How a turn ended. A turn that came to a limit of steps or calls is `done`. Token counts are those the provider stated. */
export type TurnResult =
  | {
      readonly status: "done";
      readonly turnId: TurnId;
      readonly text: string;
      readonly steps: number;
      readonly usage: TokenUsage;
    }
  | { readonly status: "failed"; readonly turnId: TurnId; readonly error: Error }
  | { readonly status: "interrupted"; readonly turnId: TurnId; readonly reason: string };

/** Live only: never journaled, never replayed. A slow reader loses these and nothing else (E1). */
export type SessionDelta =
  | { readonly type: "text-delta"; readonly turnId: TurnId; readonly text: string }
  | { readonly type: "tool-progress"; readonly turnId: TurnId; readonly callId: string; readonly text: string }
  | { readonly type: "capture-progress"; readonly filesSeen: number; readonly bytesRead: number };

/** A turn under way: its events and live parts as they come, and its end. */
export interface Turn extends AsyncIterable<SessionEvent | SessionDelta> {
  readonly id: TurnId;
  /** `t<number>`; 0 while it waits to begin. */
  readonly number: number;
  /**
   * Resolves when the turn's end is on record, with the capture that the policy requires there; if nothing waits behind it,
   * when the session is idle. Never rejects.
   */
  readonly done: Promise<TurnResult>;
}

/** A yes or a no to a call that waits for approval. The reason of a no is told to the model; that of a yes only stands in the journal. */
export interface GateAnswer {
  readonly approve: boolean;
  readonly reason?: string | undefined;
}

/** One durable execution of a rig. It holds the session's lease, and in an exclusive placement the root's, until it is closed. */
export interface Session extends AsyncDisposable {
  readonly id: SessionId;
  readonly fingerprint: string;
  /**
   * Queued while a turn runs. Rejects with `session.closed`, `session.faulted` (a required checkpoint failed), `option.invalid`
   * (no text, or a blank one), the error of a lost lease, and the signal's reason when it has aborted. A signal that aborts later ends
   * the turn as interrupted, wherever it is; one that still waits is never begun.
   */
  submit(input: string, options?: Abortable): Promise<Turn>;
  /** From `from` (default 1), without gap or repeat; goes on with what comes until the signal aborts or the session closes. */
  events(options?: Abortable & { readonly from?: number | undefined }): AsyncIterable<SessionEvent>;
  /** Resolves when no turn runs, none is queued, and the captures of the policy are done. An abort rejects with its reason. */
  idle(options?: Abortable): Promise<void>;
  /** Ends the running turn as interrupted; resolves when it is and `session-idle` is journaled. What waits goes on after that. */
  interrupt(options?: { readonly reason?: string | undefined }): Promise<void>;
  /**
   * Answers an open gate (T5); resolves when the answer is on record. Of several answers one is taken, and a gate ends with its
   * turn: the rest rejects with `session.unknown_gate`. An answer that cannot be journaled leaves the gate open. `option.invalid`
   */
  respond(gateId: string, answer: GateAnswer): Promise<void>;
  /** Sends input to this primer from here on, also what waits in the queue; journaled. Rejects with `session.unknown_loop`, `session.closed`. */
  setActiveLoop(name: string): Promise<LoopId>;
  /** Throws `workspace.unavailable` where the rig has no placement (P2). */
  readonly workspace: Workspace;
  /**
   * Admits nothing more, ends the running turn and those that wait as interrupted, waits for required captures, cancels
   * best-effort ones, and releases the leases. Idempotent. The rig's storage stays open.
   */
  close(): Promise<void>;
}
