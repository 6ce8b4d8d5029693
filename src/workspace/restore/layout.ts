/**
 * Chooses the names of staged files and backups (U9): siblings of their targets where that directory survives the plan,
 * else in the nearest one above that does. Looks at the tree; changes nothing.
 */
import { components, joinPath, parentOf, rootPath } from "../../core/index.js";
import type { PlanId, WorkspacePath } from "../../core/index.js";
import { isDirectory, isModeChange } from "./plan.js";
import type { PlannedOperation } from "./plan.js";
import type { PlanRecord, StoredOperation } from "./plan-record.js";
import { hasOtherNames, permissionsOf } from "./observe.js";
import type { Pace } from "./observe.js";
import type { TreeAccess } from "./tree-access.js";

export const ownName = (planId: PlanId, number: number): string => `.looprig-${planId}-${number}`;

/** Hands out names that nothing has, each once. */
export class OwnNames {
  readonly #planId: PlanId;
  readonly #tree: Pick<TreeAccess, "stat">;
  #number = 0;

  constructor(planId: PlanId, tree: Pick<TreeAccess, "stat">) {
    this.#planId = planId;
    this.#tree = tree;
  }

  next(directory: WorkspacePath): WorkspacePath {
    for (;;) {
      const path = joinPath(directory, ownName(this.#planId, this.#number++));
      if (this.#tree.stat(path) === undefined) return path;
    }
  }
}

export type Layout = Pick<PlanRecord, "operations" | "relaxed">;

export async function layOut(
  operations: readonly PlannedOperation[],
  names: OwnNames,
  tree: Pick<TreeAccess, "stat">,
  pace: Pace,
): Promise<Layout> {
  const byPath = new Map(operations.map((operation) => [operation.path, operation]));
  const stored: StoredOperation[] = [];
  for (const operation of operations) {
    const { path, expected, target } = operation;
    const directory = survivingParent(path, byPath);
    const needsNames = !isModeChange(operation) || hasOtherNames(tree.stat(path));
    stored.push({
      path,
      expected,
      target,
      ...(needsNames && isFileOrLink(target) ? { staged: names.next(directory) } : {}),
      ...(needsNames && isFileOrLink(expected) ? { backup: names.next(directory) } : {}),
    });
    await pace();
  }
  return { operations: stored, relaxed: await tightDirectories(operations, byPath, tree, pace) };
}

const isFileOrLink = (entry: PlannedOperation["target"]): boolean => entry !== undefined && !isDirectory(entry);

/** The nearest directory above `path` that is one before and after. */
export function survivingParent(
  path: WorkspacePath,
  operations: ReadonlyMap<WorkspacePath, PlannedOperation>,
): WorkspacePath {
  // From the root down: below something that does not survive nothing does.
  let surviving = rootPath;
  for (const name of components(parentOf(path))) {
    const directory = joinPath(surviving, name);
    const operation = operations.get(directory);
    if (operation !== undefined && !(isDirectory(operation.expected) && isDirectory(operation.target))) break;
    surviving = directory;
  }
  return surviving;
}

/** Directories on the way to the operations, not operations themselves, that their owner may not write or search. */
async function tightDirectories(
  operations: readonly PlannedOperation[],
  byPath: ReadonlyMap<WorkspacePath, PlannedOperation>,
  tree: Pick<TreeAccess, "stat">,
  pace: Pace,
): Promise<PlanRecord["relaxed"]> {
  const seen = new Set<WorkspacePath>();
  const tight: { path: WorkspacePath; mode: number }[] = [];
  for (const { path } of operations) {
    for (let directory = parentOf(path); !seen.has(directory); directory = parentOf(directory)) {
      seen.add(directory);
      const stats = byPath.has(directory) ? undefined : tree.stat(directory);
      if (stats?.isDirectory() === true && (stats.mode & 0o300n) !== 0o300n) {
        tight.push({ path: directory, mode: permissionsOf(stats) });
      }
    }
    await pace();
  }
  return tight;
}
