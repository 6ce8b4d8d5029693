/**
 * The look at a tree: every name and what it is, no content. Owns classification (which kind, which omission) and the shape
 * that hashing fills in; `content-reader.ts` owns reading.
 *
 * 1. Everything is reached relative to opened directories; nothing is followed, nothing but directories is opened.
 * 2. A name that vanishes between listing and looking is absent. One that cannot be looked at is `unreadable`, never an
 *    error of the whole walk; only exhaustion of our own means (descriptors, memory) is.
 */
import type { BigIntStats } from "node:fs";
import { compareNames, errnoOf, joinPath, nameFromBytes, rootPath, StorageError } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import type { PathRules } from "./capture-rules.js";
import type { OmissionClass, TreeId, ContentId } from "./contracts.js";
import { DirectoryReplacedError, OpenDirectories } from "./open-directories.js";
import type { DirectoryPlace } from "./open-directories.js";
import { permissionBits } from "./stat-index.js";

export interface FoundFile {
  readonly kind: "file";
  readonly name: string;
  /** As the walk saw it, or as it was read; they differ when the file changed in between. */
  stats: BigIntStats;
  /** Undefined until the content is known. */
  id: ContentId | undefined;
}
export interface FoundDirectory extends DirectoryPlace {
  readonly kind: "directory";
  readonly parent: FoundDirectory | undefined;
  readonly path: WorkspacePath;
  readonly mode: number;
  /** In byte order of their names. */
  entries: FoundEntry[];
  /** Allocated bytes of the files in it and below. */
  allocatedBytes: number;
  /** Undefined until it is encoded. */
  id: TreeId | undefined;
}
export interface FoundSymlink {
  readonly kind: "symlink";
  readonly name: string;
  readonly target: string;
}
export interface FoundOmission {
  readonly kind: "omitted";
  readonly name: string;
  readonly class: OmissionClass;
}
export type FoundEntry = FoundFile | FoundDirectory | FoundSymlink | FoundOmission;

export interface WalkOptions {
  readonly rules: PathRules;
  /** `${dev}:${ino}` of directories that are never captured (B2). */
  readonly ownDirectories: ReadonlySet<string>;
  readonly ownPaths: ReadonlySet<WorkspacePath>;
  /** Yields to the event loop, reports progress, throws on abort. */
  readonly pace: () => Promise<void> | undefined;
}

export const identityKey = (dev: bigint, ino: bigint): string => `${dev.toString()}:${ino.toString()}`;

const statBlockBytes = 512;
/** How often a name that changes its kind while it is looked at is looked at again. */
const looksMax = 3;

export class Walk implements Disposable {
  readonly #fs: FileSystem;
  readonly #root: Directory;
  readonly #options: WalkOptions;
  readonly directories: OpenDirectories;
  readonly top: FoundDirectory;
  /** Entries seen that are no directories. */
  filesSeen = 0;

  constructor(fileSystem: FileSystem, root: Directory, options: WalkOptions) {
    this.#fs = fileSystem;
    this.#root = root;
    this.#options = options;
    this.directories = new OpenDirectories(root);
    this.top = newDirectory(undefined, "", rootPath, 0o755, root);
  }

  /** Walks everything below the root. */
  async run(): Promise<void> {
    await this.expand(this.top);
  }

  /**
   * Fills `directory` with what stands in it and below. Returns how it ended: "gone" and "replaced" mean that another
   * look at its name in its parent is due.
   */
  async expand(directory: FoundDirectory): Promise<"done" | "gone" | "replaced" | "unreadable"> {
    const outcome = await this.#list(directory);
    if (outcome !== "done") return outcome;
    // An explicit stack: trees are as deep as they like, call stacks are not.
    const stack = childDirectories(directory).reverse();
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const parent = next.parent as FoundDirectory;
      let found: FoundEntry | undefined = next;
      let result = await this.#list(next);
      for (let looks = 1; result !== "done"; looks++) {
        if (result === "unreadable" || looks === looksMax) {
          found = { kind: "omitted", name: next.name, class: result === "unreadable" ? "unreadable" : "unstable" };
          break;
        }
        found = this.lookIn(parent, next.name);
        if (found?.kind !== "directory") break;
        next = found;
        result = await this.#list(next);
      }
      if (found?.kind === "directory") stack.push(...childDirectories(found).reverse());
      replaceEntry(parent, next.name, found);
    }
    return "done";
  }

  #look(directory: Directory, parent: FoundDirectory, name: string): FoundEntry | undefined {
    for (let looks = 0; looks < looksMax; looks++) {
      try {
        const stats = directory.lstat(name);
        return this.#classify(directory, parent, name, stats);
      } catch (error) {
        const errno = errnoOf(error);
        if (errno === "ENOENT") return undefined;
        // Not a link any more when it was read: look again.
        if (errno === "EINVAL") continue;
        assertOwnMeans(error, joinPath(parent.path, name));
        return { kind: "omitted", name, class: "unreadable" };
      }
    }
    return { kind: "omitted", name, class: "unstable" };
  }

  [Symbol.dispose](): void {
    this.directories[Symbol.dispose]();
  }

  async #list(directory: FoundDirectory): Promise<"done" | "gone" | "replaced" | "unreadable"> {
    const names = this.#names(directory);
    if (typeof names === "string") return names;
    const entries: FoundEntry[] = [];
    // Stays open throughout: nothing else of this walk opens directories meanwhile.
    const handle = this.directories.get(directory);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      if (this.#options.ownPaths.size > 0 && this.#options.ownPaths.has(joinPath(directory.path, name))) continue;
      const entry = this.#look(handle, directory, name);
      if (entry) entries.push(entry);
      if (entry?.kind !== "directory") this.filesSeen++;
      if (i % 64 === 0) await this.#options.pace();
    }
    directory.entries = entries.sort((a, b) => compareNames(a.name, b.name));
    return "done";
  }

  #names(directory: FoundDirectory): string[] | "gone" | "replaced" | "unreadable" {
    try {
      return this.directories.get(directory).names();
    } catch (error) {
      if (directory.parent === undefined) throw error;
      const errno = errnoOf(error);
      if (errno === "ENOENT") return "gone";
      if (error instanceof DirectoryReplacedError || errno === "ENOTDIR" || errno === "ELOOP") return "replaced";
      assertOwnMeans(error, directory.path);
      return "unreadable";
    }
  }

  /** Looks at a name of a directory that may have gone meanwhile. A directory comes back empty, for `expand`. */
  lookIn(parent: FoundDirectory, name: string): FoundEntry | undefined {
    let handle: Directory;
    try {
      handle = this.directories.get(parent);
    } catch (error) {
      // The parent itself went away or was replaced, so the name no longer means what it meant.
      if (error instanceof DirectoryReplacedError) return { kind: "omitted", name, class: "unstable" };
      if (errnoOf(error) === "ENOENT") return undefined;
      assertOwnMeans(error, joinPath(parent.path, name));
      return { kind: "omitted", name, class: "unstable" };
    }
    return this.#look(handle, parent, name);
  }

  #classify(directory: Directory, parent: FoundDirectory, name: string, stats: BigIntStats): FoundEntry {
    const path = joinPath(parent.path, name);
    const { rules, ownDirectories } = this.#options;
    const isDirectory = stats.isDirectory();
    const omission = rules.omission(path, name, isDirectory);
    if (omission !== undefined) return { kind: "omitted", name, class: omission };
    if (isDirectory) {
      if (ownDirectories.has(identityKey(stats.dev, stats.ino))) return { kind: "omitted", name, class: "excluded" };
      // Only directories tell: overlay file systems give files the device of a layer below.
      if (stats.dev !== this.#root.dev) return { kind: "omitted", name, class: "mount" };
      return newDirectory(parent, name, path, Number(stats.mode & permissionBits), stats);
    }
    if (stats.isFile()) {
      const overSize = rules.maxFileBytes !== undefined && stats.size > rules.maxFileBytes;
      if (overSize) return { kind: "omitted", name, class: "over-size" };
      return { kind: "file", name, stats, id: undefined };
    }
    if (stats.isSymbolicLink()) {
      return { kind: "symlink", name, target: nameFromBytes(this.#fs.readlink(directory.at(name))) };
    }
    return { kind: "omitted", name, class: "special" };
  }
}

/** All directories of the tree, parents before children. */
export function preorder(top: FoundDirectory): FoundDirectory[] {
  const all: FoundDirectory[] = [];
  const stack = [top];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    all.push(next);
    stack.push(...childDirectories(next).reverse());
  }
  return all;
}

/**
 * Counts regular files and sums what capturing them costs, the directories' own `allocatedBytes` included: what they take on
 * disk, or their size where holes make that larger, since holes are read like anything else.
 */
export function measure(all: readonly FoundDirectory[]): { readonly files: number; readonly allocatedBytes: number } {
  let files = 0;
  for (const directory of all) directory.allocatedBytes = 0;
  for (const directory of all.toReversed()) {
    for (const entry of directory.entries) {
      if (entry.kind !== "file") continue;
      files++;
      directory.allocatedBytes += Math.max(Number(entry.stats.blocks) * statBlockBytes, Number(entry.stats.size));
    }
    if (directory.parent) directory.parent.allocatedBytes += directory.allocatedBytes;
  }
  return { files, allocatedBytes: all[0]?.allocatedBytes ?? 0 };
}

/** Puts another entry, or none, in the place of one. */
export function replaceEntry(parent: FoundDirectory, name: string, entry: FoundEntry | undefined): void {
  const at = parent.entries.findIndex((existing) => existing.name === name);
  if (at < 0 || parent.entries[at] === entry) return;
  if (entry) parent.entries[at] = entry;
  else parent.entries.splice(at, 1);
}

/** Running out of descriptors or memory is our failure and must not pass for a property of the tree. */
export function assertOwnMeans(error: unknown, path: string): void {
  const errno = errnoOf(error);
  if (errno !== undefined && !["EMFILE", "ENFILE", "ENOMEM"].includes(errno)) return;
  if (errno === undefined) throw error;
  throw new StorageError(
    "storage.failed",
    `Cannot capture ${JSON.stringify(path)}: the process has no descriptors or memory left (${errno})`,
    { operation: "capture", path, errno },
    { cause: error, retryable: true },
  );
}

const childDirectories = (directory: FoundDirectory): FoundDirectory[] =>
  directory.entries.filter((entry) => entry.kind === "directory");

function newDirectory(
  parent: FoundDirectory | undefined,
  name: string,
  path: WorkspacePath,
  mode: number,
  { dev, ino }: { readonly dev: bigint; readonly ino: bigint },
): FoundDirectory {
  return { kind: "directory", parent, name, path, mode, dev, ino, entries: [], allocatedBytes: 0, id: undefined };
}
