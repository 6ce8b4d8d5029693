/**
 * One path for one place (R1): whatever way a root or a file is spelled, all spellings meet in the same string, and with it
 * in the same lease, permit and record.
 *
 * The order is: absolute, lexically clean (so `link/..` is the directory that holds the link, as in a shell's `cd` and in
 * `path.resolve`), then symbolic links resolved by the system. Of a path that does not exist yet, the longest existing
 * ancestor is resolved and the rest joined to it. A dangling link on the way is followed to where its target will be:
 * `link/x` and `target/x` are one file from the moment either is made, so they have to be one path before. Whoever must not
 * go through links (U10) compares the result with the root; nothing here grants anything.
 */
import nodePath from "node:path";
import {
  displayName,
  errnoOf,
  LooprigError,
  nameFromBytes,
  nodeFileSystem,
  toFsPath,
  WorkspacePlacementError,
} from "../core/index.js";
import type { CanonicalRoot, FileSystem } from "../core/index.js";
import { foldingIn, foldName, storedSpelling } from "./name-folding.js";

/** What `canonicalPath` may be given. */
export interface CanonicalPathOptions {
  readonly fileSystem?: FileSystem | undefined;
  /** What relative paths start from. Default the process's current directory. */
  readonly cwd?: string | undefined;
  /** The option the path came from, for error messages. Default "root". */
  readonly option?: string | undefined;
}

/** As many as Linux follows in one path. */
const linksMax = 40;

/**
 * The canonical form of `path`, which may be absent, a file or a directory. Changes nothing on disk.
 * Throws `workspace_placement.empty_root` when it is blank, and `workspace_placement.canonicalize_failed` when it holds a
 * NUL or bytes that are not UTF-8, leads through a loop of links or a file, or cannot be looked at.
 */
export function canonicalPath(path: string, options: CanonicalPathOptions = {}): CanonicalRoot {
  const { fileSystem = nodeFileSystem, cwd, option = "root" } = options;
  if (path.trim() === "") {
    throw new WorkspacePlacementError(
      "workspace_placement.empty_root",
      `Cannot use ${JSON.stringify(path)} as ${option}: it is blank; name a directory`,
      { option },
    );
  }
  try {
    if (path.includes("\0")) throw new Unresolvable("it holds a NUL character");
    refuseForeignBytes(path);
    const absolute = nodePath.isAbsolute(path) ? nodePath.resolve(path) : nodePath.resolve(cwd ?? process.cwd(), path);
    return resolve(fileSystem, absolute) as CanonicalRoot;
  } catch (error) {
    if (error instanceof LooprigError) throw error;
    throw new WorkspacePlacementError(
      "workspace_placement.canonicalize_failed",
      `Cannot resolve ${option} ${displayName(path)}: ${reasonOf(error)}; name a directory that can be reached`,
      { option, path },
      { cause: error },
    );
  }
}

/** Why a path has no canonical form, where no error of the system says it. */
class Unresolvable extends Error {}

function resolve(fileSystem: FileSystem, absolute: string): string {
  let real: string;
  try {
    real = fileSystem.realpath(absolute);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    return resolveMissing(fileSystem, absolute);
  }
  refuseLossyDecoding(fileSystem, absolute, real);
  return storedSpelling(fileSystem, real);
}

/** Walks to the first name that is not there, following links as the system does. */
function resolveMissing(fileSystem: FileSystem, absolute: string): string {
  let base = "/";
  let links = 0;
  const rest = absolute.split("/");
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      // Only a link's target brings it here, and `base` has no links left: the physical parent is the lexical one.
      base = nodePath.dirname(base);
      continue;
    }
    const next = nodePath.join(base, name);
    const kind = kindOf(fileSystem, next);
    if (kind === "missing") return joinMissing(fileSystem, base, [name, ...rest]);
    if (kind === "link") {
      if (++links > linksMax) throw new Unresolvable("it leads through a loop of symbolic links");
      const target = nameFromBytes(fileSystem.readlink(next));
      refuseForeignBytes(target);
      if (nodePath.isAbsolute(target)) base = "/";
      rest.unshift(...target.split("/"));
    } else base = next;
  }
  // It came into being while we looked.
  return storedSpelling(fileSystem, fileSystem.realpath(base));
}

function kindOf(fileSystem: FileSystem, path: string): "missing" | "link" | "other" {
  try {
    return fileSystem.lstat(path).isSymbolicLink() ? "link" : "other";
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return "missing";
    throw error;
  }
}

/** The tail is folded where its volume folds names: it has no stored spelling yet, and all its aliases must get the same. */
function joinMissing(fileSystem: FileSystem, base: string, tail: readonly string[]): string {
  const names = tail.filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw new Unresolvable("a dangling symbolic link in it goes through a missing directory");
  // What argv could not decode arrives as U+FFFD. A directory of that name may exist; making one would be a mistake.
  if (names.some((name) => name.includes("\ufffd"))) throw new Unresolvable(notUtf8);
  const existing = storedSpelling(fileSystem, fileSystem.realpath(base));
  const folding = foldingIn(fileSystem, existing);
  return nodePath.join(existing, ...names.map((name) => foldName(name, folding)));
}

const notUtf8 = "it is not valid UTF-8";

function refuseForeignBytes(path: string): void {
  if (typeof toFsPath(path) !== "string") throw new Unresolvable(notUtf8);
}

/** A resolved name with foreign bytes reaches us with U+FFFD in their place: then the string leads elsewhere or nowhere. */
function refuseLossyDecoding(fileSystem: FileSystem, path: string, real: string): void {
  if (!real.includes("\ufffd")) return;
  const wanted = fileSystem.stat(path);
  let found;
  try {
    found = fileSystem.lstat(real);
  } catch {
    throw new Unresolvable(notUtf8);
  }
  if (found.dev !== wanted.dev || found.ino !== wanted.ino) throw new Unresolvable(notUtf8);
}

const reasons: Readonly<Record<string, string>> = {
  ELOOP: "it leads through a loop of symbolic links",
  ENOTDIR: "a file stands where a directory is needed",
  EACCES: "a directory on the way may not be searched",
  ENAMETOOLONG: "it is too long",
  ENOENT: "the current directory is gone, or a directory vanished meanwhile",
};

function reasonOf(error: unknown): string {
  if (error instanceof Unresolvable) return error.message;
  const errno = errnoOf(error);
  return (errno === undefined ? undefined : reasons[errno]) ?? errno ?? String(error);
}
