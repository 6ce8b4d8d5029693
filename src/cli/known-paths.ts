/** Paths that were typed and are nowhere: a slip of the finger must not read as "nothing has changed there". */
import { LooprigError, isMissing, toFsPath } from "../core/index.js";
import type { WorkspacePath } from "../core/index.js";
import type { RefLike, WorkspaceView } from "../workspace/index.js";
import type { Context } from "./context.js";
import { typedPath } from "./path-arguments.js";
import type { Place } from "./place.js";

export interface Sides {
  /** `undo`, `restore`, `diff`. */
  readonly action: string;
  /** Stored trees in which a path may be; "now" is the live one. */
  readonly refs: readonly RefLike[];
  /** What people call them: "c1 or here". */
  readonly named: string;
}

/** Throws `restore.nothing` when one of the paths is in none of the trees. */
export async function assertPathsKnown(
  context: Context,
  place: Place,
  view: WorkspaceView,
  paths: readonly WorkspacePath[] | undefined,
  { action, refs, named }: Sides,
): Promise<void> {
  const { signal } = context;
  const unknown = new Set<WorkspacePath>(paths);
  for (const ref of new Set(refs)) {
    if (unknown.size === 0) return;
    const tree = ref === "now" ? undefined : await view.tree(ref, { signal });
    for (const path of unknown) {
      const found = tree === undefined ? isThere(context, place, path) : (await tree.lookup(path)) !== undefined;
      if (found) unknown.delete(path);
    }
  }
  const [first] = unknown;
  if (first === undefined) return;
  const names = [...unknown].map((path) => typedPath(path, place)).join(", ");
  throw new LooprigError("restore.nothing", `Cannot ${action} ${names}: nothing of that name in ${named}`, { action });
}

/** Looked at directly: walking the whole tree for a few names would cost more than what follows. */
export function isThere({ environment }: Context, { root }: Place, path: WorkspacePath): boolean {
  try {
    environment.fileSystem.lstat(toFsPath(`${root}/${path}`));
    return true;
  } catch (error) {
    // What cannot be looked at is not known to be gone.
    return !isMissing(error);
  }
}
