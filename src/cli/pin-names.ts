/**
 * What people call the trees that are pinned: a pin belongs to a session, a session to a root, and the pin's id is the
 * checkpoint's number, or that of a restore or a call that keeps bytes of its own.
 */
import type { SnapshotRef } from "../core/index.js";
import type { SessionSummary } from "../session-store/index.js";

export interface PinnedTree {
  readonly ref: SnapshotRef;
  /** Undefined for pins of sessions that are not there any more, and of no session. */
  readonly root: string | undefined;
  readonly owner: string;
  /** `c12`; undefined for what a restore or a tool keeps for its undo. */
  readonly checkpoint: string | undefined;
}

export function pinnedTrees(
  pins: readonly { readonly owner: string; readonly id: string; readonly refs: readonly SnapshotRef[] }[],
  sessions: readonly Pick<SessionSummary, "id" | "root">[],
): readonly PinnedTree[] {
  const rootOf = new Map<string, string | undefined>(sessions.map(({ id, root }) => [id, root]));
  return pins.flatMap(({ owner, id, refs }) =>
    refs.map((ref) => ({
      ...{ ref, owner, root: rootOf.get(owner) },
      checkpoint: /^c[1-9]\d*$/.test(id) ? id : undefined,
    })),
  );
}

/** Of the checkpoints among them, each once, in order. */
export const numbersOf = (trees: readonly Pick<PinnedTree, "checkpoint">[]): readonly number[] =>
  [...new Set(trees.flatMap(({ checkpoint }) => (checkpoint === undefined ? [] : [Number(checkpoint.slice(1))])))].sort(
    (a, b) => a - b,
  );

/** `c2, c4-c7`. A checkpoint that a restore went through is pinned by that too, which says nothing more. */
export function treeNames(trees: readonly Pick<PinnedTree, "checkpoint">[]): string {
  const numbers = numbersOf(trees);
  return numbers.length === 0 ? "kept for an undo" : rangeNames(numbers);
}

/** Numbers in order as `c2, c4-c7`. */
export function rangeNames(numbers: readonly number[]): string {
  const names: string[] = [];
  let first: number | undefined;
  for (const [i, last] of numbers.entries()) {
    first ??= last;
    if (numbers[i + 1] === last + 1) continue;
    names.push(first === last ? `c${last}` : last === first + 1 ? `c${first}, c${last}` : `c${first}-c${last}`);
    first = undefined;
  }
  return names.join(", ");
}
