/**
 * What a turn changed, put together path by path from its records and windows (U1, E3). Pure: changes in, net changes out.
 *
 * Rules, for the changes of one path in the order they came:
 * 1. One that begins where the one before it ended goes on with it: together they lead from the first's beginning to the
 *    last's end.
 * 2. One that begins elsewhere starts anew: somebody else wrote in between, and that is where taking back has to stop.
 * 3. A window only says that something of ours may have written. Where a record says the same of a path, the record holds.
 */
import { compareNames } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import { isSameEntry } from "../workspace-store/index.js";
import type { TreeEntry } from "../workspace-store/index.js";

export interface OwnChange {
  readonly path: WorkspacePath;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
  /** Places on the root's clock: when it could begin, and when it was over. Equal for a recorded write. */
  readonly openOrder: number;
  readonly closeOrder: number;
  /** A write that a tool recorded, or what differs in a window. */
  readonly kind: "paths" | "window";
  /** "window": changed while a process of ours ran, so somebody else may have written it. */
  readonly strength: "recorded" | "window";
  /** Somebody else may well have written it: undo and restore ask for consent (U1). */
  readonly uncertain: boolean;
  /** False for a recorded write whose call never told its end: the disk decides whether it happened. */
  readonly finished: boolean;
}

/** In byte order of paths, each path once; what was put back to where it began is left out. */
export function composeChanges(changes: readonly OwnChange[]): readonly OwnChange[] {
  const net = new Map<WorkspacePath, OwnChange>();
  const recorded = new Map<WorkspacePath, OwnChange[]>();
  for (const change of changes) {
    if (change.kind === "paths") recorded.set(change.path, [...(recorded.get(change.path) ?? []), change]);
  }
  for (const change of inOrder(changes)) {
    if (recorded.get(change.path)?.some((record) => restates(change, record)) === true) continue;
    const before = net.get(change.path);
    net.set(change.path, before === undefined ? change : join(before, change));
  }
  return [...net.values()]
    .filter(({ before, after }) => !isSameEntry(before, after))
    .sort((a, b) => compareNames(a.path, b.path));
}

function join(first: OwnChange, next: OwnChange): OwnChange {
  if (!isSameEntry(first.after, next.before)) return next;
  return {
    ...next,
    before: first.before,
    openOrder: first.openOrder,
    kind: first.kind === "window" ? "window" : next.kind,
    strength: first.strength === "window" ? "window" : next.strength,
    uncertain: first.uncertain || next.uncertain,
  };
}

const inOrder = (changes: readonly OwnChange[]): readonly OwnChange[] =>
  [...changes].sort((a, b) => a.closeOrder - b.closeOrder);

/**
 * Rule 3: the window says what the record says. A write is recorded before it is visible, perhaps before the window opened
 * in which it became visible: then both begin and end in the same.
 */
export const restates = (window: OwnChange, record: OwnChange): boolean =>
  window.kind === "window" &&
  record.kind === "paths" &&
  record.closeOrder <= window.closeOrder &&
  isSameEntry(window.after, record.after) &&
  (window.openOrder <= record.closeOrder || isSameEntry(window.before, record.before));

/**
 * Leaves out recorded writes that the disk does not show, of calls that never told that they did them (E3): what is there
 * now is as it was before, or somebody else's.
 */
export async function withoutUndone(
  changes: readonly OwnChange[],
  present: (path: WorkspacePath) => Promise<TreeEntry | undefined>,
): Promise<readonly OwnChange[]> {
  const last = new Map(inOrder(changes).map((change) => [change.path, change]));
  const undone = new Set<OwnChange>();
  for (const [path, change] of last) {
    if (!change.finished && !isSameEntry(await present(path), change.after)) undone.add(change);
  }
  return undone.size === 0 ? changes : changes.filter((change) => !undone.has(change));
}
