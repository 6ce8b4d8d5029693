/**
 * Writes a tree into an absent or empty directory (G8).
 *
 * 1. Everything that can refuse does so before the first write: limits, missing objects, colliding names.
 * 2. Every name is created exclusively, relative to a directory opened without following links; nothing is overwritten.
 * 3. Files come in the order their bytes are stored in, so that each block is decoded once. Directory modes come last,
 *    deepest first, or a read-only directory could not be filled.
 * 4. On return every file and directory is synced. On a failure what was made is removed again, and nothing else.
 */
import { constants } from "node:fs";
import path from "node:path";
import {
  Directory,
  displayName,
  errnoOf,
  isLooprigError,
  isWithin,
  pacer,
  parentOf,
  SnapshotError,
  toFsPath,
  writeAll,
} from "../core/index.js";
import type { FileSystem, WorkspacePath } from "../core/index.js";
import { isPresent, piecesOf, readContent } from "./content.js";
import type { FileEntry } from "./content.js";
import type { MaterializeOptions, Tree } from "./contracts.js";
import { collisions, probeFolding } from "./name-folding.js";
import type { Folding } from "./name-folding.js";
import type { ObjectStore } from "./object-store.js";
import { OpenDirectories } from "./open-directories.js";
import type { DirectoryPlace } from "./open-directories.js";
import { visitTree } from "./tree.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_DIRECTORY } = constants;

const maxEntriesDefault = 2 ** 20;
const maxBytesDefault = 8 * 1024 ** 3;
/** Files whose sync is under way; each holds a descriptor. */
const syncsMax = 64;

interface PlannedDirectory {
  readonly path: WorkspacePath;
  readonly name: string;
  readonly mode: number;
}
interface PlannedFile {
  readonly path: WorkspacePath;
  readonly name: string;
  readonly entry: FileEntry;
}
interface PlannedLink {
  readonly path: WorkspacePath;
  readonly name: string;
  readonly target: string;
}
interface Plan {
  readonly directories: readonly PlannedDirectory[];
  readonly files: readonly PlannedFile[];
  readonly links: readonly PlannedLink[];
  readonly entries: number;
  readonly bytes: number;
}

export async function materializeTree(
  fileSystem: FileSystem,
  objects: ObjectStore,
  tree: Tree,
  dest: string,
  options: MaterializeOptions = {},
): Promise<{ readonly entries: number; readonly bytes: number }> {
  options.signal?.throwIfAborted();
  const plan = await planTree(tree, options);
  await assertStored(objects, plan.files, options);
  const destination = prepare(fileSystem, dest);
  try {
    assertNoCollisions(fileSystem, destination.directory, plan, dest);
    using writing = new Materialization(fileSystem, objects, destination.directory, dest, options);
    await writing.run(plan, destination.sync);
  } catch (error) {
    destination.giveUp();
    throw error;
  } finally {
    destination.directory.close();
  }
  return { entries: plan.entries, bytes: plan.bytes };
}

// ── before the first write ──────────────────────────────────────────────────────────────────────────────────────────

async function planTree(tree: Tree, options: MaterializeOptions): Promise<Plan> {
  const { maxEntries = maxEntriesDefault, maxBytes = maxBytesDefault, gitLinks = "omit" } = options;
  const directories: PlannedDirectory[] = [];
  const files: PlannedFile[] = [];
  const links: PlannedLink[] = [];
  let entries = 0;
  let bytes = 0;
  for await (const { path, name, entry } of visitTree(tree, options)) {
    if (entry.kind === "omitted" || !isChosen(path, options.paths)) continue;
    if (name === ".git" && entry.kind !== "directory" && gitLinks === "omit") continue;
    if (++entries > maxEntries) throw beyond("maxEntries", maxEntries);
    if (entry.kind === "directory") directories.push({ path, name, mode: entry.mode });
    else if (entry.kind === "symlink") links.push({ path, name, target: entry.target });
    else {
      bytes += entry.size;
      if (bytes > maxBytes) throw beyond("maxBytes", maxBytes);
      files.push({ path, name, entry });
    }
  }
  return { directories, files, links, entries, bytes };
}

/** A chosen path, what lies below it, and the directories that lead to it. */
const isChosen = (path: WorkspacePath, paths: readonly WorkspacePath[] | undefined): boolean =>
  paths?.some((chosen) => isWithin(path, chosen) || isWithin(chosen, path)) ?? true;

async function assertStored(objects: ObjectStore, files: readonly PlannedFile[], options: MaterializeOptions) {
  const { signal } = options;
  const pace = pacer(signal);
  for (const { path, entry } of files) {
    await pace();
    if (await isPresent(objects, entry.id, entry.size, { signal, path })) continue;
    // Looks in the store itself, and throws the error that says which object is the matter.
    for (const id of await piecesOf(objects, entry, { signal, path })) {
      if (!(await objects.find(id, { signal }))) await objects.read(id, { signal, path });
    }
  }
}

function assertNoCollisions(fileSystem: FileSystem, destination: Directory, plan: Plan, dest: string): void {
  const siblings = new Map<WorkspacePath, string[]>();
  for (const { path, name } of [...plan.directories, ...plan.files, ...plan.links]) {
    const parent = parentOf(path);
    const names = siblings.get(parent);
    if (names) names.push(name);
    else siblings.set(parent, [name]);
  }
  const pairsUnder = (under: Folding) =>
    [...siblings].flatMap(([parent, names]) =>
      collisions(names, under).map(([a, b]) => [inParent(parent, a), inParent(parent, b)] as const),
    );
  // Almost no tree could collide anywhere, and then the volume need not be asked.
  if (pairsUnder({ case: true, composition: true }).length === 0) return;
  let folding: Folding;
  try {
    folding = probeFolding(fileSystem, destination);
  } catch (error) {
    throw unusable(dest, `it cannot be written to (${errnoOf(error) ?? "unknown"})`, error);
  }
  const pairs = pairsUnder(folding);
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

const inParent = (parent: WorkspacePath, name: string): string => (parent === "" ? name : `${parent}/${name}`);

function beyond(limit: "maxEntries" | "maxBytes", allowed: number): SnapshotError {
  return new SnapshotError(
    "snapshot.limit",
    `Cannot materialize: the snapshot exceeds ${limit} ${allowed}; nothing was written; raise the limit to allow it`,
    { limit, allowed },
  );
}

// ── the destination ─────────────────────────────────────────────────────────────────────────────────────────────────

interface Destination {
  readonly directory: Directory;
  /** Makes its own name durable. */
  readonly sync: () => void;
  /** Removes the directory if it was made here and is empty. */
  readonly giveUp: () => void;
}

function prepare(fileSystem: FileSystem, dest: string): Destination {
  const name = path.basename(dest);
  if (!path.isAbsolute(dest) || name === "") throw unusable(dest, "it is no absolute path of a directory");
  let parent: Directory;
  try {
    parent = Directory.open(fileSystem, path.dirname(dest));
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw unusable(dest, `its parent cannot be opened (${errnoOf(error) ?? ""})`, error);
  }
  let made = true;
  try {
    fileSystem.mkdir(parent.at(name), 0o777);
  } catch (error) {
    made = false;
    if (errnoOf(error) !== "EEXIST") {
      parent.close();
      throw unusable(dest, `it cannot be made (${errnoOf(error) ?? "unknown"})`, error);
    }
  }
  const giveUp = () => {
    try {
      if (made) fileSystem.rmdir(toFsPath(dest));
    } catch {
      // Something else is in it by now; it stays.
    }
  };
  try {
    const directory = parent.child(name);
    if (!made && directory.names().length > 0) {
      directory.close();
      throw notEmpty(dest);
    }
    const sync = () => {
      using above = Directory.open(fileSystem, path.dirname(dest));
      above.sync();
    };
    return { directory, sync, giveUp };
  } catch (error) {
    giveUp();
    if (isLooprigError(error)) throw error;
    if (["ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) throw notEmpty(dest, error);
    throw unusable(dest, `it cannot be opened (${errnoOf(error) ?? "unknown"})`, error);
  } finally {
    parent.close();
  }
}

function notEmpty(dest: string, cause?: unknown): SnapshotError {
  return new SnapshotError(
    "snapshot.dest_not_empty",
    `Cannot materialize into "${displayName(dest)}": something is there; wanted an absent or empty directory; nothing was written`,
    { dest },
    { cause },
  );
}

function unusable(dest: string, reason: string, cause?: unknown): SnapshotError {
  return new SnapshotError(
    "snapshot.dest_unusable",
    `Cannot materialize into "${displayName(dest)}": ${reason}; nothing was written`,
    { dest, reason },
    { cause },
  );
}

// ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

class Materialization implements Disposable {
  readonly #fs: FileSystem;
  readonly #objects: ObjectStore;
  readonly #root: DirectoryPlace;
  readonly #dest: string;
  readonly #signal: AbortSignal | undefined;
  readonly #pace: () => Promise<void> | undefined;
  readonly #open: OpenDirectories;
  readonly #places = new Map<WorkspacePath, DirectoryPlace>();
  /** What was made, in order; undone in reverse. */
  readonly #made: { readonly parent: DirectoryPlace; readonly name: string; readonly directory: boolean }[] = [];
  readonly #syncs = new Set<Promise<void>>();
  #syncFailure: unknown;

  constructor(
    fileSystem: FileSystem,
    objects: ObjectStore,
    destination: Directory,
    dest: string,
    { signal }: MaterializeOptions,
  ) {
    this.#fs = fileSystem;
    this.#objects = objects;
    this.#dest = dest;
    this.#signal = signal;
    this.#pace = pacer(signal);
    this.#open = new OpenDirectories(destination);
    this.#root = { parent: undefined, name: "", dev: destination.dev, ino: destination.ino };
    this.#places.set("" as WorkspacePath, this.#root);
  }

  /** `finish` makes the destination's own name durable. */
  async run(plan: Plan, finish: () => void): Promise<void> {
    let at: WorkspacePath | undefined;
    let operation = "mkdir";
    try {
      for (const directory of plan.directories) {
        at = directory.path;
        this.#makeDirectory(directory);
        await this.#pace();
      }
      operation = "symlink";
      for (const link of plan.links) {
        at = link.path;
        this.#makeLink(link);
        await this.#pace();
      }
      operation = "write";
      const files = this.#inStoredOrder(plan.files);
      for (const [i, file] of files.entries()) {
        at = file.path;
        const following = files[i + 1];
        if (following) this.#objects.prefetch(following.entry.id);
        await this.#writeFile(file);
        await this.#pace();
      }
      operation = "chmod";
      for (const directory of plan.directories.toReversed()) {
        at = directory.path;
        await this.#finishDirectory(directory.path, directory.mode);
      }
      at = "" as WorkspacePath;
      await this.#finishDirectory(at, undefined);
      operation = "fsync";
      await this.#drain();
      finish();
    } catch (error) {
      await Promise.allSettled(this.#syncs);
      this.#remove(plan);
      if (errnoOf(error) === undefined || isLooprigError(error) || this.#signal?.aborted) throw error;
      throw this.#failed(at ?? ("" as WorkspacePath), operation, error);
    }
  }

  [Symbol.dispose](): void {
    this.#open[Symbol.dispose]();
  }

  #makeDirectory({ path, name }: PlannedDirectory): void {
    const parent = this.#placeOf(parentOf(path));
    const handle = this.#open.get(parent);
    this.#fs.mkdir(handle.at(name), 0o700);
    this.#made.push({ parent, name, directory: true });
    const { dev, ino } = handle.lstat(name);
    this.#places.set(path, { parent, name, dev, ino });
  }

  #makeLink({ path, name, target }: PlannedLink): void {
    const parent = this.#placeOf(parentOf(path));
    this.#fs.symlink(toFsPath(target), this.#open.get(parent).at(name));
    this.#made.push({ parent, name, directory: false });
  }

  async #writeFile({ path, name, entry }: PlannedFile): Promise<void> {
    const parent = this.#placeOf(parentOf(path));
    const fd = this.#fs.open(this.#open.get(parent).at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    this.#made.push({ parent, name, directory: false });
    let handedOver = false;
    try {
      for await (const piece of readContent(this.#objects, entry, { signal: this.#signal, path })) {
        writeAll(this.#fs, fd, piece);
        await this.#pace();
      }
      // Exactly the mode, whatever the umask; never set-id bits, which a tree does not hold.
      this.#fs.fchmod(fd, entry.mode);
      handedOver = true;
      await this.#syncAndClose(fd);
    } finally {
      if (!handedOver) this.#fs.close(fd);
    }
  }

  async #finishDirectory(path: WorkspacePath, mode: number | undefined): Promise<void> {
    const fd = this.#fs.open(this.#open.get(this.#placeOf(path)).self(), O_RDONLY | O_DIRECTORY);
    let handedOver = false;
    try {
      if (mode !== undefined) this.#fs.fchmod(fd, mode);
      handedOver = true;
      await this.#syncAndClose(fd);
    } finally {
      if (!handedOver) this.#fs.close(fd);
    }
    await this.#pace();
  }

  /** Syncs beside the next writes: a file system gathers concurrent syncs into one commit of its journal. */
  async #syncAndClose(fd: number): Promise<void> {
    const sync = this.#fs
      .fsyncLater(fd)
      .catch((error: unknown) => {
        // Some file systems cannot sync a directory; they order names themselves.
        if (errnoOf(error) !== "EINVAL") this.#syncFailure ??= error;
      })
      .finally(() => {
        this.#fs.close(fd);
        this.#syncs.delete(sync);
      });
    this.#syncs.add(sync);
    if (this.#syncs.size >= syncsMax) await Promise.race(this.#syncs);
    if (this.#syncFailure !== undefined) throw this.#syncFailure as Error;
  }

  async #drain(): Promise<void> {
    await Promise.all(this.#syncs);
    if (this.#syncFailure !== undefined) throw this.#syncFailure as Error;
  }

  #inStoredOrder(files: readonly PlannedFile[]): readonly PlannedFile[] {
    const place = ({ entry }: PlannedFile) => this.#objects.place(entry.id) ?? -1;
    return [...files].sort((a, b) => place(a) - place(b));
  }

  #placeOf(path: WorkspacePath): DirectoryPlace {
    return this.#places.get(path) as DirectoryPlace;
  }

  /** Takes back what was made. What cannot be removed, because someone else put something there, stays. */
  #remove(plan: Plan): void {
    for (const { path } of plan.directories) {
      const place = this.#places.get(path);
      if (place) this.#attempt(() => this.#fs.chmod(this.#open.get(place).self(), 0o700));
    }
    for (const { parent, name, directory } of this.#made.toReversed()) {
      this.#attempt(() => {
        const at = this.#open.get(parent).at(name);
        if (directory) this.#fs.rmdir(at);
        else this.#fs.unlink(at);
      });
    }
  }

  #attempt(action: () => void): void {
    try {
      action();
    } catch {
      // The failure that led here is the one that is reported.
    }
  }

  #failed(path: WorkspacePath, operation: string, error: unknown): SnapshotError {
    const errno = errnoOf(error);
    return new SnapshotError(
      "snapshot.materialize_failed",
      `Cannot materialize "${displayName(path === "" ? "." : path)}" into "${displayName(this.#dest)}": ${operation} failed (${errno ?? "unknown"}); what was written was removed again`,
      { dest: this.#dest, path, operation, ...(errno === undefined ? {} : { errno }) },
      { cause: error },
    );
  }
}
