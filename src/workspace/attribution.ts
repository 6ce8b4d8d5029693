/**
 * Who wrote what stands at a path (U1): asked of the recorded writes and windows of every session of the root, answered by
 * content.
 *
 * A record explains the bytes at a path when it changed that path and left exactly these bytes. That makes the answer
 * independent of time stamps, and lets bytes that an undo or restore put back regain the attribution they had (U8).
 */
import type { Abortable, SessionId, TurnId, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { TreeEntry, WorkspaceStore } from "../workspace-store/index.js";
import type { ChangedBy } from "./changed-by.js";
import type { FoldedHistory, Restoration } from "./history.js";
import { restates } from "./own-changes.js";
import type { OwnChange } from "./own-changes.js";
import { changesIn, changesOf } from "./turn-record.js";

/** A record that left `after` at a path. */
interface Explanation extends OwnChange {
  readonly sessionId: SessionId;
  readonly turnId: TurnId;
  readonly turn: number;
  readonly tool?: string;
  /** False for what is older than was asked about: it only tells what a window holds that is somebody's recorded write. */
  readonly inRange: boolean;
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
   * Takes every write recorded and reads the differences of every window closed after `since` (a place on the root's clock;
   * 0 for all), and those of turns that were undone or redone after it. Cost follows what those windows changed.
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
    const counts = (order: number, turn: number): boolean =>
      order > since || replayed.has(`t${turn}`) || attribution.#rewritten.size > 0;
    for (const write of history.writes) {
      const inRange = counts(write.order, write.turn);
      for (const change of changesOf(write)) attribution.#add(change, write, inRange);
    }
    for (const window of history.windows) {
      if (!counts(window.closeOrder, window.turn)) continue;
      for (const change of await changesIn(store, history, window, options)) attribution.#add(change, window, true);
    }
    for (const explanations of attribution.#byPath.values()) explanations.sort((a, b) => a.closeOrder - b.closeOrder);
    return attribution;
  }

  #add(
    change: OwnChange,
    { sessionId, turnId, turn, ...of }: Pick<Explanation, "sessionId" | "turnId" | "turn" | "tool">,
    inRange: boolean,
  ): void {
    const tool = of.tool === undefined ? {} : { tool: of.tool };
    const explanation = { ...change, sessionId, turnId, turn, inRange, ...tool };
    const known = this.#byPath.get(change.path);
    if (known === undefined) this.#byPath.set(change.path, [explanation]);
    else known.push(explanation);
  }

  /** The newest record that left exactly this at the path. What was recorded in a window of anybody's is no guess. */
  explanationOf(path: WorkspacePath, present: TreeEntry | undefined): Explanation | undefined {
    const matching = this.#byPath.get(path)?.filter(({ after }) => isSameEntry(after, present)) ?? [];
    const newest = matching.findLast(({ inRange }) => inRange);
    if (newest?.kind !== "window") return newest;
    const recorded = matching.findLast((each) => restates(newest, each));
    return recorded ?? newest;
  }

  /**
   * Whether a record of ours in the range explains the bytes at the path (U7): a write or a window in it, or an undo, redo
   * or restore in it that put back bytes some record explains.
   */
  explains(path: WorkspacePath, present: TreeEntry | undefined): boolean {
    const found = this.explanationOf(path, present);
    return found !== undefined && (found.closeOrder > this.#since || this.#rewritten.has(path));
  }

  /** Who left this at the path, as the session `asker` (if any) would say it. */
  by(path: WorkspacePath, present: TreeEntry | undefined, asker: SessionId | undefined): ChangedBy {
    const found = this.explanationOf(path, present);
    if (found === undefined) return this.#runningNow() ?? { kind: "foreign" };
    const { sessionId, turnId, turn, strength } = found;
    const tool = found.tool === undefined ? {} : { tool: found.tool };
    return sessionId === asker
      ? { kind: "session", strength, sessionId, turnId, turn, ...tool }
      : { kind: "other-session", strength, sessionId, turn, ...tool };
  }

  /** Why a path that is not explained is left alone: another session is at work on it, or nobody knows whose it is. */
  keptReason(path: WorkspacePath): "foreign" | "other-session" {
    const known = this.#byPath.get(path)?.some(({ inRange }) => inRange) === true;
    return known || this.#runningNow() === undefined ? "foreign" : "other-session";
  }

  /**
   * Another session that wrote the path while `change` was a window of ours, in a window of its own or as a recorded write: a
   * conflict for both (U1).
   */
  overlapping(change: OwnChange, ours: SessionId): ChangedBy | undefined {
    if (change.strength === "recorded") return undefined;
    const other = this.#byPath
      .get(change.path)
      ?.find(
        (each) =>
          each.sessionId !== ours &&
          (restates(change, each) || (each.openOrder <= change.closeOrder && change.openOrder <= each.closeOrder)),
      );
    return other === undefined
      ? undefined
      : { kind: "other-session", strength: other.strength, sessionId: other.sessionId, turn: other.turn };
  }

  /** While a command of a live session runs, what no closed window explains may be its work. */
  #runningNow(): ChangedBy | undefined {
    const running = this.#history.turns.findLast((turn) => turn.state === "running");
    if (running === undefined) return undefined;
    return { kind: "other-session", strength: "window", sessionId: running.sessionId, turn: running.number };
  }
}
