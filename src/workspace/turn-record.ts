/** From what the journals say of a turn to the changes that are its own: recorded writes, and what differs in its windows. */
import { isLooprigError, parseWorkspacePath } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import type { Tree, TreeChange, TreeEntry, WorkspaceStore } from "../workspace-store/index.js";
import type { TurnSummary } from "./contracts.js";
import { parseEntryId } from "./entry-id.js";
import type { UndoEntryName } from "../session-store/index.js";
import type { FoldedHistory, RecordedWrite, Window } from "./history.js";
import { composeChanges, withoutUndone } from "./own-changes.js";
import type { OwnChange } from "./own-changes.js";

/** The changes a file tool recorded. */
export const changesOf = ({ changes, order, finished }: RecordedWrite): readonly OwnChange[] =>
  changes.map(({ path, before, after }) => ({
    ...{ path: parseWorkspacePath(path), before: parseEntryId(before), after: parseEntryId(after) },
    ...{ openOrder: order, closeOrder: order, kind: "paths", strength: "recorded", uncertain: false, finished },
  }));

type Span = Pick<Window, "openOrder" | "closeOrder" | "strength" | "uncertain">;
type WindowSpan = Span & Pick<Window, "from" | "to">;

/** The tree as it is now; `tree` may be a walk, `lookup` looks at one path. */
export interface Present {
  tree(): Promise<Tree>;
  lookup(path: WorkspacePath): Promise<TreeEntry | undefined>;
}

/** By which a tree says that it cannot be read any more. */
export const unreadable = [
  "snapshot.unknown",
  "snapshot.dropped",
  "snapshot.object_missing",
  "snapshot.object_damaged",
] as const;

/**
 * What differs between the two trees of a window. A tree that is damaged or was dropped explains nothing more: what it alone explained counts as
 * nobody's, and is kept.
 */
export async function changesIn(
  store: WorkspaceStore,
  history: Pick<FoldedHistory, "staged">,
  window: WindowSpan,
  options: Abortable = {},
): Promise<readonly OwnChange[]> {
  const changes: OwnChange[] = [];
  try {
    const [from, to] = [await store.open(window.from, options), await store.open(window.to, options)];
    for await (const change of unstaged(history, store.diff(from, to, options))) changes.push(inWindow(change, window));
  } catch (error) {
    if (!isLooprigError(error, ...unreadable)) throw error;
  }
  return changes;
}

/** What differs, but for names that a write needed for its moment. */
export async function* unstaged(
  { staged }: Pick<FoldedHistory, "staged">,
  changes: AsyncIterable<TreeChange>,
): AsyncIterable<TreeChange> {
  for await (const change of changes) if (!staged.has(change.path)) yield change;
}

type Difference = Pick<OwnChange, "path" | "before" | "after">;

export const inWindow = ({ path, before, after }: Difference, window: Span): OwnChange => {
  const { openOrder, closeOrder, strength, uncertain } = window;
  return { path, before, after, openOrder, closeOrder, kind: "window", strength, uncertain, finished: true };
};

/**
 * What the turn changed, all in all. Damage in the store is an error here: what cannot be told is not taken back. A turn
 * whose session was killed is foreseen as whoever settles it will find it: its open windows end at `present`.
 */
export async function netChanges(
  store: WorkspaceStore,
  history: FoldedHistory,
  turn: TurnSummary,
  present: Present,
  options: Abortable = {},
): Promise<readonly OwnChange[]> {
  const unsettled = turn.state === "unsettled";
  const own = history.writes.filter((write) => write.turn === turn.number);
  const unsure = own.some(({ finished }) => !finished);
  // Of a turn that was undone the tree as it is now tells nothing; what was taken back had happened.
  const taken = turn.undone === undefined ? undefined : takenBack(history, `t${turn.number}`);
  // A walk: only when its answer matters.
  const now = unsettled ? await present.tree() : undefined;
  const changes = own.flatMap(changesOf);
  const spans: readonly WindowSpan[] = [
    ...history.windows.filter((window) => window.turn === turn.number),
    ...(now === undefined ? [] : foreseen(history, turn, now)),
  ];
  for (const span of spans) {
    const from = await store.open(span.from, options);
    const to = span.to === now?.ref ? now : await store.open(span.to, options);
    for await (const change of unstaged(history, store.diff(from, to, options))) changes.push(inWindow(change, span));
  }
  if (taken !== undefined) return composeChanges(changes.filter(({ path, finished }) => finished || taken.has(path)));
  if (now === undefined && !unsure) return composeChanges(changes);
  return composeChanges(await withoutUndone(changes, (path) => (now ?? present).lookup(path)));
}

function foreseen(history: FoldedHistory, turn: TurnSummary, present: Tree): readonly WindowSpan[] {
  const rest = { to: present.ref, closeOrder: Infinity, strength: "window", uncertain: true } as const;
  if (turn.kind === "command") {
    // The whole turn of `exec` is one window.
    return turn.from === undefined ? [] : [{ ...rest, from: turn.from, openOrder: turn.order }];
  }
  return history.openWindows
    .filter((window) => window.turn === turn.number)
    .flatMap(({ opened: { from, order } }) => (from === undefined ? [] : [{ ...rest, from, openOrder: order }]));
}

/** What undoing the entry took back, in one go or in parts: this, and no more, is what redo puts back. */
export function takenBack(history: FoldedHistory, entry: UndoEntryName): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const restored of history.restorations) {
    if (restored.entry !== entry) continue;
    if (restored.action === "redo") paths.clear();
    else if (restored.action === "undo") for (const path of [...restored.written, ...restored.deleted]) paths.add(path);
  }
  return paths;
}
