/** A tree that the store holds, with what a checkpoint says of it besides its ref. */
import { signalOf } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { CaptureResult, Tree, TreeEntry, WorkspaceStore } from "../workspace-store/index.js";
import type { Checkpoint } from "./contracts.js";

export interface KnownTree {
  readonly tree: Tree;
  /** Regular files in it. */
  readonly files: number;
  /** How many paths were left out, by class. */
  readonly omitted: { readonly [cls: string]: number };
}

export function capturedTree({ tree, files, omitted }: CaptureResult): KnownTree {
  const counts: Record<string, number> = {};
  for (const { class: cls } of omitted) counts[cls] = (counts[cls] ?? 0) + 1;
  return { tree, files, omitted: counts };
}

/** Rejects with `snapshot.*` when the store does not have it any more. */
export async function checkpointTree(
  store: WorkspaceStore,
  { ref, files, omitted }: Checkpoint,
  options: Abortable = {},
): Promise<KnownTree> {
  return { tree: await store.open(ref, signalOf(options)), files, omitted };
}

/** What is known of `tree` by how it differs from one of which it is known. */
export async function changedTree(
  store: WorkspaceStore,
  base: KnownTree,
  tree: Tree,
  options: Abortable = {},
): Promise<KnownTree> {
  let { files } = base;
  const omitted = new Map(Object.entries(base.omitted));
  const count = (entry: TreeEntry | undefined, by: 1 | -1): void => {
    if (entry?.kind === "file") files += by;
    if (entry?.kind === "omitted") omitted.set(entry.class, (omitted.get(entry.class) ?? 0) + by);
  };
  for await (const { before, after } of store.diff(base.tree, tree, options)) {
    count(before, -1);
    count(after, 1);
  }
  return { tree, files, omitted: Object.fromEntries([...omitted].filter(([, left]) => left > 0)) };
}

export const completenessOf = ({ omitted }: KnownTree): "complete" | "partial" =>
  (omitted.unreadable ?? 0) + (omitted.unstable ?? 0) > 0 ? "partial" : "complete";
