/** Trees: directories by id, whether they were just scanned or lie in the store, with the same questions to both. */
import { components, pacer, rootPath } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { Tree, TreeEntry, TreeId } from "./contracts.js";
import { objectDamaged } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { refOf } from "./object-ids.js";
import { decodeTree } from "./tree-codec.js";
import type { NamedEntry } from "./tree-codec.js";

/** The root's own mode is not part of a tree; this stands for it where an entry must have one. */
export const rootMode = 0o755;

/** What the id of a directory stands for. */
export type DirectorySource = (id: TreeId, path?: WorkspacePath, options?: Abortable) => Promise<readonly NamedEntry[]>;

export function createTree(id: TreeId, source: DirectorySource): Tree {
  const lookup = async (path: WorkspacePath): Promise<TreeEntry | undefined> => {
    let entry: TreeEntry | undefined = { kind: "directory", mode: rootMode, id };
    for (const name of components(path)) {
      if (entry?.kind !== "directory") return undefined;
      entry = (await source(entry.id)).find(([candidate]) => candidate === name)?.[1];
    }
    return entry;
  };
  return Object.freeze({
    ref: refOf(id),
    id,
    lookup,
    list: async (path: WorkspacePath) => {
      const entry = await lookup(path);
      return entry?.kind === "directory" ? source(entry.id) : [];
    },
    entries: async (directory: TreeId, options?: Abortable & { readonly path?: WorkspacePath | undefined }) =>
      source(directory, options?.path, options),
  });
}

/** A tree some of whose directories are at hand, encoded; the rest are in the store. */
export function nodeTree(id: TreeId, nodes: ReadonlyMap<string, Buffer>, rest: DirectorySource): Tree {
  const decoded = new Map<TreeId, readonly NamedEntry[]>();
  return createTree(id, async (directory, path, options) => {
    const known = decoded.get(directory);
    if (known) return known;
    const bytes = nodes.get(directory);
    if (bytes === undefined) return rest(directory, path, options);
    const entries = decodeTree(bytes);
    decoded.set(directory, entries);
    return entries;
  });
}

const cachedDirectoriesMax = 4096;

/** Reads, verifies and keeps directories of the store. */
export function storedDirectories(objects: ObjectStore): DirectorySource {
  const cache = new Map<TreeId, readonly NamedEntry[]>();
  return async (id, path, options = {}) => {
    const cached = cache.get(id);
    if (cached) return cached;
    const entries = parseDirectory(id, await objects.read(id, { ...options, path }), path);
    if (cache.size >= cachedDirectoriesMax) cache.delete(cache.keys().next().value as TreeId);
    cache.set(id, entries);
    return entries;
  };
}

function parseDirectory(id: TreeId, bytes: Uint8Array, path: WorkspacePath | undefined): readonly NamedEntry[] {
  try {
    return decodeTree(bytes);
  } catch (error) {
    if (error instanceof FormatError) throw objectDamaged(id, path, error);
    throw error;
  }
}

export interface VisitedEntry {
  readonly path: WorkspacePath;
  readonly name: string;
  readonly entry: TreeEntry;
}

/** Every entry below the root, parents before children, siblings in byte order. As deep as the tree likes. */
export async function* visitTree(tree: Tree, options: Abortable = {}): AsyncGenerator<VisitedEntry> {
  const pace = pacer(options.signal);
  const stack: { readonly path: WorkspacePath; readonly id: TreeId }[] = [{ path: rootPath, id: tree.id }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    options.signal?.throwIfAborted();
    // Directories at hand are read without waiting, and would never let a timer run.
    await pace();
    const { path: parent, id } = next;
    const entries = await tree.entries(id, { ...options, path: parent });
    const below: typeof stack = [];
    for (const [name, entry] of entries) {
      const path = (parent === "" ? name : `${parent}/${name}`) as WorkspacePath;
      yield { path, name, entry };
      if (entry.kind === "directory") below.push({ path, id: entry.id });
    }
    // One by one: spread arguments lie on the call stack, which a hundred thousand directories overflow.
    for (let child = below.pop(); child !== undefined; child = below.pop()) stack.push(child);
  }
}
