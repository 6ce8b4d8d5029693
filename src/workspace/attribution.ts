/**
 * Who wrote what stands at a path (U1): asked of the recorded windows of every session of the root, answered by content.
 *
 * A window explains the bytes at a path when it changed that path and left exactly these bytes. That makes the answer
 * independent of time stamps, and lets bytes that an undo or restore put back regain the attribution they had (U8).
 */
import { isLooprigError } from "../core/index.js";
import type { Abortable, SessionId, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { TreeEntry, WorkspaceStore } from "../workspace-store/index.js";
import type { ChangedBy } from "./changed-by.js";
import type { FoldedHistory, Restoration, Window } from "./history.js";

interface Explanation {
  readonly window: Window;
  readonly after: TreeEntry | undefined;
}

export class Attribution {
  readonly #history: FoldedHistory;
  readonly #since: number;
  readonly #byPath = new Map<WorkspacePath, Explanation[]>();
  /** Paths that undo, redo or restore wrote after `since`, with the newest such record. */
  readonly #rewritten = new Map<string, Restoration>();

  private constructor(history: FoldedHistory, since: number) {
    this.#history = history;
    this.#since = since;
  }

  /**
   * Reads the differences of every window that closed after `since` (a place on the root's clock; 0 for all), and of those
   * whose turns were undone or redone after it. Cost follows what those windows changed.
   */
  static async load(
    store: WorkspaceStore,
    history: FoldedHistory,
    since: number,
    options: Abortable = {},
  ): Promise<Attribution> {
    const attribution = new Attribution(history, since);
    const replayed = new Set<string>();
    for (const restored of history.restorations) {
      if (restored.order <= since) continue;
      replayed.add(restored.entry);
      for (const path of [...restored.written, ...restored.deleted]) attribution.#rewritten.set(path, restored);
    }
    for (const window of history.windows) {
      if (window.closeOrder > since || replayed.has(`t${window.turn}`) || attribution.#rewritten.size > 0) {
        await attribution.#add(store, window, options);
      }
    }
    return attribution;
  }

  async #add(store: WorkspaceStore, window: Window, options: Abortable): Promise<void> {
    try {
      const [from, to] = [await store.open(window.from, options), await store.open(window.to, options)];
      for await (const change of store.diff(from, to, options)) {
        const known = this.#byPath.get(change.path);
        const explanation = { window, after: change.after };
        if (known === undefined) this.#byPath.set(change.path, [explanation]);
        else known.push(explanation);
      }
    } catch (error) {
      // A damaged tree explains nothing more: what it alone explained counts as nobody's, and is kept.
      if (!isLooprigError(error, "snapshot.unknown", "snapshot.object_missing", "snapshot.object_damaged")) throw error;
    }
  }

  /** The newest window that left exactly this at the path. */
  windowOf(path: WorkspacePath, present: TreeEntry | undefined): Window | undefined {
    return this.#byPath.get(path)?.findLast(({ after }) => isSameEntry(after, present))?.window;
  }

  /**
   * Whether a record of ours in the range explains the bytes at the path (U7): a window that closed in it, or an undo, redo
   * or restore in it that put back bytes some window explains.
   */
  explains(path: WorkspacePath, present: TreeEntry | undefined): boolean {
    const window = this.windowOf(path, present);
    return window !== undefined && (window.closeOrder > this.#since || this.#rewritten.has(path));
  }

  /** Who left this at the path, as the session `asker` (if any) would say it. */
  by(path: WorkspacePath, present: TreeEntry | undefined, asker: SessionId | undefined): ChangedBy {
    const window = this.windowOf(path, present);
    if (window === undefined) return this.#runningNow() ?? { kind: "foreign" };
    const { sessionId, turnId, turn } = window;
    return sessionId === asker
      ? { kind: "session", strength: "window", sessionId, turnId, turn }
      : { kind: "other-session", strength: "window", sessionId, turn };
  }

  /** Why a path that is not explained is left alone: another session is at work on it, or nobody knows whose it is. */
  keptReason(path: WorkspacePath): "foreign" | "other-session" {
    return this.#byPath.has(path) || this.#runningNow() === undefined ? "foreign" : "other-session";
  }

  /** Another session's window that overlaps `of` in time and changed the path too: a conflict for both (U1). */
  overlapping(path: WorkspacePath, of: Window): ChangedBy | undefined {
    const other = this.#byPath
      .get(path)
      ?.find(
        ({ window }) =>
          window.sessionId !== of.sessionId && window.openOrder <= of.closeOrder && of.openOrder <= window.closeOrder,
      )?.window;
    return other === undefined
      ? undefined
      : { kind: "other-session", strength: "window", sessionId: other.sessionId, turn: other.turn };
  }

  /** While a command of a live session runs, what no closed window explains may be its work. */
  #runningNow(): ChangedBy | undefined {
    const running = this.#history.turns.findLast((turn) => turn.state === "running");
    if (running === undefined) return undefined;
    return { kind: "other-session", strength: "window", sessionId: running.sessionId, turn: running.number };
  }
}
