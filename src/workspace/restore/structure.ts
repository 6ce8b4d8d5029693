/**
 * Makes a set of operations possible as a whole: a directory goes only if everything in it goes and nothing is put into it,
 * and nothing is put where its parent is not a directory by then. What cannot be done is reported with what stands in its way; directories that
 * have to exist are added. Pure but for reading trees.
 */
import { compareNames, joinPath, parentOf, rootPath } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import type { PresentPaths, TreeEntry } from "../../workspace-store/index.js";
import { isDirectory } from "./plan.js";
import type { PlannedOperation } from "./plan.js";

export interface Obstacle {
  readonly path: WorkspacePath;
  /** What stands there now; with `planned`, what the plan itself puts there. */
  readonly entry: TreeEntry | undefined;
  readonly planned?: true;
}

export interface StructureOptions {
  readonly present: PresentPaths;
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
  const filled = filledBy(operations);
  const occupantOf = async (directory: WorkspacePath): Promise<Obstacle | undefined> => {
    for (const name of [...(await present.names(directory))].sort(compareNames)) {
      const path = joinPath(directory, name);
      if (operations.get(path) !== undefined) continue;
      const entry = await present.lookup(path);
      // What went since it was listed stands in nobody's way.
      if (entry !== undefined) return { path, entry };
    }
    const put = filled.get(directory);
    return put === undefined ? undefined : { path: put.path, entry: put.target, planned: true };
  };
  for (const operation of byPath(operations).reverse()) {
    if (!isDirectory(operation.expected) || isDirectory(operation.target)) continue;
    const occupant = await occupantOf(operation.path);
    if (occupant === undefined) continue;
    operations.delete(operation.path);
    blocked(operation, occupant);
  }
}

/**
 * For every path, the first operation that puts something below it. Changes that were recorded one by one need not be those
 * between two trees: what a command took out of a directory of the turn's own making may be older than the turn's record.
 */
function filledBy(operations: ReadonlyMap<WorkspacePath, PlannedOperation>): Map<WorkspacePath, PlannedOperation> {
  const filled = new Map<WorkspacePath, PlannedOperation>();
  for (const operation of byPath(operations)) {
    if (operation.target === undefined) continue;
    for (let path = parentOf(operation.path); path !== rootPath && !filled.has(path); path = parentOf(path)) {
      filled.set(path, operation);
    }
  }
  return filled;
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
    if (operation?.target !== undefined) {
      return isDirectory(operation.target) ? undefined : { path, entry: operation.target, planned: true };
    }
    if (operation === undefined && isDirectory(entry)) return undefined;
    // What goes anyway makes room.
    if (operation === undefined && entry !== undefined) return { path, entry };
    const above = await ensure(parentOf(path));
    if (above !== undefined) return above;
    const like = await wanted(path);
    const target =
      like?.kind === "directory" ? like : ({ kind: "directory", mode: unknownDirectoryMode, id: noTree } as const);
    operations.set(path, Object.freeze({ path, expected: operation?.expected, target }));
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
