/**
 * The memory of one loop for what it saw of its files (C8). Owns one critical section per path and a bounded number of
 * observations; the oldest are forgotten first, which costs a read and never a byte.
 *
 * It keeps content hashes and no time stamps. Whoever is about to write reads the present bytes anyway, to compare and to
 * show what differs, so a stamp could only save a hash of bytes at hand; and stamps are what made tools refuse files that
 * had not changed (C070, C071).
 */
import { invariant } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { placesOf } from "./coordinator-scope.js";
import type { Observation, OwnedObservations } from "./observations-contract.js";

export interface ObservationsOptions {
  readonly root: CanonicalRoot;
  /** Makes names equal that are one on the root's volume (R1). Default: every name is its own. */
  readonly fold?: ((name: string) => string) | undefined;
  /** How many paths are remembered. Default 10 000. */
  readonly pathsMax?: number | undefined;
}

/** Empty observations, for one loop. */
export function createObservations({ root, fold, pathsMax = 10_000 }: ObservationsOptions): OwnedObservations {
  const seen = new Map<string, Observation>();
  const last = new Map<string, Promise<void>>();

  const record = (key: string, observation: Observation): void => {
    // Deleting first makes it the youngest in the order of the map.
    seen.delete(key);
    seen.set(key, Object.freeze({ ...observation }));
    if (seen.size <= pathsMax) return;
    const oldest = seen.keys().next();
    if (oldest.done !== true) seen.delete(oldest.value);
  };

  return {
    withPath: async (path, work) => {
      const key = keyOf(path, root, fold);
      const before = last.get(key);
      let leave = (): void => undefined;
      const section = new Promise<void>((resolve) => {
        leave = resolve;
      });
      last.set(key, section);
      await before;
      let open = true;
      try {
        return await work({
          get last() {
            return seen.get(key);
          },
          record: (observation) => {
            // A record that comes after the section would speak of bytes that others have written over since.
            invariant(open, "BUG: an observation was recorded outside of its critical section");
            record(key, observation);
          },
        });
      } finally {
        open = false;
        if (last.get(key) === section) last.delete(key);
        leave();
      }
    },
    // There is no stamp here to be distrusted.
    invalidateAll: () => undefined,
    forget: (paths) => {
      const changed = new Set(Array.from(paths, (path) => keyOf(path, root, fold)));
      for (const key of seen.keys()) if (isBelowOneOf(key, changed)) seen.delete(key);
    },
  };
}

/** Whether `key`, or a directory above it, is among `keys`. */
function isBelowOneOf(key: string, keys: ReadonlySet<string>): boolean {
  for (let at = key; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) if (keys.has(at)) return true;
  return keys.has("");
}

function keyOf(path: string, root: CanonicalRoot, fold: ObservationsOptions["fold"]): string {
  const [place] = placesOf({ operation: "path-mutation", paths: [path] }, root, fold);
  invariant(place !== undefined, "BUG: a path has no place");
  return place.join("/");
}
