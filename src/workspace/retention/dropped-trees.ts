/**
 * What a drop means for the history: which trees are not to be had any more, and what named them. Pure.
 *
 * A tree that was captured again since is there again, under every number it ever had.
 */
import { SnapshotError } from "../../core/index.js";
import type { SessionId, SnapshotRef } from "../../core/index.js";
import type { Checkpoint } from "../contracts.js";
import type { FoldedHistory } from "../history.js";
import { treesOf, treesOfTurn } from "./keep-policy.js";

/** A tree that was dropped, by the newest checkpoint that named it. */
export interface DroppedTree {
  readonly name: string;
  readonly at: Date;
}
export type DroppedTrees = ReadonlyMap<SnapshotRef, DroppedTree>;

export function markDropped<H extends FoldedHistory>(
  history: H,
  dropped: ReadonlyMap<SessionId, (number: number) => Date | undefined>,
): { readonly history: H; readonly trees: DroppedTrees } {
  const trees = new Map<SnapshotRef, DroppedTree>();
  if (dropped.size === 0) return { history, trees };
  const recorded = new Map<Checkpoint, Date>();
  for (const checkpoint of history.checkpoints) {
    const at = dropped.get(checkpoint.sessionId)?.(checkpoint.number);
    if (at !== undefined) recorded.set(checkpoint, at);
  }
  const present = new Set(history.checkpoints.filter((each) => !recorded.has(each)).map(({ ref }) => ref));
  for (const [{ ref, number }, at] of recorded) if (!present.has(ref)) trees.set(ref, { name: `c${number}`, at });
  if (trees.size === 0) return { history, trees };

  /** When the first of them went. */
  const since = (refs: readonly SnapshotRef[]): { readonly dropped?: Date } => {
    const times = refs.map((ref) => trees.get(ref)?.at).filter((at) => at !== undefined);
    return times.length === 0 ? {} : { dropped: new Date(Math.min(...times.map((at) => at.getTime()))) };
  };
  return {
    history: {
      ...history,
      checkpoints: history.checkpoints.map((each) => ({ ...each, ...since([each.ref]) })),
      turns: history.turns.map((turn) => ({ ...turn, ...since(treesOfTurn(turn, history)) })),
      entries: history.entries.map((entry) => ({ ...entry, ...since(treesOf(entry, history)) })),
    },
    trees,
  };
}

/** For a tree that was asked for, by the name of its checkpoint. */
export const treeDropped = (name: string, at: Date): SnapshotError => dropped("open", name, "it was dropped", at);

/** For an entry of the undo list that needs such a tree. */
export const entryDropped = (action: "undo" | "redo", name: string, at: Date): SnapshotError =>
  dropped(action, name, "a tree it needs was dropped", at);

const dropped = (action: string, name: string, what: string, at: Date): SnapshotError =>
  new SnapshotError(
    "snapshot.dropped",
    `Cannot ${action} ${name}: ${what} by gc on ${at.toISOString().slice(0, 10)}; \`looprig log\` shows what is kept`,
    { name, at: at.toISOString() },
  );
