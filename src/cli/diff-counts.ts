/** Line counts of the paths of a plan or a turn, read from the view's differences. */
import type { WorkspacePath } from "../core/index.js";
import type { FileDiff, RefLike, RestorePlan, RootHistory, WorkspaceView } from "../workspace/index.js";

/** Two trees, or what a turn changed itself, taken back or as it was done. */
export type Span =
  { readonly from: RefLike; readonly to: RefLike } | { readonly turn: string; readonly reverse: boolean };

/** What a plan does to its paths, as far as they are not in conflict. */
export function spanOf(
  plan: RestorePlan,
  { entries, turns }: Pick<RootHistory, "entries" | "turns">,
  ref: RefLike | undefined,
): Span | undefined {
  if (plan.action === "restore") return ref === undefined ? undefined : { from: "now", to: ref };
  if (turns.some(({ number }) => `t${number}` === plan.entry)) {
    return { turn: plan.entry ?? "", reverse: plan.action === "undo" };
  }
  const entry = entries.find((each) => each.name === plan.entry);
  if (entry === undefined) return undefined;
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
