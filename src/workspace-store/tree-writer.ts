/**
 * Writes a plan into the opened destination, and takes it back when that fails.
 *
 * 1. Directories come first, parents before children; then links; then files in the order their bytes are stored in.
 * 2. A mode that would keep us out of a directory, or let others in while it is filled, is given last, deepest first.
 * 3. What was made is at any moment a beginning of each of the three lists, in their order; nothing else is ever removed.
 * 4. Durable: files are synced once all are written, because a file system gathers what it writes back then, and
 *    directories after them; the destination's own name comes last.
 */
import { constants } from "node:fs";
import { displayName, errnoOf, isLooprigError, pacer, SnapshotError, toFsPath, writeAll } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import type { MaterializeOptions } from "./contracts.js";
import { LargeCopies } from "./large-copies.js";
import { helperFor, loadedBlocks, prepareHelperFor } from "./loaded-blocks.js";
import { pathOf } from "./materialize-plan.js";
import type { Plan, PlannedDirectory, PlannedFile, PlannedLink } from "./materialize-plan.js";
import { objectDamaged } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { pieceBytes } from "./object-ids.js";
import { DirectoryReplacedError, OpenDirectories } from "./open-directories.js";
import type { DirectoryPlace } from "./open-directories.js";
import { writeLargeContent } from "./sparse-content.js";
import { inStoredOrder } from "./stored-order.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_DIRECTORY } = constants;

/** Syncs under way; each holds a descriptor. */
const syncsMax = 64;
const permissionBits = 0o7777;
const ownerRead = 0o400;

export class TreeWriter implements Disposable {
  readonly #fs: FileSystem;
  readonly #objects: ObjectStore;
  readonly #dest: string;
  readonly #durable: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #slice: () => Promise<void> | undefined;
  readonly #open: OpenDirectories;
  readonly #copies: LargeCopies;
  /** By `PlannedDirectory.index`: those that are made. */
  readonly #places: DirectoryPlace[];
  /** Directories whose mode comes last. */
  readonly #unfinished = new Set<PlannedDirectory>();
  #links = 0;
  readonly #files: PlannedFile[] = [];
  /** What a new file of a mode gets, found out anew after each wait: the umask may have changed meanwhile. */
  readonly #modesGiven = new Map<number, number>();
  readonly #syncs = new Set<Promise<void>>();
  #syncFailure: unknown;

  constructor(
    fileSystem: FileSystem,
    objects: ObjectStore,
    destination: Directory,
    dest: string,
    { signal, durable = false }: MaterializeOptions,
  ) {
    this.#fs = fileSystem;
    this.#objects = objects;
    this.#dest = dest;
    this.#durable = durable;
    this.#signal = signal;
    this.#slice = pacer(signal);
    this.#open = new OpenDirectories(destination);
    this.#copies = new LargeCopies(fileSystem);
    this.#places = [{ parent: undefined, name: "", dev: destination.dev, ino: destination.ino }];
  }

  /** `finish` makes the destination's own name durable. */
  async write(plan: Plan, finish: () => void): Promise<void> {
    let at: { readonly parent: PlannedDirectory; readonly name: string } | undefined;
    let operation = "mkdir";
    prepareHelperFor(plan.bytes);
    try {
      for (const directory of plan.directories) {
        if (directory.parent === undefined) continue;
        at = { parent: directory.parent, name: directory.name };
        this.#makeDirectory(directory, directory.parent);
        await this.#pace();
      }
      operation = "symlink";
      for (const link of plan.links) {
        at = link;
        this.#makeLink(link);
        await this.#pace();
      }
      operation = "write";
      const blocks = await inStoredOrder(this.#objects, plan.files, () => this.#pace());
      const helper = helperFor(plan.bytes);
      for await (const { files, bytesOf } of loadedBlocks(this.#objects, blocks, helper, this.#signal)) {
        this.#modesGiven.clear();
        for (const [i, file] of files.entries()) {
          at = file;
          await this.#writeFile(file, bytesOf(file), files[i + 1]);
          await this.#pace();
        }
      }
      if (this.#durable) {
        operation = "fsync";
        for (const file of this.#files) {
          at = file;
          // One that its own mode hides from us was synced when it was written.
          if (file.entry.mode & ownerRead) await this.#syncFile(file);
        }
        await this.#drain();
      }
      operation = "chmod";
      for (const directory of [...(this.#durable ? plan.directories : this.#unfinished)].reverse()) {
        at = directory.parent && { parent: directory.parent, name: directory.name };
        await this.#finishDirectory(directory);
        await this.#pace();
      }
      at = undefined;
      operation = "fsync";
      await this.#drain();
      if (this.#durable) finish();
    } catch (error) {
      await Promise.allSettled(this.#syncs);
      this.#copies.close();
      await this.#remove(plan);
      if (this.#signal?.aborted && error === this.#signal.reason) throw error;
      if (isLooprigError(error) || (errnoOf(error) === undefined && !(error instanceof DirectoryReplacedError))) {
        throw error;
      }
      throw this.#failed(at === undefined ? undefined : pathOf(at), operation, error);
    }
  }

  [Symbol.dispose](): void {
    this.#copies.close();
    this.#open[Symbol.dispose]();
  }

  #pace(): Promise<void> | undefined {
    const paused = this.#slice();
    if (paused !== undefined) this.#modesGiven.clear();
    return paused;
  }

  #directory(directory: PlannedDirectory): Directory {
    return this.#open.get(this.#places[directory.index] as DirectoryPlace);
  }

  #makeDirectory(directory: PlannedDirectory, above: PlannedDirectory): void {
    const { name, mode, index } = directory;
    const handle = this.#directory(above);
    const isGivenNow = (mode & 0o722) === 0o700;
    this.#fs.mkdir(handle.at(name), isGivenNow ? mode : 0o700);
    const { dev, ino, mode: given } = handle.lstat(name);
    this.#places[index] = { parent: this.#places[above.index], name, dev, ino };
    if ((Number(given) & permissionBits) !== mode) this.#unfinished.add(directory);
  }

  #makeLink({ parent, name, target }: PlannedLink): void {
    this.#fs.symlink(toFsPath(target), this.#directory(parent).at(name));
    this.#links++;
  }

  async #writeFile(file: PlannedFile, loaded: Buffer | undefined, next: PlannedFile | undefined): Promise<void> {
    const { name, entry } = file;
    const isLarge = entry.size > pieceBytes;
    if (isLarge && (await this.#copies.clone(entry, () => this.#directory(file.parent).at(name)))) {
      this.#files.push(file);
      return;
    }
    // Read before the file is made, so that small ones take no wait while they are open.
    const bytes = isLarge ? undefined : sized(file, loaded ?? (await this.#read(file)));
    const fd = this.#fs.open(
      this.#directory(file.parent).at(name),
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
      entry.mode,
    );
    this.#files.push(file);
    let handedOver = false;
    try {
      // Ext4, XFS and Btrfs take a file that is cut to nothing for one that is being replaced, and begin to write it back when
      // it is closed: most of it is done by the time it is synced.
      if (this.#durable) this.#fs.ftruncate(fd, 0);
      if (bytes !== undefined) writeAll(this.#fs, fd, bytes);
      else {
        const pace = () => this.#pace();
        const options = { signal: this.#signal, path: pathOf(file), pace };
        await writeLargeContent(this.#fs, fd, this.#objects, entry, options);
      }
      this.#settleMode(fd, entry.mode, isLarge);
      if (isLarge && next !== undefined && this.#copies.keep(fd, entry, next.entry)) {
        handedOver = true;
      } else if (this.#durable && (entry.mode & ownerRead) === 0) {
        handedOver = true;
        await this.#syncAndClose(fd);
      }
    } finally {
      if (!handedOver) this.#fs.close(fd);
    }
  }

  async #read(file: PlannedFile): Promise<Buffer> {
    const bytes = await this.#objects.read(file.entry.id, { signal: this.#signal, path: pathOf(file) });
    this.#modesGiven.clear();
    return bytes;
  }

  /** Exactly the mode, whatever the umask or a default ACL; never set-id bits, which a tree does not hold. */
  #settleMode(fd: number, mode: number, waited: boolean): void {
    let given = waited ? undefined : this.#modesGiven.get(mode);
    if (given === undefined) {
      given = Number(this.#fs.fstat(fd).mode) & permissionBits;
      if (!waited) this.#modesGiven.set(mode, given);
    }
    if (given !== mode) this.#fs.fchmod(fd, mode);
  }

  async #syncFile({ parent, name }: PlannedFile): Promise<void> {
    await this.#syncAndClose(this.#fs.open(this.#directory(parent).at(name), O_RDONLY | O_NOFOLLOW));
    await this.#pace();
  }

  async #finishDirectory(directory: PlannedDirectory): Promise<void> {
    const self = this.#directory(directory).self();
    if (!this.#durable) {
      this.#fs.chmod(self, directory.mode);
      return;
    }
    const fd = this.#fs.open(self, O_RDONLY | O_DIRECTORY);
    let handedOver = false;
    try {
      if (this.#unfinished.has(directory)) this.#fs.fchmod(fd, directory.mode);
      handedOver = true;
      await this.#syncAndClose(fd);
    } finally {
      if (!handedOver) this.#fs.close(fd);
    }
  }

  /** Syncs beside the next ones: a file system gathers concurrent syncs into one commit of its journal. */
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

  /** Takes back what was made, however much. What cannot be removed, because someone else put something there, stays. */
  async #remove({ directories, links }: Plan): Promise<void> {
    const pace = pacer(undefined);
    const made = directories.slice(1, this.#places.length);
    for (const directory of made) {
      await pace();
      if ((directory.mode & 0o700) !== 0o700)
        this.#attempt(() => this.#fs.chmod(this.#directory(directory).self(), 0o700));
    }
    for (const entries of [this.#files, links.slice(0, this.#links)]) {
      for (const { parent, name } of entries) {
        await pace();
        this.#attempt(() => this.#fs.unlink(this.#directory(parent).at(name)));
      }
    }
    for (const { parent, name, index } of made.reverse()) {
      await pace();
      if (parent === undefined) continue;
      this.#attempt(() => {
        const handle = this.#directory(parent);
        const { dev, ino } = handle.lstat(name);
        const place = this.#places[index];
        if (dev === place?.dev && ino === place.ino) this.#fs.rmdir(handle.at(name));
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

  #failed(path: WorkspacePath | undefined, operation: string, error: unknown): SnapshotError {
    const errno = errnoOf(error);
    const what = errno ?? (error as Error).message;
    return new SnapshotError(
      "snapshot.materialize_failed",
      `Cannot materialize "${displayName(path ?? ".")}" into "${displayName(this.#dest)}": ${operation} failed (${what}); what was written was removed again`,
      { dest: this.#dest, path: path ?? "", operation, ...(errno === undefined ? {} : { errno }) },
      { cause: error },
    );
  }
}

/** The bytes of a small file, which are as many as its entry says. */
function sized(file: PlannedFile, bytes: Buffer): Buffer {
  if (bytes.length !== file.entry.size) throw objectDamaged(file.entry.id, pathOf(file));
  return bytes;
}
