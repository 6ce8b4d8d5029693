/** From what a caller asks for to places in the tree: the one reading of a `MutationScope`. */
import { CoordinatorError, displayName } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import type { MutationScope } from "./coordinator-contract.js";
import type { Place } from "./coordinator-state.js";

const wholeTree: readonly Place[] = [[]];

/**
 * The places a scope claims. Absolute and relative spellings of a path are one place; so are names that `fold` makes equal.
 * Throws `coordinator.invalid_operation` or `coordinator.invalid_path`.
 */
export function placesOf(
  scope: MutationScope,
  root: CanonicalRoot,
  fold: ((name: string) => string) | undefined,
): readonly Place[] {
  // Callers in plain JavaScript send anything.
  const given: unknown = scope;
  const { operation, paths } = (given ?? {}) as { readonly operation?: unknown; readonly paths?: unknown };
  switch (operation) {
    case "whole-mutation":
    case "checkpoint":
      if (paths !== undefined) throw invalidOperation(operation, "it takes no paths");
      return wholeTree;
    case "path-mutation":
      if (!Array.isArray(paths) || paths.length === 0) throw invalidOperation(operation, "it takes one or more paths");
      return paths.map((path: unknown) => placeOf(path, root, fold));
    default:
      throw invalidOperation(
        typeof operation === "string" ? operation : String(operation),
        'wanted "path-mutation", "whole-mutation" or "checkpoint"',
      );
  }
}

/** A scope in words, for messages; long lists of paths are cut. */
export function describeScope(scope: MutationScope): string {
  if (scope.operation !== "path-mutation") return scope.operation;
  const shown = scope.paths.slice(0, 3).map(displayName).join(", ");
  return `${scope.operation} of ${shown}${scope.paths.length > 3 ? ` and ${scope.paths.length - 3} more` : ""}`;
}

function placeOf(path: unknown, root: CanonicalRoot, fold: ((name: string) => string) | undefined): Place {
  if (typeof path !== "string" || path === "") throw invalidPath(String(path), "it is empty or no string");
  if (path === root) return [];
  const relative = path.startsWith("/") ? below(path, root) : path;
  const names = relative.split("/");
  for (const name of names) {
    if (name === "" || name === "." || name === "..") throw invalidPath(path, "it is not in canonical form");
  }
  if (relative.includes("\0")) throw invalidPath(path, "it holds a NUL character");
  return fold === undefined ? names : names.map(fold);
}

function below(path: string, root: CanonicalRoot): string {
  const prefix = root === "/" ? "/" : `${root}/`;
  if (!path.startsWith(prefix)) throw invalidPath(path, `it is outside the root ${displayName(root)}`);
  return path.slice(prefix.length);
}

const invalidOperation = (given: string, reason: string): CoordinatorError =>
  new CoordinatorError(
    "coordinator.invalid_operation",
    `Cannot acquire a permit for ${displayName(given)}: ${reason}`,
    { given },
  );

const invalidPath = (path: string, reason: string): CoordinatorError =>
  new CoordinatorError(
    "coordinator.invalid_path",
    `Cannot acquire a permit for the path ${displayName(path)}: ${reason}; wanted a canonical path inside the root`,
    { path },
  );
