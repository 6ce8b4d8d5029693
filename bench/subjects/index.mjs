/**
 * Everyone who is measured. A kind is { key, title, version(), open({ tree, store }) } and may say
 *
 *   only               the operations it takes part in; default all
 *   isFullCopy         it copies everything each time: fewer rounds, no growth
 *   storesFilesWhole   however little of a file changed
 *
 * `version()` is undefined where the program is not installed. What `open` gives (or promises) has its own empty store and
 * answers with measurements, { ms } at least. What is absent is not measured:
 *
 *   first()             captures the tree for the first time
 *   capture()           captures it again, whatever happened since
 *   turn(argv)          runs a command that edits the tree as one undoable step; not measured
 *   undo()              takes the last turn back
 *   restore()           makes the tree what the newest capture says
 *   materialize(dest)   writes the newest capture into a directory that does not exist
 *   apart              files of the store that are not counted as its size
 *   rest()              brings the store to rest, so that its size can be measured
 *   peakMemory()        memory of a first capture, for who cannot tell it with each measurement
 *   close()
 */
import { borg } from "./borg.mjs";
import { commandOf, nodeStart } from "./command.mjs";
import { git, gitCheckout } from "./git.mjs";
import { engineOf, workspaceOf } from "./in-process.mjs";
import { copy, find } from "./limits.mjs";
import { restic } from "./restic.mjs";
import { tarGzip, tarZstd } from "./tar.mjs";

/** Those that are installed here, with their versions, and the names of those that are not. */
export function findKinds(build) {
  const ours = [engineOf(build), workspaceOf(build), commandOf(build)];
  const all = [...ours, git, gitCheckout, restic, borg, tarGzip, tarZstd, copy, find, nodeStart];
  const versions = new Map(all.map((kind) => [kind, kind.version()]));
  const present = all.filter((kind) => versions.get(kind) !== undefined);
  if (!present.includes(git)) throw new Error("git is not installed: without it there is nothing to compare with");
  return {
    kinds: present,
    versions: Object.fromEntries(present.map((kind) => [kind.key, versions.get(kind)])),
    absent: all.filter((kind) => !present.includes(kind)).map(({ title }) => title),
  };
}
