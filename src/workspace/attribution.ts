/**
 * Who wrote what stands at a path (U1): asked of the recorded writes and windows of every session of the root, answered by
 * content.
 *
 * A record explains the bytes at a path when it changed that path and left exactly these bytes. That makes the answer
 * independent of time stamps, and lets bytes that an undo or restore put back regain the attribution they had (U8).
 */
import type { Abortable, SessionId, WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { TreeEntry, WorkspaceStore } from "../workspace-store/index.js";
import type { ChangedBy, ChangedByCall, Overlap } from "./changed-by.js";
import type { FoldedHistory, RecordedWrite, Restoration, Window } from "./history.js";
import { restates } from "./own-changes.js";
import type { OwnChange } from "./own-changes.js";
import { changesIn, changesOf } from "./turn-record.js";

/** A record that left `after` at a path. */
interface Explanation extends OwnChange, Pick<Window, "sessionId" | "turnId" | "turn"> {
  readonly call: ChangedByCall;
  /** False for what is older than was asked about: it only tells what a window holds that is somebody's recorded write. */
  readonly inRange: boolean;
}

export class Attribution {
  readonly #history: FoldedHistory;
  readonly #since: number;
  readonly #byPath = new Map<WorkspacePath, Explanation[]>();
  /** Places on the root's clock where turns ended. */
  readonly #ends: ReadonlyMap<number, number>;
  /** Paths that undo, redo or restore wrote after `since`, with the newest such record. */
  readonly #rewritten = new Map<string, Restoration>();

  private constructor(history: FoldedHistory, since: number) {
    this.#history = history;
    this.#since = since;
    const ended = history.turns.filter(({ endedAt }) => endedAt !== undefined);
    this.#ends = new Map(ended.map(({ number, order }) => [number, order]));
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

  #add(change: OwnChange, record: Window | RecordedWrite, inRange: boolean): void {
    const { sessionId, turnId, turn } = record;
    const explanation = { ...change, sessionId, turnId, turn, inRange, call: callOf(record) };
    const known = this.#byPath.get(change.path);
    if (known === undefined) this.#byPath.set(change.path, [explanation]);
    else known.push(explanation);
  }

  /** The newest record that left exactly this at the path. What was recorded in a window of anybody's is no guess. */
  explanationOf(path: WorkspacePath, present: TreeEntry | undefined): Explanation | undefined {
    const matching = this.#byPath.get(path)?.filter(({ after }) => isSameEntry(after, present)) ?? [];
    const newest = matching.findLast(({ inRange }) => inRange);
    if (newest?.kind !== "window") return newest;
    const recorded = matching.findLast((each) => this.#restates(newest, each));
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
    const { sessionId, turnId, turn, strength, call } = found;
    const others = this.overlaps(found, sessionId);
    const overlaps = others.length === 0 ? {} : { overlaps: others };
    const kind = sessionId === asker ? "session" : "other-session";
    return { kind, strength, sessionId, turnId, turn, ...call, ...overlaps };
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
    const [other] = this.#meanwhile(change, ours);
    if (other === undefined) return undefined;
    const { strength, sessionId, turnId, turn, call } = other;
    return { kind: "other-session", strength, sessionId, turnId, turn, ...call };
  }

  /** A write of a turn that was over before the window opened was visible by then, or never: the window tells of another. */
  #restates(window: OwnChange, record: Explanation): boolean {
    return restates(window, record) && (this.#ends.get(record.turn) ?? Infinity) >= window.openOrder;
  }

  /** Changes of other sessions at the path in the span of a window. What a tool recorded is its own, whoever ran beside it. */
  #meanwhile(change: OwnChange, ours: SessionId): readonly Explanation[] {
    if (change.strength === "recorded") return [];
    const known = this.#byPath.get(change.path) ?? [];
    return known.filter(
      (each) =>
        each.sessionId !== ours &&
        (this.#restates(change, each) || (each.openOrder <= change.closeOrder && change.openOrder <= each.closeOrder)),
    );
  }

  /** The turns of other sessions that changed the path while `change` was a window of ours, each once. */
  overlaps(change: OwnChange, ours: SessionId): readonly Overlap[] {
    const turns = new Map(this.#meanwhile(change, ours).map(({ sessionId, turn }) => [turn, { sessionId, turn }]));
    return [...turns.values()];
  }

  /** While a command of a live session runs, what no closed window explains may be its work. */
  #runningNow(): ChangedBy | undefined {
    const running = this.#history.turns.findLast((turn) => turn.state === "running");
    if (running === undefined) return undefined;
    const { sessionId, turnId, number, kind, input } = running;
    const command = kind === "command" ? { command: input } : {};
    return { kind: "other-session", strength: "window", sessionId, turnId, turn: number, ...command };
  }
}

const callOf = ({ callId, stepId, tool, command }: Window | RecordedWrite): ChangedByCall => ({
  callId,
  ...(stepId === undefined ? {} : { stepId }),
  ...(tool === undefined ? {} : { tool }),
  ...(command === undefined ? {} : { command }),
});
