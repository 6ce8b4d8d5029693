/**
 * What the catalog knows of a session, as a fold over its events: pure, and the same whether folded at once or in parts.
 * The writer, listings and the rebuilding of the catalog all use this one function.
 */
import { invariant } from "../core/index.js";
import type { SessionId, SnapshotRef } from "../core/index.js";
import type { Placement, SessionEvent } from "./events.js";

/** A catalog entry must stay small whatever the command line was. */
export const commandCharsMax = 1_000;

export interface SessionFold {
  readonly id: SessionId;
  /** The last event folded in; 0 before the first. */
  readonly seq: number;
  readonly root: string | undefined;
  readonly placement: Placement;
  readonly command: string;
  readonly startedAt: Date;
  readonly lastAt: Date;
  readonly turns: number;
  readonly checkpoints: number;
  /** The newest tree that was captured, but for those that a restore left (U8). */
  readonly lastCheckpoint: { readonly number: number; readonly ref: SnapshotRef } | undefined;
  /** The tree the session goes on from: the newest captured one, or what the last undo or restore left. */
  readonly currentWorkspace: SnapshotRef | undefined;
  /** The last event is `session-closed`: whatever follows has opened the session again. */
  readonly closed: boolean;
}

/** Before the first event. Also all that can be said of a session whose first record is unreadable. */
export const emptyFold = (id: SessionId): SessionFold => ({
  id,
  seq: 0,
  root: undefined,
  placement: "none",
  command: "",
  startedAt: new Date(0),
  lastAt: new Date(0),
  turns: 0,
  checkpoints: 0,
  lastCheckpoint: undefined,
  currentWorkspace: undefined,
  closed: false,
});

export function foldEvent(before: SessionFold, event: SessionEvent): SessionFold {
  invariant(event.seq === before.seq + 1, "BUG: events are folded in order, each once");
  const after = { ...before, seq: event.seq, lastAt: event.at, closed: event.type === "session-closed" };
  switch (event.type) {
    case "session-started":
      // The first one names the session; its root never changes, which lets listings pass over other roots unread.
      if (event.seq !== 1) return after;
      return {
        ...after,
        root: event.root,
        placement: event.placement,
        command: event.command.slice(0, commandCharsMax),
        startedAt: event.at,
      };
    case "turn-started":
      return { ...after, turns: before.turns + 1 };
    case "workspace-checkpointed":
      return {
        ...after,
        checkpoints: before.checkpoints + 1,
        lastCheckpoint:
          event.trigger === "post-restore" ? before.lastCheckpoint : { number: event.number, ref: event.ref },
        currentWorkspace: event.ref,
      };
    default:
      return after;
  }
}

/** Events after which a catalog entry is worth a write; between them, listings fold the journal's tail. */
export function isLandmark(event: SessionEvent): boolean {
  switch (event.type) {
    case "session-started":
    case "turn-done":
    case "turn-failed":
    case "turn-interrupted":
    case "workspace-restored":
    case "session-closed":
      return true;
    default:
      return false;
  }
}
