/** Which directories make a tree too large, for the message that asks for consent (U11). */
import type { FoundDirectory } from "./walk.js";

const shownMax = 5;
/** A directory that holds nearly all of its parent is named in its stead: excluding it is what helps. */
const dominant = 0.9;

/** The largest directories that do not contain each other, largest first. `measure` must have run. */
export function largestDirectories(top: FoundDirectory): readonly { readonly path: string; readonly bytes: number }[] {
  return directoriesIn(top)
    .map(narrow)
    .sort((a, b) => b.allocatedBytes - a.allocatedBytes)
    .slice(0, shownMax)
    .map(({ path, allocatedBytes }) => ({ path, bytes: allocatedBytes }));
}

function narrow(directory: FoundDirectory): FoundDirectory {
  let at = directory;
  for (;;) {
    const heavy = directoriesIn(at).find((child) => child.allocatedBytes >= at.allocatedBytes * dominant);
    if (heavy === undefined || heavy.allocatedBytes === 0) return at;
    at = heavy;
  }
}

const directoriesIn = (directory: FoundDirectory): FoundDirectory[] =>
  directory.entries.filter((entry) => entry.kind === "directory");
