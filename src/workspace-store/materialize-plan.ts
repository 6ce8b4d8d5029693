/** What a materialization will write, and everything that can refuse it before the first write (G8). */
import { displayName, errnoOf, isWithin, pacer, rootPath, SnapshotError } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import { piecesOf } from "./content.js";
import type { FileEntry } from "./content.js";
import type { MaterializeOptions, Tree, TreeId } from "./contracts.js";
import { unusable } from "./materialize-destination.js";
import { collisions, couldFold, probeFolding } from "./name-folding.js";
import type { Folding } from "./name-folding.js";
import type { ObjectStore } from "./object-store.js";

const maxEntriesDefault = 2 ** 20;
const maxBytesDefault = 8 * 1024 ** 3;

export interface PlannedDirectory {
  /** Where it stands in `Plan.directories`. */
  readonly index: number;
  /** Undefined for the destination itself. */
  readonly parent: PlannedDirectory | undefined;
  readonly path: WorkspacePath;
  readonly name: string;
  readonly mode: number;
}
export interface PlannedFile {
  readonly parent: PlannedDirectory;
  readonly name: string;
  readonly entry: FileEntry;
}
export interface PlannedLink {
  readonly parent: PlannedDirectory;
  readonly name: string;
  readonly target: string;
}

export interface Plan {
  /** Parents before children. The first is the destination, which is there already. */
  readonly directories: readonly PlannedDirectory[];
  readonly files: readonly PlannedFile[];
  readonly links: readonly PlannedLink[];
  /** Without the destination. */
  readonly entries: number;
  readonly bytes: number;
  /** Sibling names of which some could be one name on some volume. */
  readonly foldable: readonly { readonly parent: PlannedDirectory; readonly names: readonly string[] }[];
}

export const pathOf = ({ parent, name }: { readonly parent: PlannedDirectory; readonly name: string }): WorkspacePath =>
  inParent(parent.path, name);

const inParent = (parent: WorkspacePath, name: string): WorkspacePath =>
  (parent === "" ? name : `${parent}/${name}`) as WorkspacePath;

export async function planTree(tree: Tree, options: MaterializeOptions): Promise<Plan> {
  const { signal, paths, maxEntries = maxEntriesDefault, maxBytes = maxBytesDefault, gitLinks = "omit" } = options;
  const pace = pacer(signal);
  const top: PlannedDirectory = { index: 0, parent: undefined, path: rootPath, name: "", mode: 0 };
  const directories = [top];
  const files: PlannedFile[] = [];
  const links: PlannedLink[] = [];
  const foldable: { parent: PlannedDirectory; names: readonly string[] }[] = [];
  let entries = 0;
  let bytes = 0;
  const stack: { readonly directory: PlannedDirectory; readonly id: TreeId }[] = [{ directory: top, id: tree.id }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { directory: parent, id } = next;
    const names: string[] = [];
    const below: typeof stack = [];
    for (const [name, entry] of await tree.entries(id, { signal, path: parent.path })) {
      await pace();
      if (entry.kind === "omitted") continue;
      if (paths !== undefined && !isChosen(inParent(parent.path, name), paths)) continue;
      if (name === ".git" && entry.kind !== "directory" && gitLinks === "omit") continue;
      if (++entries > maxEntries) throw beyond("maxEntries", maxEntries);
      names.push(name);
      if (entry.kind === "directory") {
        const path = inParent(parent.path, name);
        const directory = { index: directories.length, parent, path, name, mode: entry.mode };
        directories.push(directory);
        below.push({ directory, id: entry.id });
      } else if (entry.kind === "symlink") links.push({ parent, name, target: entry.target });
      else {
        bytes += entry.size;
        if (bytes > maxBytes) throw beyond("maxBytes", maxBytes);
        files.push({ parent, name, entry });
      }
    }
    if (couldFold(names)) foldable.push({ parent, names });
    // One by one: spread arguments lie on the call stack, which a hundred thousand directories overflow.
    for (let child = below.pop(); child !== undefined; child = below.pop()) stack.push(child);
  }
  return { directories, files, links, entries, bytes, foldable };
}

/** A chosen path, what lies below it, and the directories that lead to it. */
const isChosen = (path: WorkspacePath, paths: readonly WorkspacePath[]): boolean =>
  paths.some((chosen) => isWithin(path, chosen) || isWithin(chosen, path));

/** Rejects with the error that says which object is not there. Reads the lists of large files, and no content. */
export async function assertStored(objects: ObjectStore, plan: Plan, options: MaterializeOptions): Promise<void> {
  const { signal } = options;
  const pace = pacer(signal);
  for (const file of plan.files) {
    await pace();
    const { id, size } = file.entry;
    const path = pathOf(file);
    for (const piece of await piecesOf(objects, { id, size }, { signal, path })) {
      if (objects.place(piece) !== undefined) continue;
      // Looks in the store itself.
      if (!(await objects.find(piece, { signal }))) await objects.read(piece, { signal, path });
    }
  }
}

export async function assertNoCollisions(
  fileSystem: FileSystem,
  destination: Directory,
  { foldable }: Plan,
  dest: string,
  options: MaterializeOptions,
): Promise<void> {
  const pace = pacer(options.signal);
  const pairsUnder = async (under: Folding) => {
    const pairs: (readonly [WorkspacePath, WorkspacePath])[] = [];
    for (const { parent, names } of foldable) {
      await pace();
      for (const [a, b] of collisions(names, under)) pairs.push([inParent(parent.path, a), inParent(parent.path, b)]);
    }
    return pairs;
  };
  // Almost no tree could collide anywhere, and then the volume need not be asked.
  if ((await pairsUnder({ case: true, composition: true })).length === 0) return;
  let folding: Folding;
  try {
    folding = probeFolding(fileSystem, destination);
  } catch (error) {
    throw unusable(dest, `it cannot be written to (${errnoOf(error) ?? "unknown"})`, error);
  }
  const pairs = await pairsUnder(folding);
  const first = pairs[0];
  if (first === undefined) return;
  throw new SnapshotError(
    "snapshot.name_collision",
    `Cannot materialize: "${displayName(first[0])}" and "${displayName(first[1])}" are one name on the destination's volume` +
      (pairs.length > 1 ? `, and so are ${pairs.length - 1} more pairs` : "") +
      "; nothing was written; choose a volume that tells them apart",
    { pairs },
  );
}

function beyond(limit: "maxEntries" | "maxBytes", allowed: number): SnapshotError {
  return new SnapshotError(
    "snapshot.limit",
    `Cannot materialize: the snapshot exceeds ${limit} ${allowed}; nothing was written; raise the limit to allow it`,
    { limit, allowed },
  );
}
