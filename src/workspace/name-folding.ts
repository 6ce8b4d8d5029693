/**
 * Volumes on which two spellings are one name: folding of case, and of composition ("é" as one code point or two).
 *
 * Whether a directory folds is found by looking, never by the volume's type: a name that is there is looked up in another
 * spelling. Nothing is written. A name without such a spelling needs no answer, since folding would not change it.
 *
 * A *stored* spelling is the one the directory lists: what people see and programs compare. A *folded* spelling is the
 * one that all aliases share, present or not, whatever name the entry is made under later: what keys are made of.
 */
import nodePath from "node:path";
import { errnoOf, isMissing, nameFromBytes } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

/** How a directory compares names. */
export interface NameFolding {
  readonly case: boolean;
  readonly composition: boolean;
}

/** The spelling that all names share that are one under `folding`. Letter by letter, so that it is one of those names itself. */
export function foldName(name: string, folding: NameFolding): string {
  const composed = folding.composition ? name.normalize("NFC") : name;
  if (!folding.case) return composed;
  const lower = Array.from(composed, lowerLetter).join("");
  return folding.composition ? lower.normalize("NFC") : lower;
}

/** An absolute path whose existing components stand as their directories list them. `path` exists. */
export function storedSpelling(fileSystem: FileSystem, path: string): string {
  return mapComponents(path, (parent, name) => {
    const folding = foldingOf(fileSystem, parent, name);
    if (folding === undefined || (!folding.case && !folding.composition)) return name;
    const listed = namesIn(fileSystem, parent);
    if (listed.includes(name)) return name;
    const wanted = foldName(name, folding);
    return listed.find((other) => foldName(other, folding) === wanted) ?? name;
  });
}

/** The folded spelling of an absolute path, which need not exist: the same for every alias of it on its volume. */
export function foldedSpelling(fileSystem: FileSystem, path: string): string {
  // Parents are looked at in the given spelling: it leads to the same directory.
  let parent = "/";
  let missing: NameFolding | undefined;
  const folded = componentsOf(path).map((name) => {
    const folding = missing ?? foldingOf(fileSystem, parent, name) ?? (missing = foldingIn(fileSystem, parent));
    parent = nodePath.join(parent, name);
    return foldName(name, folding);
  });
  return `/${folded.join("/")}`;
}

/** How the existing directory at an absolute path compares names, as far as what is there can tell; else as its parents do. */
export function foldingIn(fileSystem: FileSystem, directory: string): NameFolding {
  const names = namesIn(fileSystem, directory);
  const folds = firstAnswer(fileSystem, directory, names, caseVariant);
  const composition = firstAnswer(fileSystem, directory, names, compositionVariant);
  if (folds === undefined && directory !== "/") {
    const parent = nodePath.dirname(directory);
    // A mount point tells of its parent's volume, not of its own.
    if (fileSystem.stat(parent).dev === fileSystem.stat(directory).dev) {
      const inherited = foldingIn(fileSystem, parent);
      return { case: inherited.case, composition: composition ?? inherited.composition };
    }
  }
  // Every volume that folds case and is in wide use folds composition too.
  return { case: folds ?? false, composition: composition ?? folds ?? false };
}

/** How `directory` treats this very name; undefined when nothing has it. Aspects the name cannot show are false. */
function foldingOf(fileSystem: FileSystem, directory: string, name: string): NameFolding | undefined {
  const itself = entry(fileSystem, nodePath.join(directory, name));
  if (itself === undefined) return undefined;
  const answers = (variant: string | undefined): boolean =>
    variant !== undefined && isAlias(fileSystem, directory, itself, variant);
  return { case: answers(caseVariant(name)), composition: answers(compositionVariant(name)) };
}

/** At most so many names of a directory are asked. */
const witnessesMax = 16;

function firstAnswer(
  fileSystem: FileSystem,
  directory: string,
  names: readonly string[],
  variantOf: (name: string) => string | undefined,
): boolean | undefined {
  let asked = 0;
  for (const name of names) {
    const variant = variantOf(name);
    if (variant === undefined) continue;
    const itself = entry(fileSystem, nodePath.join(directory, name));
    if (itself !== undefined) return isAlias(fileSystem, directory, itself, variant);
    if (++asked === witnessesMax) break;
  }
  return undefined;
}

interface Entry {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** Whether `variant` leads to the entry without being a name of its own (a hard link, a second mount of one directory). */
function isAlias(fileSystem: FileSystem, directory: string, itself: Entry, variant: string): boolean {
  const other = entry(fileSystem, nodePath.join(directory, variant));
  if (other?.dev !== itself.dev || other.ino !== itself.ino) return false;
  // The name it was compared with may be the unlisted one, so both have to be listed to be two.
  const names = namesIn(fileSystem, directory);
  const wanted = foldName(variant, everything);
  return names.filter((name) => foldName(name, everything) === wanted).length === 1;
}

const everything: NameFolding = { case: true, composition: true };

function entry(fileSystem: FileSystem, path: string): Entry | undefined {
  try {
    return fileSystem.lstat(path);
  } catch (error) {
    // Another spelling can be too long where the name itself is not.
    if (["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

function namesIn(fileSystem: FileSystem, directory: string): string[] {
  try {
    return fileSystem.readdir(directory).map((name) => (typeof name === "string" ? name : nameFromBytes(name)));
  } catch (error) {
    // Gone meanwhile, or a file: the path may be another session's record of a root that is no more.
    if (isMissing(error)) return [];
    throw error;
  }
}

/** The name with the case of its first cased letter turned, or undefined when it has none. */
function caseVariant(name: string): string | undefined {
  const letters = Array.from(name);
  for (const [i, letter] of letters.entries()) {
    const lower = lowerLetter(letter);
    const turned = lower === letter ? upperLetter(letter) : lower;
    // Letters such as the dotless i have an upper case that is another letter's too; they tell nothing.
    if (turned === letter || lowerLetter(turned) !== lower) continue;
    letters[i] = turned;
    return letters.join("");
  }
  return undefined;
}

function compositionVariant(name: string): string | undefined {
  return [name.normalize("NFC"), name.normalize("NFD")].find((variant) => variant !== name);
}

// Letters whose other case is longer ("ß") are left alone: volumes do not agree on them, and a folded name has to stay a name of the same entry.
const lowerLetter = (letter: string): string => sameLength(letter, letter.toLowerCase());
const upperLetter = (letter: string): string => sameLength(letter, letter.toUpperCase());
const sameLength = (letter: string, other: string): string => (other.length === letter.length ? other : letter);

const componentsOf = (path: string): string[] => path.split("/").filter((name) => name !== "");

function mapComponents(path: string, map: (parent: string, name: string) => string): string {
  return componentsOf(path).reduce((parent, name) => nodePath.join(parent, map(parent, name)), "/");
}
