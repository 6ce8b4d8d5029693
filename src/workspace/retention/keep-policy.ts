/**
 * Which checkpoints a policy lets go. Pure: the history of one root, the policy, and what others hold in; the decision out.
 *
 * Rules:
 * 1. The policy counts per session: the newest `last` of each, whatever is younger than `withinMs`, and, unless told
 *    otherwise, everything with a label. A checkpoint that any of them names stays. No policy drops nothing.
 * 2. Whatever the policy says, these stay: the newest tree of the root, the trees in `held`, every turn that is not settled,
 *    the entry that undo would take next, and every entry that redo could put back.
 * 3. A turn or restore whose end the policy keeps stays undoable: all its trees stay with it. One whose end it drops cannot be
 *    undone any more as soon as one of its trees is gone.
 * 4. It is decided by tree, not by number: of checkpoints with the same tree either all stay or all go.
 */
import type { CallId, SessionId, SnapshotRef } from "../../core/index.js";
import type { UndoEntryName } from "../../session-store/index.js";
import type { Checkpoint, TurnSummary, UndoEntry } from "../contracts.js";
import type { FoldedHistory } from "../history.js";

/** What is kept of the checkpoints of a root. With neither `last` nor `withinMs` all are. */
export interface KeepPolicy {
  /** The newest of each session. */
  readonly last?: number | undefined;
  /** Those younger than this. */
  readonly withinMs?: number | undefined;
  /** Also drops checkpoints with a label. Default false. */
  readonly dropLabelled?: boolean | undefined;
}

export type DropBasis = Pick<
  FoldedHistory,
  "checkpoints" | "turns" | "entries" | "redoable" | "windows" | "openWindows" | "writes"
>;

export interface DropDecision {
  /** In the order of the root's clock. */
  readonly checkpoints: readonly Checkpoint[];
  /** What can be undone and redone no more once they are gone. */
  readonly entries: readonly UndoEntryName[];
  /** Calls of those turns that kept bytes of their own, under a pin of that name. */
  readonly calls: readonly { readonly sessionId: SessionId; readonly callId: CallId }[];
}

/** `held`: trees that sessions go on from (U8), or that a plan or an exchange of directories needs. */
export function decideDrop(
  basis: DropBasis,
  policy: KeepPolicy,
  { held, now }: { readonly held: Iterable<SnapshotRef>; readonly now: Date },
): DropDecision {
  const present = basis.checkpoints.filter(({ dropped }) => dropped === undefined);
  const named = namedBy(policy, present, now);
  const stays = new Set<SnapshotRef>([...named, ...held]);
  const newest = present.at(-1);
  if (newest !== undefined) stays.add(newest.ref);
  const kept = keptEntries(basis, named);
  for (const entry of basis.entries) if (kept.has(entry.name)) addAll(stays, treesOf(entry, basis));
  for (const turn of basis.turns) if (turn.endedAt === undefined) addAll(stays, treesOfTurn(turn, basis));

  const checkpoints = present.filter(({ ref }) => !stays.has(ref));
  const gone = new Set(checkpoints.map(({ ref }) => ref));
  const entries = basis.entries
    .filter((entry) => entry.dropped === undefined && treesOf(entry, basis).some((ref) => gone.has(ref)))
    .map(({ name }) => name);
  const calls = basis.writes
    .filter(({ turn, kept: bytes }) => bytes !== undefined && entries.includes(`t${turn}`))
    .map(({ sessionId, callId }) => ({ sessionId, callId }));
  return { checkpoints, entries, calls };
}

/** The trees of an entry: where it begins and ends, and for a turn its windows, of which its changes are made up. */
export const treesOf = (
  entry: UndoEntry,
  basis: Pick<DropBasis, "turns" | "windows" | "openWindows">,
): SnapshotRef[] => {
  const turn = basis.turns.find(({ number }) => entry.name === `t${number}`);
  return [entry.from, entry.to, ...(turn === undefined ? [] : treesOfTurn(turn, basis))];
};

export function treesOfTurn(
  { number, from, to }: TurnSummary,
  { windows, openWindows }: Pick<DropBasis, "windows" | "openWindows">,
): SnapshotRef[] {
  return [
    from,
    to,
    ...windows.filter(({ turn }) => turn === number).flatMap((window) => [window.from, window.to]),
    ...openWindows.filter(({ turn }) => turn === number).map(({ opened }) => opened.from),
  ].filter((ref) => ref !== undefined);
}

function namedBy(
  { last, withinMs, dropLabelled = false }: KeepPolicy,
  present: readonly Checkpoint[],
  now: Date,
): ReadonlySet<SnapshotRef> {
  if (last === undefined && withinMs === undefined) return new Set(present.map(({ ref }) => ref));
  const left = new Map<SessionId, number>();
  const named = new Set<SnapshotRef>();
  for (const { sessionId, at, label, ref } of [...present].reverse()) {
    const rest = left.get(sessionId) ?? last ?? 0;
    left.set(sessionId, rest - 1);
    const young = withinMs !== undefined && now.getTime() - at.getTime() <= withinMs;
    if (rest > 0 || young || (label !== undefined && !dropLabelled)) named.add(ref);
  }
  return named;
}

/**
 * Rules 2 and 3. Only trees that the policy itself names count: the start of each turn is the end of the one before, so
 * trees that are kept for an entry would keep all entries before it.
 */
function keptEntries(basis: DropBasis, named: ReadonlySet<SnapshotRef>): ReadonlySet<UndoEntryName> {
  const next = basis.entries.findLast(({ state }) => state !== "undone");
  return new Set([
    ...basis.redoable,
    ...(next === undefined ? [] : [next.name]),
    ...basis.entries.filter(({ to }) => named.has(to)).map(({ name }) => name),
  ]);
}

function addAll(into: Set<SnapshotRef>, refs: readonly SnapshotRef[]): void {
  for (const ref of refs) into.add(ref);
}
