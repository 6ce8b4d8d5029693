/**
 * Makes a set of operations possible as a whole: a directory goes only if everything in it goes, and nothing is put where
 * its parent is not a directory by then. What cannot be done is reported with what stands in its way; directories that
 * have to exist are added. Pure but for reading trees.
 */
import { compareNames, joinPath, parentOf, rootPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import type { Tree, TreeEntry } from "../../workspace-store/index.js";
import { isDirectory } from "./plan.js";
import type { PlannedOperation } from "./plan.js";

export interface Obstacle {
  readonly path: WorkspacePath;
  /** What stands there now. */
  readonly entry: TreeEntry | undefined;
}

export interface StructureOptions {
  readonly present: Pick<Tree, "lookup" | "list">;
  /** What a directory that has to be made should be like. */
  readonly wanted: (path: WorkspacePath) => Promise<TreeEntry | undefined>;
  /** Called once for each operation that is taken out. */
  readonly blocked: (operation: PlannedOperation, by: Obstacle) => void;
}

/** Mode of a directory that no tree describes. */
const unknownDirectoryMode = 0o755;

/** Takes impossible operations out of `operations` and adds the directories they need. */
export async function makeConsistent(
  operations: Map<WorkspacePath, PlannedOperation>,
  options: StructureOptions,
): Promise<void> {
  await keepOccupiedDirectories(operations, options);
  await requireParents(operations, options);
}

const byPath = (operations: ReadonlyMap<WorkspacePath, PlannedOperation>): PlannedOperation[] =>
  [...operations.values()].sort((a, b) => compareNames(a.path, b.path));

/** Deepest first, so that a directory that is kept keeps the ones above it. */
async function keepOccupiedDirectories(
  operations: Map<WorkspacePath, PlannedOperation>,
  { present, blocked }: StructureOptions,
): Promise<void> {
  for (const operation of byPath(operations).reverse()) {
    if (!isDirectory(operation.expected) || isDirectory(operation.target)) continue;
    for (const [name, entry] of await present.list(operation.path)) {
      const path = joinPath(operation.path, name);
      const child = operations.get(path);
      if (child !== undefined && child.target === undefined) continue;
      operations.delete(operation.path);
      blocked(operation, { path, entry });
      break;
    }
  }
}

/** Parents first, so that what is taken out takes out what was to be put into it. */
async function requireParents(
  operations: Map<WorkspacePath, PlannedOperation>,
  { present, wanted, blocked }: StructureOptions,
): Promise<void> {
  const made = new Map<WorkspacePath, Obstacle | undefined>();

  /** Sees to it that `path` is a directory afterwards; returns what prevents it. */
  const ensure = async (path: WorkspacePath): Promise<Obstacle | undefined> => {
    if (path === rootPath) return undefined;
    if (made.has(path)) return made.get(path);
    const obstacle = await tryEnsure(path);
    made.set(path, obstacle);
    return obstacle;
  };
  const tryEnsure = async (path: WorkspacePath): Promise<Obstacle | undefined> => {
    const operation = operations.get(path);
    const entry = await present.lookup(path);
    if (operation !== undefined) return isDirectory(operation.target) ? undefined : { path, entry };
    if (isDirectory(entry)) return undefined;
    if (entry !== undefined) return { path, entry };
    const above = await ensure(parentOf(path));
    if (above !== undefined) return above;
    const like = await wanted(path);
    const target =
      like?.kind === "directory" ? like : ({ kind: "directory", mode: unknownDirectoryMode, id: noTree } as const);
    operations.set(path, { path, expected: undefined, target });
    return undefined;
  };

  for (const operation of byPath(operations)) {
    if (operation.target === undefined) continue;
    const obstacle = await ensure(parentOf(operation.path));
    if (obstacle === undefined) continue;
    operations.delete(operation.path);
    made.delete(operation.path);
    blocked(operation, obstacle);
  }
}

/** Nothing reads the id of a directory in an operation. */
const noTree = "" as Extract<TreeEntry, { kind: "directory" }>["id"];
