/**
 * What stands at single paths, found as a capture would find it and without a walk: the same rules, the same classes of what is
 * left out, contents read to the same proof. Cost follows the paths that are asked for and how deep they lie, never the tree.
 *
 * Every question looks anew and goes down from the root by handles, through no link (U10). Nothing is remembered: of two
 * answers the later one is the truth.
 */
import { constants } from "node:fs";
import {
  baseName,
  components,
  errnoOf,
  isMissing,
  joinPath,
  nameFromBytes,
  pacer,
  parentOf,
  rootPath,
} from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import { assertRootUnmoved, openRoot, ownIdentities } from "./capture-root.js";
import { compileRules } from "./capture-rules.js";
import type { PathRules } from "./capture-rules.js";
import type { ContentId, LookOptions, OmissionClass, PresentPaths, TreeEntry } from "./contracts.js";
import { FileReader } from "./file-reader.js";
import type { ObjectSink } from "./file-reader.js";
import { assertOwnMeans, Classifier } from "./found.js";
import { encodePieces, objectIdOf, pieceBytes, pieceCount } from "./object-ids.js";
import { isSameLook, isSettled, lookerOf, permissionMask } from "./stamps.js";
import type { Look } from "./stamps.js";
import { emptyDirectoryId } from "./tree-codec.js";
import { rootMode } from "./tree.js";

export interface SinglePathsOptions {
  readonly fileSystem: FileSystem;
  readonly now: () => number;
  readonly rules: PathRules;
  /** `identityKey` of directories that are never captured (B2). */
  readonly ownDirectories: ReadonlySet<string>;
  readonly ownPaths: ReadonlySet<WorkspacePath>;
  /** The volume takes several spellings for one name: a path is there only if its directory lists it as it is spelled. */
  readonly foldsNames: boolean;
  readonly pace: () => Promise<void> | undefined;
  /** Where contents go that are read; without it they are hashed and forgotten. */
  readonly store?: { readonly sink: ObjectSink; readonly ready: () => Promise<void> | undefined } | undefined;
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** How often a file that changes while it is read is read again. */
const attemptsMax = 3;

const left = (cls: OmissionClass): TreeEntry => ({ kind: "omitted", class: cls });

export class SinglePaths implements PresentPaths {
  readonly #root: Directory;
  readonly #options: SinglePathsOptions;
  readonly #classifier: Classifier;
  readonly #reader: FileReader;

  /** The caller closes `root`. */
  constructor(root: Directory, options: SinglePathsOptions) {
    this.#root = root;
    this.#options = options;
    const { fileSystem, rules, ownDirectories, now } = options;
    const looker = lookerOf(fileSystem);
    this.#classifier = new Classifier({ fileSystem, looker, rules, ownDirectories, dev: Number(root.dev) });
    this.#reader = new FileReader(fileSystem, looker, now);
  }

  /** Bytes of content read so far. */
  get bytesRead(): number {
    return this.#reader.bytesRead;
  }

  async lookup(path: WorkspacePath): Promise<TreeEntry | undefined> {
    await this.#options.pace();
    if (path === rootPath) return { kind: "directory", mode: rootMode, id: emptyDirectoryId };
    using parent = this.#open(components(parentOf(path)));
    return parent === undefined ? undefined : await this.#entry(parent, baseName(path), path);
  }

  async names(path: WorkspacePath): Promise<readonly string[]> {
    await this.#options.pace();
    using directory = this.#open(components(path));
    if (directory === undefined) return [];
    try {
      const { ownPaths } = this.#options;
      return [...new Set(directory.names())].filter((name) => !ownPaths.has(joinPath(path, name)));
    } catch (error) {
      assertOwnMeans(error, path);
      return [];
    }
  }

  /** The directory below the root; undefined where a capture would see none. */
  #open(names: readonly string[]): Directory | undefined {
    let directory = this.#root.child(".");
    let path = rootPath;
    for (const name of names) {
      path = joinPath(path, name);
      using above = directory;
      const next = this.#child(above, name, path);
      if (next === undefined) return undefined;
      directory = next;
    }
    return directory;
  }

  #child(directory: Directory, name: string, path: WorkspacePath): Directory | undefined {
    if (this.#find(directory, name, path)?.kind !== "directory") return undefined;
    try {
      this.#assertListable(directory, name);
      return directory.child(name);
    } catch (error) {
      // Replaced since, or not ours to look into: what is below it is not to be seen.
      assertOwnMeans(error, path);
      return undefined;
    }
  }

  /** A directory whose names cannot be listed is left out as a whole by a walk. Opening it tells, and needs no listing. */
  #assertListable(directory: Directory, name: string): void {
    const { fileSystem } = this.#options;
    fileSystem.close(fileSystem.open(directory.at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  #find(directory: Directory, name: string, path: WorkspacePath): ReturnType<Classifier["find"]> {
    if (this.#options.ownPaths.has(path)) return undefined;
    const found = this.#classifier.find(directory, name, directory.at(name), () => path);
    if (found === undefined || !this.#options.foldsNames) return found;
    try {
      return directory.names().includes(name) ? found : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      assertOwnMeans(error, path);
      return found;
    }
  }

  async #entry(directory: Directory, name: string, path: WorkspacePath): Promise<TreeEntry | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = this.#find(directory, name, path);
      if (found === undefined) return undefined;
      switch (found.kind) {
        case "omitted":
          return left(found.class);
        case "symlink":
          return { kind: "symlink", target: nameFromBytes(found.target) };
        case "directory":
          try {
            this.#assertListable(directory, name);
            return { kind: "directory", mode: found.look.mode & permissionMask, id: emptyDirectoryId };
          } catch (error) {
            assertOwnMeans(error, path);
            if (errnoOf(error) === "EACCES" || errnoOf(error) === "EPERM") return left("unreadable");
            break;
          }
        case "file": {
          const entry = await this.#file(directory, name, found.look);
          if (entry !== undefined) return entry;
          break;
        }
        default:
          found satisfies never;
      }
      await this.#options.pace();
    }
    return left("unstable");
  }

  /** Undefined when it was not the same all the while. */
  async #file(directory: Directory, name: string, look: Look): Promise<TreeEntry | undefined> {
    const { store } = this.#options;
    const mode = look.mode & permissionMask;
    if (look.size > pieceBytes) return this.#largeFile(directory, name, look);
    const expected = { size: look.size, is: (opened: Look) => isSameLook(opened, look) };
    const read = this.#reader.small(directory, name, expected, store?.sink, undefined);
    await store?.ready();
    switch (read.kind) {
      case "read":
        return { kind: "file", mode, size: look.size, id: read.digest.toString("hex") as ContentId };
      case "unreadable":
        assertOwnMeans(read.error, name);
        return left("unreadable");
      case "changed":
        return undefined;
      default:
        return read satisfies never;
    }
  }

  async #largeFile(directory: Directory, name: string, look: Look): Promise<TreeEntry | undefined> {
    const { store, now } = this.#options;
    const lookedAt = now();
    const ids = await this.#pieces(directory, name, look, store?.sink);
    if (typeof ids === "string") return ids === "changed" ? undefined : left(ids);
    if (!isSettled(look, lookedAt)) {
      // What is the same both times stood there whole.
      const again = await this.#pieces(directory, name, look, undefined);
      if (typeof again === "string" || !again.equals(ids)) return undefined;
    }
    const digests = Array.from({ length: ids.length / 32 }, (_, i) => ids.toString("hex", i * 32, i * 32 + 32));
    const list = encodePieces(look.size, digests);
    const id = objectIdOf(list) as ContentId;
    store?.sink.add(Buffer.from(id, "hex"), list);
    await store?.ready();
    return { kind: "file", mode: look.mode & permissionMask, size: look.size, id };
  }

  async #pieces(
    directory: Directory,
    name: string,
    look: Look,
    sink: ObjectSink | undefined,
  ): Promise<Buffer | "changed" | "unreadable"> {
    const { store, pace } = this.#options;
    const count = pieceCount(look.size);
    const digests = Buffer.alloc(count * 32);
    const isExpected = (seen: Look): boolean => isSameLook(seen, look);
    const reading = this.#reader.pieces(directory, name, isExpected, { first: 0, count, digests }, sink);
    for (let step = reading.next(); ; step = reading.next()) {
      if (step.done === true) return step.value === "read" ? digests : step.value;
      await store?.ready();
      await pace();
    }
  }
}

interface LookEnvironment {
  readonly fileSystem: FileSystem;
  readonly now: () => number;
  readonly includePrivate: boolean;
  /** Where this store itself writes (B2). */
  readonly ownPaths: readonly string[];
}

/**
 * Holds the root open while `work` looks, and makes sure that it was the root all the while. `look` makes one that hands what
 * it reads on, or not.
 */
export async function lookBelow<T>(
  environment: LookEnvironment,
  options: LookOptions,
  work: (look: (store: SinglePathsOptions["store"]) => SinglePaths, pace: SinglePathsOptions["pace"]) => Promise<T>,
): Promise<T> {
  const { fileSystem, now, includePrivate } = environment;
  const { signal, foldsNames = false, ownPaths = new Set() } = options;
  signal?.throwIfAborted();
  const rules = compileRules(options.rules ?? {}, includePrivate);
  using root = openRoot(fileSystem, options.root);
  const pace = pacer(signal);
  const ownDirectories = ownIdentities(environment, options);
  const means = { fileSystem, now, rules, ownDirectories, ownPaths, foldsNames, pace };
  const result = await work((store) => new SinglePaths(root, { ...means, store }), pace);
  assertRootUnmoved(fileSystem, root, options.root);
  return result;
}
