/**
 * A new tree from one that is stored and a look at some paths: nodes are replaced on the way to these paths, everything else is
 * the base's (docs/decisions/0027-derived-trees.md). So the tree that a restore leaves is known without a walk (U8), and so are the
 * bytes that it is about to write over (U4).
 *
 * Order as in a capture: contents and nodes → pack → index → a look whether all of it still counts; the caller pins. Nothing is
 * recorded in the stat index: the next capture finds the stamps it finds.
 */
import { baseName, compareNames, invariant, parentOf, rootPath, StorageError } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import type { DeriveOptions, DerivedTree, Tree, TreeEntry, TreeId } from "./contracts.js";
import { encodeSnapshot, objectIdOf, objectOfRef, refOf } from "./object-ids.js";
import type { ObjectStore } from "./object-store.js";
import { PackWriter } from "./pack-writer.js";
import type { SinglePaths, SinglePathsOptions } from "./single-paths.js";
import { nodeTree } from "./tree.js";
import type { DirectorySource } from "./tree.js";
import { encodeTree } from "./tree-codec.js";
import type { NamedEntry } from "./tree-codec.js";

const attemptsMax = 16;

export interface DeriveEnvironment {
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly storedDirectories: DirectorySource;
  readonly pace: () => Promise<void> | undefined;
  /** Looks at paths below the opened root, and hands contents on. */
  readonly look: (store: SinglePathsOptions["store"]) => SinglePaths;
}

export async function deriveTree(
  environment: DeriveEnvironment,
  { base, paths, signal }: DeriveOptions,
): Promise<DerivedTree> {
  const { blobs, objects } = environment;
  await objects.load({ signal });
  const looked = inOrder(paths);
  let [bytesRead, bytesStored] = [0, 0];
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const losses = objects.losses;
    const writer = new PackWriter(blobs, objects, signal);
    const single = environment.look({ sink: writer.sink, ready: () => writer.ready() });
    const present = new Map<WorkspacePath, TreeEntry | undefined>();
    for (const path of looked) {
      // Below what is no directory nothing stands, and need not be looked for.
      const above = parentOf(path);
      const isBare = above !== rootPath && present.get(above)?.kind !== "directory";
      present.set(path, isBare ? undefined : await single.lookup(path));
    }
    const tree = await put(environment, writer, base, present, { signal });
    await writer.flush(signal);
    bytesRead += single.bytesRead;
    bytesStored += writer.bytesStored;
    await objects.look({ signal });
    // What vanished or was condemned meanwhile may be what the writer took for stored (G2, G3).
    if (objects.losses === losses) return { ref: tree.ref, tree, bytesRead, bytesStored };
  }
  throw new StorageError(
    "storage.failed",
    `Cannot store ${paths.length} paths: packs keep vanishing from the store while they are written`,
    { operation: "derive" },
    { retryable: true },
  );
}

/** The paths and every directory above them, parents first. */
function inOrder(paths: readonly WorkspacePath[]): readonly WorkspacePath[] {
  const all = new Set<WorkspacePath>();
  for (const path of paths) {
    for (let at = path; at !== rootPath && !all.has(at); at = parentOf(at)) all.add(at);
  }
  return [...all].sort(compareNames);
}

/** Puts the nodes on the way to `present` together anew, deepest first. */
async function put(
  { storedDirectories, pace }: DeriveEnvironment,
  writer: PackWriter,
  base: Tree,
  present: ReadonlyMap<WorkspacePath, TreeEntry | undefined>,
  options: Abortable,
): Promise<Tree> {
  const nodes = new Map<string, Buffer>();
  const made = new Map<WorkspacePath, TreeId>();
  const add = async (bytes: Buffer, earlier?: TreeId): Promise<TreeId> => {
    const id = objectIdOf(bytes) as TreeId;
    nodes.set(id, bytes);
    await pace();
    await writer.add(id, bytes, earlier === id ? undefined : earlier);
    return id;
  };
  const directoryIn = async (path: WorkspacePath): Promise<TreeId | undefined> => {
    const entry = await base.lookup(path);
    return entry?.kind === "directory" ? entry.id : undefined;
  };
  // A directory sorts before what is in it, so backwards children come first.
  for (const [directory, paths] of [...byDirectory(present)].sort(([a], [b]) => compareNames(b, a))) {
    if (directory !== rootPath && present.get(directory)?.kind !== "directory") continue;
    const changed: NamedChange[] = [];
    for (const path of paths) {
      let entry = present.get(path);
      if (entry?.kind === "directory") {
        const id = made.get(path) ?? (await directoryIn(path)) ?? (await add(encodeTree([])));
        entry = { ...entry, id };
      }
      changed.push([baseName(path), entry]);
    }
    const earlier = await directoryIn(directory);
    const before = earlier === undefined ? [] : await base.entries(earlier, { ...options, path: directory });
    // Of a directory with a hundred thousand names each of these takes long enough by itself.
    await pace();
    const after = merged(before, changed);
    await pace();
    made.set(directory, await add(encodeTree(after), earlier));
  }
  const id = made.get(rootPath);
  invariant(id !== undefined, "BUG: the root of a derived tree was never made");
  await writer.add(objectOfRef(refOf(id)), encodeSnapshot(id));
  return nodeTree(id, nodes, storedDirectories);
}

type NamedChange = readonly [name: string, entry: TreeEntry | undefined];

/** The paths in each directory, the root's at least. */
function byDirectory(present: ReadonlyMap<WorkspacePath, unknown>): ReadonlyMap<WorkspacePath, WorkspacePath[]> {
  const paths = new Map<WorkspacePath, WorkspacePath[]>([[rootPath, []]]);
  for (const path of present.keys()) {
    const siblings = paths.get(parentOf(path));
    if (siblings === undefined) paths.set(parentOf(path), [path]);
    else siblings.push(path);
  }
  return paths;
}

/** The entries with the changes in their places. Both are in byte order of names. */
function merged(entries: readonly NamedEntry[], changes: readonly NamedChange[]): readonly NamedEntry[] {
  const result: NamedEntry[] = [];
  let at = 0;
  for (const [name, entry] of changes) {
    for (let next = entries[at]; next !== undefined && compareNames(next[0], name) < 0; next = entries[++at]) {
      result.push(next);
    }
    if (entries[at]?.[0] === name) at++;
    if (entry !== undefined) result.push([name, entry]);
  }
  for (let next = entries[at]; next !== undefined; next = entries[++at]) result.push(next);
  return result;
}
