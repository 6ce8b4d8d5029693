/** Comparing two trees by ids: what is equal is never opened. */
import { compareNames, isWithin, pacer, rootPath } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import type { Tree, TreeChange, TreeEntry, TreeId } from "./contracts.js";

type DiffOptions = Abortable & { readonly paths?: readonly WorkspacePath[] | undefined };

/** A name that differs, or the way down into one. */
interface Step {
  /** Sorts whole paths by bytes: "a" before "a-b" before what lies in "a". */
  readonly key: string;
  readonly path: WorkspacePath;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
  readonly descend: boolean;
}

export async function* diffTrees(from: Tree, to: Tree, options: DiffOptions = {}): AsyncGenerator<TreeChange> {
  const { paths, signal } = options;
  const pace = pacer(signal);
  const reports = (path: WorkspacePath) => paths?.some((asked) => isWithin(path, asked)) ?? true;
  const enters = (path: WorkspacePath) => reports(path) || (paths?.some((asked) => isWithin(asked, path)) ?? true);

  const stack = await steps(from, to, rootPath, from.id, to.id, options);
  for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
    signal?.throwIfAborted();
    await pace();
    const { path, before, after, descend } = step;
    if (descend) {
      if (!enters(path)) continue;
      // One by one: spread arguments lie on the call stack, which a hundred thousand names overflow.
      for (const below of await steps(from, to, path, directoryId(before), directoryId(after), options))
        stack.push(below);
    } else if (reports(path)) yield { path, before, after };
  }
}

/** What differs between two directories, either of which may be missing, in reverse order: the stack's top is next. */
async function steps(
  from: Tree,
  to: Tree,
  parent: WorkspacePath,
  fromId: TreeId | undefined,
  toId: TreeId | undefined,
  options: Abortable,
): Promise<Step[]> {
  if (fromId === toId) return [];
  const where = { ...options, path: parent };
  const old = new Map(fromId === undefined ? [] : await from.entries(fromId, where));
  const young = new Map(toId === undefined ? [] : await to.entries(toId, where));
  const found: Step[] = [];
  for (const name of new Set([...old.keys(), ...young.keys()])) {
    const before = old.get(name);
    const after = young.get(name);
    const path = (parent === "" ? name : `${parent}/${name}`) as WorkspacePath;
    if (!isSameEntry(before, after)) found.push({ key: name, path, before, after, descend: false });
    if (directoryId(before) !== directoryId(after)) found.push({ key: `${name}/`, path, before, after, descend: true });
  }
  return found.sort((a, b) => compareNames(b.key, a.key));
}

const directoryId = (entry: TreeEntry | undefined): TreeId | undefined =>
  entry?.kind === "directory" ? entry.id : undefined;

/** Whether two entries say the same of their own name. Of a directory that is kind and mode, not content. */
export function isSameEntry(a: TreeEntry | undefined, b: TreeEntry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  switch (a.kind) {
    case "file":
      return b.kind === "file" && a.id === b.id && a.mode === b.mode && a.size === b.size;
    case "directory":
      return b.kind === "directory" && a.mode === b.mode;
    case "symlink":
      return b.kind === "symlink" && a.target === b.target;
    case "omitted":
      return b.kind === "omitted" && a.class === b.class;
  }
}
