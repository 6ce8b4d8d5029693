/** Names that are one name on volumes which fold case or composition (C104). */
import { compareNames, errnoOf } from "../core/index.js";
import type { Directory, FileSystem } from "../core/index.js";

export interface Folding {
  readonly case: boolean;
  readonly composition: boolean;
}

/** Folds at least as much as the volumes do. */
function fold(name: string, { case: foldsCase, composition }: Folding): string {
  const composed = composition ? name.normalize("NFC") : name;
  return foldsCase ? composed.toUpperCase().toLowerCase() : composed;
}

/** Lower-case ASCII folds to itself alone. */
const foldsToItself = /^[^A-Z\u0080-\uffff]*$/;

/** Whether two of these different siblings could be one name under some folding. Cheap, and false for almost every directory. */
export function couldFold(names: readonly string[]): boolean {
  // Two names are one only if one of them is not its own folding.
  return names.length > 1 && !names.every((name) => foldsToItself.test(name));
}

/** Pairs of siblings that collide under the folding. */
export function collisions(names: readonly string[], folding: Folding): readonly (readonly [string, string])[] {
  const first = new Map<string, string>();
  const pairs: (readonly [string, string])[] = [];
  for (const name of [...names].sort(compareNames)) {
    const folded = fold(name, folding);
    const other = first.get(folded);
    if (other === undefined) first.set(folded, name);
    else pairs.push([other, name]);
  }
  return pairs;
}

const probes: Readonly<Record<keyof Folding, readonly [made: string, asked: string]>> = {
  case: [".looprig-probe-case", ".LOOPRIG-PROBE-CASE"],
  composition: [".looprig-probe-\u00e9", ".looprig-probe-e\u0301"],
};

/** Finds out by making a directory and asking for it under another spelling. The directory must be ours and is left as it was. */
export function probeFolding(fileSystem: FileSystem, directory: Directory): Folding {
  const folds = ([made, asked]: readonly [string, string]): boolean => {
    fileSystem.mkdir(directory.at(made), 0o700);
    try {
      directory.lstat(asked);
      return true;
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
      return false;
    } finally {
      fileSystem.rmdir(directory.at(made));
    }
  };
  return { case: folds(probes.case), composition: folds(probes.composition) };
}
