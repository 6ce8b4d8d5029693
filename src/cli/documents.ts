/**
 * The documents of `--json`. Fields are a contract: more may come, none goes. Paths stand as core spells them (bytes that are
 * not UTF-8 as \udcXX), session ids in full, times in ISO 8601, turns and checkpoints by their names.
 */
import type { SessionId, WorkspacePath } from "../core/index.js";
import type { SessionSummary } from "../session-store/index.js";
import type {
  Change,
  ChangedBy,
  Checkpoint,
  ExecResult,
  FileDiff,
  RestorePlan,
  RestoreReceipt,
  RootHistory,
  TurnSummary,
} from "../workspace/index.js";
import type { OmissionClass } from "../workspace-store/index.js";
import { logRows } from "./log-rows.js";
import { modeText } from "./render-show.js";
import { isIdle, unsettledTurns } from "./render-status.js";
import type { StatusData } from "./render-status.js";
import type { ListedEntry } from "./tree-listing.js";

export const checkpointName = ({ number }: Pick<Checkpoint, "number">): string => `c${number}`;
export const turnName = (number: number): string => `t${number}`;

export interface Omitted {
  readonly path: WorkspacePath;
  readonly class: OmissionClass;
}

export const snapshotDocument = (
  taken: Checkpoint & { readonly unchanged: boolean },
  omitted: readonly Omitted[],
): object => ({
  session: taken.sessionId,
  checkpoint: checkpointName(taken),
  ref: taken.ref,
  ...(taken.label === undefined ? {} : { label: taken.label }),
  unchanged: taken.unchanged,
  consistency: taken.consistency,
  completeness: taken.completeness,
  files: taken.files,
  omitted,
});

export function logDocument(
  history: Pick<RootHistory, "checkpoints" | "turns" | "entries" | "damaged">,
  limit: number,
): object {
  const turnOf = (checkpoint: Checkpoint): TurnSummary | undefined =>
    checkpoint.turn === undefined ? undefined : history.turns.find(({ number }) => number === checkpoint.turn);
  const entries = logRows(history, true).map((row) => {
    if (row.kind === "turn" && row.checkpoint === undefined) return turnEntry(row.turn);
    const checkpoint = row.kind === "fold" ? row.last : row.checkpoint;
    return checkpoint === undefined ? {} : checkpointEntry(checkpoint, turnOf(checkpoint), row.kind === "turn");
  });
  return { entries: entries.slice(0, limit), damaged: history.damaged };
}

function checkpointEntry(checkpoint: Checkpoint, turn: TurnSummary | undefined, endsTurn: boolean): object {
  return {
    checkpoint: checkpointName(checkpoint),
    ref: checkpoint.ref,
    at: checkpoint.at.toISOString(),
    session: checkpoint.sessionId,
    ...(turn === undefined ? {} : { turn: turnName(turn.number) }),
    trigger: checkpoint.trigger,
    ...(checkpoint.label === undefined ? {} : { label: checkpoint.label }),
    consistency: checkpoint.consistency,
    completeness: checkpoint.completeness,
    files: checkpoint.files,
    ...(checkpoint.dropped === undefined ? {} : { dropped: checkpoint.dropped.toISOString() }),
    protected: turn?.protected ?? true,
    ...(endsTurn && turn?.undone !== undefined ? { undone: turn.undone } : {}),
    ...(endsTurn && turn !== undefined ? turnFacts(turn) : {}),
  };
}

/** A turn that ended with no checkpoint of its own: it changed nothing, or its tree could not be captured. */
function turnEntry(turn: TurnSummary): object {
  return {
    checkpoint: null,
    ref: turn.to ?? null,
    at: (turn.endedAt ?? turn.startedAt).toISOString(),
    session: turn.sessionId,
    turn: turnName(turn.number),
    trigger: "turn-done",
    consistency: "quiescent",
    completeness: turn.to === undefined ? "partial" : "complete",
    files: 0,
    protected: turn.protected,
    ...(turn.undone === undefined ? {} : { undone: turn.undone }),
    ...turnFacts(turn),
  };
}

const turnFacts = (turn: TurnSummary): object => ({
  title: turn.input,
  state: turn.state,
  changed: turn.changed,
  ...(turn.exitCode === undefined ? {} : { exitCode: turn.exitCode }),
});

export const showDocument = (
  given: { readonly checkpoint: Checkpoint | undefined; readonly ref: string },
  listed: readonly ListedEntry[],
): object => ({
  checkpoint: given.checkpoint === undefined ? null : checkpointName(given.checkpoint),
  ref: given.ref,
  entries: listed.flatMap(({ path, entry }): object[] => {
    switch (entry.kind) {
      case "file":
        return [{ path, kind: entry.kind, mode: modeText(entry.mode), size: entry.size }];
      case "directory":
        return [{ path, kind: entry.kind, mode: modeText(entry.mode), size: 0 }];
      case "symlink":
        return [{ path, kind: entry.kind, mode: "0777", size: Buffer.byteLength(entry.target), target: entry.target }];
      case "omitted":
        return [];
      default:
        return entry satisfies never;
    }
  }),
  omitted: listed.flatMap(({ path, entry }) => (entry.kind === "omitted" ? [{ path, class: entry.class }] : [])),
});

export function statusDocument({ holder, history, changes, undoable, unsettled, waiting }: StatusData): object {
  const last = history.checkpoints.at(-1);
  return {
    holder:
      holder === undefined
        ? null
        : {
            session: holder.sessionId,
            command: holder.command,
            host: holder.host,
            pid: holder.pid,
            since: holder.since.toISOString(),
          },
    last: last === undefined ? null : { checkpoint: checkpointName(last), ref: last.ref, at: last.at.toISOString() },
    changes: changes.map(changeEntry),
    ...(undoable?.plan.entry === undefined || isIdle(undoable.plan)
      ? {}
      : {
          undoable: {
            turn: undoable.plan.entry,
            paths: [...undoable.plan.writes, ...undoable.plan.deletes],
            conflicts: undoable.plan.conflicts.map(({ path }) => path),
          },
        }),
    ...(unsettled === undefined ? {} : { plan: unsettled }),
    unsettledTurns: unsettledTurns(history).map(({ number }) => turnName(number)),
    waitingTurns: unsettledTurns(history)
      .filter(({ turnId }) => waiting.has(turnId))
      .map(({ number }) => turnName(number)),
    damaged: history.damaged,
  };
}

export const changeEntry = ({ path, kind, captured, by }: Change): object => ({
  ...{ path, kind, by: author(by) },
  // Said only where undo cannot bring it back.
  ...(captured ? {} : { captured }),
});

function author(by: ChangedBy): object {
  if (by.kind === "foreign") return { kind: by.kind };
  return {
    kind: by.kind,
    strength: by.strength,
    session: by.sessionId,
    ...(by.turn === undefined ? {} : { turn: turnName(by.turn) }),
    ...(by.stepId === undefined ? {} : { step: by.stepId }),
    ...(by.callId === undefined ? {} : { call: by.callId }),
    ...(by.tool === undefined ? {} : { tool: by.tool }),
    ...(by.command === undefined ? {} : { command: by.command }),
    ...(by.overlaps === undefined
      ? {}
      : { overlaps: by.overlaps.map(({ sessionId, turn }) => ({ session: sessionId, turn: turnName(turn) })) }),
  };
}

export const diffDocument = (from: string, to: string, diffs: readonly FileDiff[]): object => ({
  from,
  to,
  changes: diffs.map(({ path, kind, entry, added, removed, binary }) => ({
    path,
    kind,
    entry,
    added,
    removed,
    binary,
  })),
});

/** Of a plan that was not, or not yet, done. */
export const planDocument = (
  plan: RestorePlan,
  result: "done" | "conflict" | "nothing" | "refused",
  dryRun: boolean,
): object => ({
  action: plan.action,
  entry: plan.entry ?? null,
  dryRun,
  result,
  written: result === "done" ? plan.writes : [],
  deleted: result === "done" ? plan.deletes : [],
  ...common(plan),
  safety: null,
  reverse: null,
});

export const receiptDocument = (receipt: RestoreReceipt): object => ({
  action: receipt.action,
  entry: receipt.entry ?? null,
  dryRun: false,
  result: receipt.result,
  written: receipt.written,
  deleted: receipt.deleted,
  ...common(receipt),
  safety: receipt.safety,
  ...(receipt.checkpoint === undefined ? {} : { checkpoint: checkpointName(receipt.checkpoint) }),
  reverse: receipt.reverse,
});

const common = (
  plan: Pick<RestoreReceipt, "kept" | "conflicts" | "omitted" | "passedOver" | "foreign" | "unproven" | "headMoved">,
): object => ({
  kept: plan.kept,
  conflicts: plan.conflicts.map(({ path, by, storedAs }) => ({
    ...{ path, by: author(by) },
    ...(storedAs === undefined ? {} : { storedAs }),
  })),
  omitted: plan.omitted,
  passedOver: plan.passedOver,
  foreign: plan.foreign,
  unproven: plan.unproven,
  ...(plan.headMoved === undefined ? {} : { headMoved: plan.headMoved }),
});

export const execDocument = (session: SessionId, result: ExecResult): object => ({
  session,
  turn: turnName(result.turn),
  exitCode: result.exitCode,
  ...(result.signal === undefined ? {} : { signal: result.signal }),
  changes: result.changes.map(changeEntry),
  checkpoints: result.checkpoints.map(checkpointName),
  protected: result.protected,
  undone: result.undone,
  ...(result.undoFailure === undefined
    ? {}
    : { undoFailure: { code: result.undoFailure.code, message: result.undoFailure.message } }),
});

export const sessionsDocument = (
  sessions: readonly SessionSummary[],
  sizes?: ReadonlyMap<string, { readonly bytes: number; readonly ownBytes: number }>,
): object => ({
  sessions: sessions.map((session) => ({
    ...sessionEntry(session),
    ...(sizes === undefined
      ? {}
      : { bytes: sizes.get(session.id)?.bytes ?? 0, ownBytes: sizes.get(session.id)?.ownBytes ?? 0 }),
  })),
});

export const sessionEntry = (session: SessionSummary): object => ({
  id: session.id,
  root: session.root ?? null,
  startedAt: session.startedAt.toISOString(),
  lastAt: session.lastAt.toISOString(),
  turns: session.turns,
  checkpoints: session.checkpoints,
  state: session.state,
  command: session.command,
});
