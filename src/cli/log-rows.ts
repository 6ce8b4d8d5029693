/**
 * The history of a root as rows, newest first. Pure.
 *
 * What is folded, unless everything is wanted: checkpoints taken while a turn ran become one row below it, and those that only
 * surround a restore, undo or redo become none (what happened to a turn stands beside it), nor do those that an agent's session
 * takes by itself and that hold what the one before holds. A turn stands on the row of the
 * checkpoint that ended it; one that changed nothing, or could not be captured, has a row of its own.
 */
import type { Checkpoint, RootHistory, TurnSummary, UndoEntry } from "../workspace/index.js";

export type LogRow =
  | {
      readonly kind: "checkpoint";
      readonly order: number;
      readonly checkpoint: Checkpoint;
      readonly equalTo?: Checkpoint;
      /** The entry of the undo list it ended: a restore of the user's own. */
      readonly entry?: UndoEntry;
    }
  | { readonly kind: "turn"; readonly order: number; readonly turn: TurnSummary; readonly checkpoint?: Checkpoint }
  | {
      readonly kind: "fold";
      readonly order: number;
      readonly first: Checkpoint;
      readonly last: Checkpoint;
      readonly count: number;
    };

type Fold = Extract<LogRow, { readonly kind: "fold" }>;

export function logRows(
  history: Pick<RootHistory, "checkpoints" | "turns" | "entries">,
  all: boolean,
): readonly LogRow[] {
  const ends = new Map<Checkpoint, TurnSummary>();
  for (const turn of history.turns) {
    const end = endOf(turn, history.checkpoints);
    if (end !== undefined) ends.set(end, turn);
  }
  const rows: LogRow[] = [];
  const seen = new Map<string, Checkpoint>();
  let before: Checkpoint | undefined;
  const folds = new Map<number, Fold>();
  for (const checkpoint of history.checkpoints) {
    const turn = ends.get(checkpoint);
    const equalTo = seen.get(checkpoint.ref);
    if (!all && turn === undefined && isEcho(checkpoint, equalTo, before)) continue;
    before = checkpoint;
    if (!all && checkpoint.turn !== undefined && turn === undefined && whileItRan.has(checkpoint.trigger)) {
      const { first, count } = folds.get(checkpoint.turn) ?? { first: checkpoint, count: 0 };
      folds.set(checkpoint.turn, {
        ...{ kind: "fold", order: checkpoint.order, first, last: checkpoint, count: count + 1 },
      });
      continue;
    }
    if (!all && isSurrounding(checkpoint)) continue;
    // What is not shown is nothing to compare with.
    seen.set(checkpoint.ref, checkpoint);
    if (turn !== undefined) rows.push({ kind: "turn", order: checkpoint.order, turn, checkpoint });
    else {
      const entry = history.entries.find((each) => each.kind === "restore" && each.name === `c${checkpoint.number}`);
      rows.push({
        ...{ kind: "checkpoint", order: checkpoint.order, checkpoint },
        ...(equalTo === undefined ? {} : { equalTo }),
        ...(entry === undefined ? {} : { entry }),
      });
    }
  }
  rows.push(...folds.values());
  const shown = new Set(ends.values());
  for (const turn of history.turns) if (!shown.has(turn)) rows.push({ kind: "turn", order: turn.order, turn });
  return rows.sort((a, b) => b.order - a.order);
}

/** The checkpoint a turn ended with, when it made one of its own. */
function endOf(turn: TurnSummary, checkpoints: readonly Checkpoint[]): Checkpoint | undefined {
  if (turn.to === undefined || turn.endedAt === undefined) return undefined;
  return checkpoints.findLast(
    (each) => each.turn === turn.number && each.trigger !== "baseline" && each.ref === turn.to,
  );
}

const whileItRan: ReadonlySet<Checkpoint["trigger"]> = new Set([...(["interval", "window", "step-done"] as const)]);

/** What an agent's session takes by itself and that is the same tree again: after a turn, and before its next one. */
const isEcho = (checkpoint: Checkpoint, equalTo: Checkpoint | undefined, before: Checkpoint | undefined): boolean =>
  equalTo !== undefined &&
  before !== undefined &&
  checkpoint.ref === before.ref &&
  checkpoint.sessionId === before.sessionId &&
  echoes.has(checkpoint.trigger);

const echoes: ReadonlySet<Checkpoint["trigger"]> = new Set([
  ...(["baseline", "idle", "turn-done", "step-done", "interrupt"] as const),
]);

/** A restore of the user's own is an entry of the undo list and stays visible; an undo or redo is said on its turn's row. */
const isSurrounding = (checkpoint: Checkpoint): boolean =>
  checkpoint.trigger === "pre-restore" ||
  (checkpoint.trigger === "post-restore" && checkpoint.restored?.action !== "restore");
