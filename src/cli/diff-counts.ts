/** Line counts of the paths of a plan or a turn, read from the view's differences. */
import type { WorkspacePath } from "../core/index.js";
import type { FileDiff, RefLike, RestorePlan, RootHistory, WorkspaceView } from "../workspace/index.js";

export interface Span {
  readonly from: RefLike;
  readonly to: RefLike;
}

/** The two trees between which a plan moves its paths: what stands there now, as far as it is not in conflict, and what will. */
export function spanOf(
  plan: RestorePlan,
  { entries, turns }: Pick<RootHistory, "entries" | "turns">,
  ref: RefLike | undefined,
): Span | undefined {
  if (plan.action === "restore") return ref === undefined ? undefined : { from: "now", to: ref };
  const entry = entries.find((each) => each.name === plan.entry);
  if (entry === undefined) {
    // A turn that is not settled yet is no entry; it will be one that ends in what is there now.
    const turn = turns.find(({ number, state }) => state === "unsettled" && `t${number}` === plan.entry);
    return turn?.from === undefined ? undefined : { from: "now", to: turn.from };
  }
  return plan.action === "undo" ? { from: entry.to, to: entry.from } : { from: entry.from, to: entry.to };
}

/** Above it the counts would cost more than the plan itself. */
const countedPathsMax = 500;

export async function countLines(
  view: WorkspaceView,
  span: Span | undefined,
  paths: readonly WorkspacePath[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, FileDiff>> {
  const counted = new Map<string, FileDiff>();
  if (span === undefined || paths.length === 0 || paths.length > countedPathsMax) return counted;
  for await (const diff of view.diff({ ...span, paths, signal })) counted.set(diff.path, diff);
  return counted;
}
