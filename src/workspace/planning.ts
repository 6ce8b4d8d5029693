/**
 * From what the user asked ("undo", "restore c3") to a plan: which entry, which trees, whose changes. The decision for each
 * path is the planner's (`restore/planner`); this file chooses its inputs and says the result in the public form.
 */
import { LooprigError, RestoreError, compareNames, parseWorkspacePath } from "../core/index.js";
import type { Abortable, SessionId, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { UndoEntryName } from "../session-store/index.js";
import type { PresentPaths, Tree, TreeChange, TreeEntry } from "../workspace-store/index.js";
import { Attribution } from "./attribution.js";
import { invalid } from "./capture-rules.js";
import type {
  Checkpoint,
  RedoOptions,
  RestoreAction,
  RestorePlan,
  TurnSummary,
  UndoEntry,
  UndoOptions,
} from "./contracts.js";
import { readGitHead } from "./git-head.js";
import type { FoldedHistory } from "./history.js";
import type { OwnChange } from "./own-changes.js";
import { pathsOfTree } from "./present-root.js";
import type { PresentRoot, Seen } from "./present-root.js";
import { resolveRef, resolveTurn } from "./references.js";
import { entryDropped } from "./retention/dropped-trees.js";
import type { TreePlan } from "./restore/plan.js";
import { uncapturedIn } from "./uncaptured.js";
import { planRestore, planReversal } from "./restore/planner.js";
import type { RootReader } from "./root-reader.js";
import { netChanges, takenBack, unstaged } from "./turn-record.js";

/** What a plan is made from: the history, the root as it is now, and the session that asks, if one does. */
export interface PlanBasis {
  readonly history: FoldedHistory;
  readonly present: PresentRoot;
  readonly asker: SessionId | undefined;
}

/** What `apply` needs of a plan besides what people see of it. */
export interface PlanDetails {
  readonly action: RestoreAction;
  readonly tree: TreePlan;
  readonly entry: UndoEntry | undefined;
  /** What a restore goes towards. */
  readonly target: SnapshotRef | undefined;
  readonly seen: Seen;
  /** The newest checkpoint of the root when the plan was made. */
  readonly newest: Checkpoint | undefined;
}

const details = new WeakMap<RestorePlan, PlanDetails>();

/** Throws `option.invalid` for a plan that was not made here, such as one that went through JSON. */
export function detailsOf(plan: RestorePlan): PlanDetails {
  const found = details.get(plan);
  if (found === undefined) throw invalid("plan", "a copy", "a plan as `plan()` of this process returned it");
  return found;
}

export async function makePlan(
  reader: RootReader,
  action: RestoreAction,
  basis: PlanBasis,
  options: Abortable = {},
): Promise<RestorePlan> {
  switch (action.kind) {
    case "undo":
      return planUndo(reader, action, basis, options);
    case "redo":
      return planRedo(reader, action, basis, options);
    case "restore":
      return planTowards(reader, action, basis, options);
    default:
      throw invalid("action.kind", (action satisfies never as RestoreAction).kind, '"undo", "redo" or "restore"');
  }
}

async function planUndo(
  reader: RootReader,
  action: Extract<RestoreAction, { kind: "undo" }>,
  basis: PlanBasis,
  options: Abortable,
): Promise<RestorePlan> {
  const { history } = basis;
  if (action.turn !== undefined) return undoNamed(reader, action, action.turn, basis, options);
  const passedOver: UndoEntryName[] = [];
  for (const name of candidates(history, action.session)) {
    const turn = turnNamed(history, name);
    if (turn !== undefined && !turn.protected) throw await unprotected(reader, turn, history, options);
    const entry = await entryNamed(name, basis);
    if (entry === undefined || entry.state === "undone") continue;
    if (mayHaveChanged(entry, turn, history)) {
      const plan = await planEntry(reader, action, entry, basis, options);
      const { tree } = detailsOf(plan);
      // What is left of a partly undone entry is what stood in the way then; it has nothing more to take back.
      const stuck = entry.state === "partly" && tree.operations.length === 0;
      if (!stuck && (tree.operations.length > 0 || tree.conflicts.length > 0 || tree.kept.length > 0))
        return publish({ ...plan, passedOver }, detailsOf(plan));
    }
    passedOver.push(name);
  }
  return nothing(action, basis, passedOver);
}

/** Whether a look at its trees is worth it: most turns that changed nothing are known by their record. */
function mayHaveChanged(entry: UndoEntry, turn: TurnSummary | undefined, history: FoldedHistory): boolean {
  if (turn === undefined || turn.state === "unsettled") return entry.from !== entry.to;
  return [...history.windows, ...history.writes].some((each) => each.turn === turn.number);
}

/** Turns and restores, newest first, of one session or of all. A turn still running is no candidate. */
function candidates(history: FoldedHistory, session: SessionId | undefined): readonly UndoEntryName[] {
  const restores = history.entries.filter((entry) => entry.kind === "restore");
  return [
    ...history.turns
      .filter((turn) => turn.endedAt !== undefined || turn.state === "unsettled")
      .map(({ number, order, sessionId }) => ({ name: `t${number}` as const, order, sessionId })),
    ...restores,
  ]
    .filter(({ sessionId }) => session === undefined || sessionId === session)
    .sort((a, b) => b.order - a.order)
    .map(({ name }) => name);
}

async function undoNamed(
  reader: RootReader,
  action: Extract<RestoreAction, { kind: "undo" }>,
  given: string,
  basis: PlanBasis,
  options: Abortable,
): Promise<RestorePlan> {
  const turn = resolveTurn(basis.history, given);
  if (!turn.protected) throw await unprotected(reader, turn, basis.history, options);
  const entry = await entryNamed(given, basis);
  if (entry === undefined) {
    throw new LooprigError(
      "ref.unknown",
      `Cannot undo ${given}: it has not ended yet; wait for it, or open the root for writing once to settle it`,
      {
        given,
      },
    );
  }
  if (entry.state === "undone") return nothing(action, basis);
  return planEntry(reader, action, entry, basis, options);
}

async function planRedo(
  reader: RootReader,
  action: Extract<RestoreAction, { kind: "redo" }>,
  basis: PlanBasis,
  options: Abortable,
): Promise<RestorePlan> {
  const entry = basis.history.redoable
    .map((name) => basis.history.entries.find((each) => each.name === name))
    .findLast((each) => each !== undefined && (action.session === undefined || each.sessionId === action.session));
  return entry === undefined ? nothing(action, basis) : planEntry(reader, action, entry, basis, options);
}

/**
 * The entry of that name. A turn whose session was killed is settled by whoever next takes the root for writing; until then
 * it is foreseen as that will make it: from its baseline to the tree that is there now.
 */
async function entryNamed(name: string, { history, present }: PlanBasis): Promise<UndoEntry | undefined> {
  const entry = history.entries.find((each) => each.name === name);
  const turn = entry === undefined ? turnNamed(history, name) : undefined;
  if (turn?.state !== "unsettled" || turn.from === undefined) return entry;
  const { number, sessionId, order, startedAt, input, from } = turn;
  return {
    ...{ name: `t${number}`, kind: "turn", sessionId, order, at: startedAt, title: input },
    ...{ state: "applied", from, to: (await present.tree()).ref },
  };
}

/** Reversal of one entry, in the direction of the action. */
async function planEntry(
  reader: RootReader,
  action: Extract<RestoreAction, { kind: "undo" | "redo" }>,
  entry: UndoEntry,
  basis: PlanBasis,
  options: Abortable,
): Promise<RestorePlan> {
  const { history, present, asker } = basis;
  if (entry.dropped !== undefined) throw entryDropped(action.kind, entry.name, entry.dropped);
  const turn = turnNamed(history, entry.name);
  const own = turn === undefined ? undefined : await netChanges(reader.store, history, turn, present, options);
  // An unsettled turn ends in the tree that is there now, which no store need hold.
  const opened = (ref: SnapshotRef): Promise<Tree> =>
    turn?.state === "unsettled" && ref === entry.to ? present.tree() : reader.store.open(ref, options);
  const [from, to] = [await opened(entry.from), await opened(entry.to)];
  const ownAt = new Map(own?.map((change) => [change.path, change]));
  // Conflicts name whoever came later, and whoever wrote at the same time.
  const since = Math.min(entry.order, ...(own ?? []).map(({ openOrder }) => openOrder)) - 1;
  const attribution = await Attribution.load(reader.store, history, since, options);
  const taken = action.kind === "redo" ? takenBack(history, entry.name) : undefined;
  const planned = (seen: PresentPaths): Promise<TreePlan> =>
    planReversal({
      changes: only(taken, own ?? unstaged(history, reader.store.diff(from, to, options))),
      present: seen,
      direction: action.kind,
      onConflict: "skip",
      paths: pathsOf(action),
      wanted: action.kind === "undo" ? from : to,
      overlaps: (path) => {
        const change = ownAt.get(path);
        return change === undefined ? undefined : attribution.overlapping(change, entry.sessionId);
      },
      whoChanged: (path, now) => attribution.by(path, now, asker),
    });
  // What is on record is looked at path by path (U4); what only a window tells of, and who else wrote in it, needs a walk.
  const isRecorded = turn?.state !== "unsettled" && own?.every(({ kind }) => kind === "paths") !== false;
  const tree = isRecorded ? await present.look(planned) : await planned(pathsOfTree(await present.tree()));
  return publish(
    {
      ...base(action, tree),
      omitted: besides(tree.omitted, await unseenByTurn(turn, to, history, action)),
      ...{ entry: entry.name, title: entry.title, entryAt: entry.at, entrySession: entry.sessionId },
      unproven: touched(tree).filter((path) => ownAt.get(path)?.strength === "window"),
      window: touched(tree).filter((path) => needsConsent(ownAt.get(path), reader)),
      ...headMoved(reader, action.kind === "undo" ? turn?.head : turn?.endHead),
    },
    { action, tree, entry, target: undefined, ...seenBy(basis) },
  );
}

/** U1. A directory that has to be made for others, and what a restore did in a shared root, is known by no record. */
const needsConsent = (change: OwnChange | undefined, { placement }: RootReader): boolean =>
  change === undefined
    ? placement === "shared"
    : change.uncertain || (change.strength === "window" && placement === "shared");

async function* only(
  paths: ReadonlySet<string> | undefined,
  changes: AsyncIterable<TreeChange> | Iterable<TreeChange>,
): AsyncIterable<TreeChange> {
  for await (const change of changes) if (paths?.has(change.path) !== false) yield change;
}

async function planTowards(
  reader: RootReader,
  action: Extract<RestoreAction, { kind: "restore" }>,
  basis: PlanBasis,
  options: Abortable,
): Promise<RestorePlan> {
  const { history } = basis;
  const resolved = resolveRef(history, action.ref);
  if (resolved.ref === "now") return nothing(action, basis);
  const present = await basis.present.tree();
  const target = await reader.store.open(resolved.ref, options);
  const attribution = await Attribution.load(reader.store, history, resolved.checkpoint?.order ?? 0, options);
  const explains = (path: WorkspacePath, now: TreeEntry): boolean => attribution.explains(path, now);
  const tree = await planRestore({
    changes: unstaged(history, reader.store.diff(present, target, options)),
    present: pathsOfTree(present),
    wanted: target,
    paths: pathsOf(action),
    explains,
    // A root of the session's own has nobody else's content to keep (U7).
    exact: action.exact ?? reader.placement === "session",
    keptReason: (path) => attribution.keptReason(path),
  });
  const foreign = tree.operations.filter(({ path, expected }) => expected !== undefined && !explains(path, expected));
  const explained = tree.operations.flatMap(({ path, expected }) => {
    const by = expected === undefined ? undefined : attribution.explanationOf(path, expected);
    return by === undefined ? [] : [by];
  });
  return publish(
    {
      ...base(action, tree),
      omitted: besides(tree.omitted, await uncapturedIn(target, history, pathsOf(action))),
      entry: resolved.checkpoint === undefined ? action.ref : `c${resolved.checkpoint.number}`,
      ...(resolved.checkpoint?.label === undefined ? {} : { title: resolved.checkpoint.label }),
      ...(resolved.checkpoint === undefined
        ? {}
        : { entryAt: resolved.checkpoint.at, entrySession: resolved.checkpoint.sessionId }),
      foreign: foreign.map(({ path }) => path),
      unproven: explained.filter(({ strength }) => strength === "window").map(({ path }) => path),
      window: explained.filter((by) => needsConsent(by, reader)).map(({ path }) => path),
      ...headMoved(reader, resolved.turn?.endHead),
    },
    { action, tree, entry: undefined, target: resolved.ref, ...seenBy(basis) },
  );
}

/**
 * `undo.unprotected` with what differs since the turn's start, or, where that was not captured, since the last tree that was
 * captured before it: not all of that need be the turn's, and nothing here is undone on that account.
 */
async function unprotected(
  reader: RootReader,
  turn: TurnSummary,
  { checkpoints, writes }: FoldedHistory,
  options: Abortable,
): Promise<RestoreError> {
  const name = `t${turn.number}`;
  const before = checkpoints.findLast(
    ({ order, at, turn: of }) => order < turn.order && of !== turn.number && at <= turn.startedAt,
  );
  const nearest = before === undefined ? undefined : { name: `c${before.number}`, ref: before.ref };
  const since = turn.from === undefined ? nearest : { name: `${name}^`, ref: turn.from };
  const recorded = writes.filter((write) => write.turn === turn.number).flatMap(({ changes }) => changes);
  const paths = new Set(recorded.map(({ path }) => parseWorkspacePath(path)));
  if (since !== undefined) {
    const [from, to] = [await reader.store.open(since.ref, options), await reader.tree(turn.to ?? "now", options)];
    for await (const { path } of reader.store.diff(from, to, options)) paths.add(path);
  }
  const onward =
    since === undefined
      ? "nothing was captured before it either"
      : `\`looprig restore ${since.name} --exact -- PATH\` brings back single files`;
  return new RestoreError(
    "undo.unprotected",
    `Cannot undo ${name}: it could not be captured completely, so what it changed cannot be told from what it found; ${onward}`,
    { turn: name, paths: [...paths].sort(compareNames), ...(since === undefined ? {} : { since: since.name }) },
  );
}

/** A tool's own writes are on record, whatever the size of the file; a window is only the two trees around it. */
const unseenByTurn = async (
  turn: TurnSummary | undefined,
  to: Tree,
  history: FoldedHistory,
  action: RestoreAction,
): Promise<readonly WorkspacePath[]> =>
  history.windows.some((window) => window.turn === turn?.number) ? uncapturedIn(to, history, pathsOf(action)) : [];

const besides = (known: readonly WorkspacePath[], more: readonly WorkspacePath[]): readonly WorkspacePath[] =>
  more.length === 0 ? known : [...new Set([...known, ...more])].sort(compareNames);

type Visible = RestorePlan;

function base(action: RestoreAction, tree: TreePlan): Visible {
  return {
    action: action.kind,
    passedOver: [],
    writes: tree.writes,
    deletes: tree.deletes,
    kept: tree.kept,
    conflicts: tree.conflicts,
    omitted: tree.omitted,
    foreign: [],
    unproven: [],
    window: [],
  };
}

const emptyTree: TreePlan = { operations: [], kept: [], conflicts: [], omitted: [], writes: [], deletes: [] };

const nothing = (action: RestoreAction, basis: PlanBasis, passedOver: readonly UndoEntryName[] = []): RestorePlan =>
  publish(
    { ...base(action, emptyTree), passedOver },
    { action, tree: emptyTree, entry: undefined, target: undefined, ...seenBy(basis) },
  );

const seenBy = ({ present, history }: PlanBasis): Pick<PlanDetails, "seen" | "newest"> => ({
  seen: present.seen,
  newest: history.checkpoints.at(-1),
});

function publish(plan: Visible, more: PlanDetails): RestorePlan {
  const frozen = Object.freeze({ ...plan });
  details.set(frozen, more);
  return frozen;
}

const touched = (tree: TreePlan): readonly WorkspacePath[] => tree.operations.map(({ path }) => path);

const pathsOf = (action: UndoOptions | RedoOptions): readonly WorkspacePath[] | undefined =>
  "paths" in action ? action.paths?.map((path) => parseWorkspacePath(path)) : undefined;

const turnNamed = (history: FoldedHistory, name: string): TurnSummary | undefined =>
  history.turns.find((turn) => `t${turn.number}` === name);

/**
 * Commits are git's: where the files go back to, HEAD was elsewhere than it is now, only they go, and people are told. A
 * commit that the turn itself made counts too.
 */
function headMoved(reader: RootReader, then: string | undefined): { readonly headMoved?: readonly [string, string] } {
  const now = readGitHead(reader.fileSystem, reader.root);
  return then === undefined || now === undefined || then === now ? {} : { headMoved: [then, now] };
}
