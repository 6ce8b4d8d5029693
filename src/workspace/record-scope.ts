/** Whether what a call puts on record lies within its permit (C1): a record of another path would be a claim without a right. */
import { CoordinatorError, displayName } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import type { FileChange } from "./change-records.js";
import type { MutationScope } from "./coordinator-contract.js";
import { describeScope, placesOf } from "./coordinator-scope.js";
import type { Place } from "./coordinator-state.js";

/** Begins the name of every file that a write makes beside its path for its moment (U9). */
export const stagedNamePrefix = ".looprig-";

/**
 * A permit covers its paths and what lies below them. A write may also make the directories its path needs, and beside it
 * files of our prefix, so that none of anybody's is ever taken for one of them. Throws `coordinator.invalid_path`.
 */
export function assertCovered(
  scope: MutationScope,
  changes: readonly FileChange[],
  staged: readonly string[],
  { root, fold }: { readonly root: CanonicalRoot; readonly fold: ((name: string) => string) | undefined },
): void {
  const permitted = placesOf(scope, root, fold);
  const placeOf = (path: string): Place =>
    placesOf({ operation: "path-mutation", paths: [path] }, root, fold)[0] as Place;
  for (const { path, after } of changes) {
    const at = placeOf(path);
    const makesWay = after?.kind === "directory" && permitted.some((place) => isWithin(place, at));
    if (!makesWay && !permitted.some((place) => isWithin(at, place)))
      throw notCovered(scope, path, "the permit is for");
  }
  for (const path of staged) {
    const at = placeOf(path);
    const isBeside = permitted.some((place) => isWithin(at, place.slice(0, -1)) && at.length >= place.length);
    if (!isBeside || at.at(-1)?.startsWith(stagedNamePrefix) !== true) {
      throw notCovered(scope, path, `a staged file is named ${stagedNamePrefix}… and stands beside what it is for:`);
    }
  }
}

const isWithin = (place: Place, directory: Place): boolean => directory.every((name, depth) => place[depth] === name);

const notCovered = (scope: MutationScope, path: string, why: string): CoordinatorError =>
  new CoordinatorError(
    "coordinator.invalid_path",
    `Cannot record a change of ${displayName(path)}: ${why} ${describeScope(scope)}; nothing was recorded`,
    { path },
  );
