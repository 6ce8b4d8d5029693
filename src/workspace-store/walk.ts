/**
 * The look at a tree: every name and what it is, no content. A quick look (`look-lane.ts`) says which rows of the table are
 * as they were; this file owns the careful look at everything else, and classification: which kind, which omission.
 *
 * 1. Directories are listed and links are read relative to opened directories; nothing is followed, nothing but directories
 *    is opened. A directory counts only if it is the one that was seen in its parent.
 * 2. A name that vanishes between listing and looking is absent. One that cannot be looked at is `unreadable`, never an
 *    error of the whole walk; only exhaustion of our own means (descriptors, memory) is.
 * 3. An abort leaves the table with each directory either as it was or as it is.
 */
import { compareNames, errnoOf, joinPath, nameToBytes, StorageError, toFsPath } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import type { PathRules } from "./capture-rules.js";
import type { OmissionClass } from "./contracts.js";
import { Prefixes, isAsInRow, isEscaped, lookAround, lookCounters } from "./look-lane.js";
import type { LookJob } from "./look-lane.js";
import { isHelperReady, prepareHelpers, takeHelpers } from "./lanes.js";
import { isDirectory, isLink, isRegular, isSettled, permissionMask } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";
import { NotThatDirectoryError, TableDirectories } from "./table-directories.js";
import { omissionClasses } from "./tree-codec.js";
import { directoryFlags, kinds, looks, rowBytes, rowFlags, RowList } from "./tree-table.js";
import type { TreeTable } from "./tree-table.js";

export type Found =
  | { readonly kind: "file" | "directory"; readonly look: Look }
  | { readonly kind: "symlink"; readonly look: Look; readonly target: Buffer }
  | { readonly kind: "omitted"; readonly class: OmissionClass; readonly look?: Look | undefined };

export interface WalkOptions {
  readonly fileSystem: FileSystem;
  readonly looker: Looker;
  /** Milliseconds of the clock that file stamps are taken from. */
  readonly now: () => number;
  readonly rules: PathRules;
  /** `identityKey` of directories that are never captured (B2). */
  readonly ownDirectories: ReadonlySet<string>;
  readonly ownPaths: ReadonlySet<WorkspacePath>;
  /** Whether helper threads may take part: they see the real file system and the real clock only. */
  readonly threads: boolean;
  readonly signal: AbortSignal | undefined;
  /** Yields to the event loop, reports progress, throws on abort. */
  readonly pace: () => Promise<void> | undefined;
}

export const identityKey = (dev: bigint | number, ino: bigint | number): string => `${Number(dev)}:${Number(ino)}`;

/** How often a name that changes its kind while it is looked at is looked at again. */
const looksMax = 3;
const replacementsMax = 3;
/** From so many entries on a ready helper is worth the messages, and starting one worth its 70 ms. */
const entriesForHelper = 4000;
const entriesForNewHelper = 60_000;
/** So many new files make it likely that there is much to read. */
const filesForReading = 1500;

/** File systems that change a directory's stamps with every name in it; elsewhere directories are listed every time. */
const stampedTypes = new Set([0xef53, 0x01021994, 0x58465342, 0x9123683e, 0x794c7630, 0xf2f52010, 0x2fc12fc1]);

export class Walk implements Disposable {
  readonly #table: TreeTable;
  readonly #root: Directory;
  readonly #rootPath: string;
  readonly #options: WalkOptions;
  readonly #trustsListings: boolean;
  readonly #prefixes: Prefixes;
  readonly #replacements = new Map<string, number>();
  readonly directories: TableDirectories;
  readonly #counters = new Int32Array(new SharedArrayBuffer(12));
  readonly #list = new RowList();
  #listed = 0;

  constructor(table: TreeTable, root: Directory, rootPath: string, options: WalkOptions) {
    this.#table = table;
    this.#root = root;
    this.#rootPath = rootPath;
    this.#options = options;
    this.directories = new TableDirectories(table, root);
    this.#prefixes = new Prefixes(table, rootPath);
    this.#trustsListings = stampedTypes.has(options.fileSystem.statfs(root.self()).type);
  }

  [Symbol.dispose](): void {
    this.directories[Symbol.dispose]();
  }

  /** Entries looked at so far. */
  get seen(): number {
    return (this.#counters[lookCounters.seen] as number) + this.#listed;
  }

  /** Looks at everything below the root. */
  async run(): Promise<void> {
    this.#table.beginCapture();
    this.#distrustOwn();
    if (this.#table.liveDirectories > 1 || this.#table.rowCount(0) > 0) await this.#lookAround();
    await this.settle();
  }

  /** Looks with care at whatever is not known to be as it was, directories found on the way included. */
  async settle(): Promise<void> {
    const table = this.#table;
    // New directories have larger numbers, so the loop comes to them.
    for (let directory = 0; directory < table.directories; directory++) {
      if (!table.has(directory)) continue;
      if (table.directoryLook(directory) !== looks.same) {
        await this.#relist(directory);
        await this.#options.pace();
      } else if (this.#hasOpenRows(directory)) await this.#settleRows(directory);
    }
  }

  /** The careful look at one name. Undefined when nothing stands there. */
  look(directory: number, name: string): Found | undefined {
    let handle: Directory;
    try {
      handle = this.directories.get(directory);
    } catch (error) {
      // The directory itself went away or was replaced, so the name no longer means what it meant.
      if (error instanceof NotThatDirectoryError) return { kind: "omitted", class: "unstable" };
      if (errnoOf(error) === "ENOENT") return undefined;
      assertOwnMeans(error, this.#pathIn(directory, name));
      return { kind: "omitted", class: "unstable" };
    }
    return this.#lookIn(handle, directory, name, handle.at(name));
  }

  /** Puts what was found, or nothing, in the place of a row. A directory is listed by the next `settle`. */
  replace(directory: number, name: string, found: Found | undefined): void {
    const table = this.#table;
    const list = new RowList();
    const children: [index: number, child: number | Look][] = [];
    const count = table.rowCount(directory);
    for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
      if (table.name(directory, row) !== name) {
        list.copyRow(table, directory, row);
        continue;
      }
      if (table.kind(row) === kinds.directory) table.remove(table.extra(row));
      if (found === undefined) continue;
      if (found.kind === "directory") children.push([list.count, found.look]);
      addFound(list, name, found, this.#options.now());
    }
    this.#setRows(directory, list, children);
  }

  /**
   * A directory that cannot be opened any more, or one above it: looks again at the uppermost such name in its parent.
   * Throws for the root.
   */
  lose(directory: number): void {
    const lost = this.#uppermostLost(directory) ?? directory;
    if (lost === 0) throw new NotThatDirectoryError(0);
    const parent = this.#table.parent(lost);
    this.lookAgain(parent, this.#table.nameOfDirectory(lost));
  }

  /** Passes on what says nothing of the directory: whatever opening one throws that is there and ours to open. */
  assertLosable(error: unknown, directory: number): void {
    if (error instanceof NotThatDirectoryError) return;
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES"].includes(errnoOf(error) ?? "")) return;
    assertOwnMeans(error, this.#table.pathOf(directory));
    throw error;
  }

  /** The row of a name. */
  rowOf(directory: number, name: string): number | undefined {
    const count = this.#table.rowCount(directory);
    for (let i = 0, row = this.#table.rows(directory); i < count; i++, row += rowBytes) {
      if (this.#table.name(directory, row) === name) return row;
    }
    return undefined;
  }

  /** Looks again at a name that was not what it had been taken for; after some times it is `unstable`. */
  lookAgain(directory: number, name: string): void {
    const path = this.#pathIn(directory, name);
    const count = (this.#replacements.get(path) ?? 0) + 1;
    this.#replacements.set(path, count);
    const found: Found | undefined =
      count > replacementsMax ? { kind: "omitted", class: "unstable" } : this.look(directory, name);
    this.replace(directory, name, found);
  }

  // ── the quick look ────────────────────────────────────────────────────────────────────────────────────────────────

  async #lookAround(): Promise<void> {
    const { looker, pace, threads, signal } = this.#options;
    const counters = this.#counters;
    const job: LookJob = {
      root: this.#rootPath,
      dev: Number(this.#root.dev),
      counters: counters.buffer,
    };
    const entries = this.#entries();
    if (threads && entries >= entriesForNewHelper) prepareHelpers();
    const helped = threads && entries >= (isHelperReady() ? entriesForHelper : entriesForNewHelper);
    const request = { kind: "look", table: this.#table.share(), job } as const;
    const others = (helped ? takeHelpers() : []).map((helper) => helper.run(request));
    try {
      const lane = lookAround(this.#table, looker, job);
      while (lane.next().done !== true) await pace();
    } finally {
      if (signal?.aborted) Atomics.store(counters, lookCounters.stop, 1);
      await Promise.all(others);
    }
    signal?.throwIfAborted();
  }

  #entries(): number {
    let count = 0;
    for (let directory = 0; directory < this.#table.directories; directory++) {
      if (this.#table.has(directory)) count += this.#table.rowCount(directory);
    }
    return count;
  }

  /** What is ours for the moment differs from capture to capture, so what was known of its surroundings does not hold. */
  #distrustOwn(): void {
    const { ownPaths, ownDirectories } = this.#options;
    if (ownPaths.size === 0 && ownDirectories.size === 0) return;
    const table = this.#table;
    const parents = new Set([...ownPaths].map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/")))));
    for (let directory = 0; directory < table.directories; directory++) {
      if (!table.has(directory)) continue;
      const isOwn = ownDirectories.has(identityKey(this.#root.dev, table.directoryIno(directory)));
      if (isOwn && directory !== 0) table.setDirectoryFlags(table.parent(directory), 0, directoryFlags.listed);
      if (isOwn) table.setDirectoryStamps(directory, 0, 0, 0);
      if (parents.size > 0 && parents.has(table.pathOf(directory))) {
        table.setDirectoryFlags(directory, 0, directoryFlags.listed);
      }
    }
  }

  // ── the careful look ──────────────────────────────────────────────────────────────────────────────────────────────

  #hasOpenRows(directory: number): boolean {
    const table = this.#table;
    for (let row = table.rows(directory), left = table.rowCount(directory); left > 0; row += rowBytes, left--) {
      if (table.look(row) !== looks.same && table.kind(row) !== kinds.directory) return true;
    }
    return false;
  }

  async #settleRows(directory: number): Promise<void> {
    const table = this.#table;
    for (let i = 0; i < table.rowCount(directory); i++) {
      const row = table.rows(directory) + i * rowBytes;
      const kind = table.kind(row);
      if (table.look(row) === looks.same || kind === kinds.directory) continue;
      const name = table.name(directory, row);
      const found = this.look(directory, name);
      if (found?.kind === "file" && kind === kinds.file) {
        if (!this.#isKnown(row, found.look)) this.#renew(directory, row, found.look);
        table.setLook(row, looks.same);
      } else {
        this.replace(directory, name, found);
        // The row may be gone, or a directory that is listed in its turn.
        if (found === undefined) i--;
      }
      await this.#options.pace();
    }
  }

  /** A file of which only the stamps are new. */
  #renew(directory: number, row: number, { size, mtimeMs, ctimeMs, ino, mode }: Look): void {
    const table = this.#table;
    table.setStamps(row, size, mtimeMs, ctimeMs, ino);
    table.setMode(row, mode & permissionMask);
    table.setFlags(row, rowFlags.unread, rowFlags.trusted | rowFlags.identified | rowFlags.present);
    table.setDirectoryFlags(directory, directoryFlags.unsaved, directoryFlags.encoded | directoryFlags.present);
  }

  #isKnown(row: number, found: Look): boolean {
    return (this.#table.flags(row) & rowFlags.trusted) !== 0 && isAsInRow(this.#table, row, found);
  }

  /** Lists a directory, or finds out what stands there instead. */
  async #relist(directory: number): Promise<void> {
    const outcome = await this.#listAnew(directory);
    if (outcome === "done") return;
    const parent = this.#table.parent(directory);
    const name = this.#table.nameOfDirectory(directory);
    if (outcome === "unreadable") this.replace(parent, name, { kind: "omitted", class: "unreadable" });
    else if (this.#uppermostLost(parent) !== undefined) this.lose(parent);
    else this.lookAgain(parent, name);
  }

  async #listAnew(directory: number): Promise<"done" | "lost" | "unreadable"> {
    const { now, ownPaths, looker, pace } = this.#options;
    const table = this.#table;
    const lookedAt = now();
    let handle: Directory;
    let names: string[];
    let before: Look | undefined;
    try {
      handle = this.directories.get(directory);
      before = looker.at(handle.self());
      names = handle.names();
    } catch (error) {
      if (directory === 0) throw error;
      if (error instanceof NotThatDirectoryError) return "lost";
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) return "lost";
      assertOwnMeans(error, table.pathOf(directory));
      return "unreadable";
    }
    if (before === undefined) {
      if (directory === 0) throw new NotThatDirectoryError(0);
      return "lost";
    }
    const known = this.#rowsByName(directory);
    const path = table.pathOf(directory);
    const prefix = this.#prefixes.of(directory);
    const list = this.#list;
    const children: [index: number, child: number | Look][] = [];
    let ownSkipped = false;
    list.clear();
    names.sort(compareNames);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      if (ownPaths.size > 0 && ownPaths.has(joinPath(path as WorkspacePath, name))) {
        ownSkipped = true;
        continue;
      }
      // The handle stays open throughout: nothing else of this walk opens directories meanwhile.
      this.#addName(list, children, directory, name, known.get(name), () =>
        this.#lookIn(handle, directory, name, prefix === undefined ? handle.at(name) : toFsPath(prefix + name)),
      );
      if (i % 64 === 63) await pace();
    }
    this.#listed += names.length;
    if (this.#options.threads && this.#listed > filesForReading) prepareHelpers();
    if (directory !== 0) this.#noteMode(directory, before.mode & permissionMask);
    this.#setRows(directory, list, children);
    table.setDirectoryStamps(directory, before.ino, before.mtimeMs, before.ctimeMs);
    const isTrusted = this.#trustsListings && !ownSkipped && isSettled({ ...before, size: 0 }, lookedAt);
    table.setDirectoryFlags(directory, isTrusted ? directoryFlags.listed : 0, isTrusted ? 0 : directoryFlags.listed);
    table.setDirectoryLook(directory, looks.same);
    return "done";
  }

  /** One name of a listing: the row that is known of it, where that still holds, or what a look finds. */
  #addName(
    list: RowList,
    children: [index: number, child: number | Look][],
    directory: number,
    name: string,
    row: number | undefined,
    look: () => Found | undefined,
  ): void {
    const table = this.#table;
    const child = row !== undefined && table.kind(row) === kinds.directory ? table.extra(row) : undefined;
    if (row !== undefined && (child === undefined ? table.look(row) : table.directoryLook(child)) === looks.same) {
      if (child !== undefined) children.push([list.count, child]);
      list.copyRow(table, directory, row);
      return;
    }
    const found = look();
    if (found === undefined) return;
    if (
      row !== undefined &&
      child !== undefined &&
      found.kind === "directory" &&
      found.look.ino === table.directoryIno(child)
    ) {
      children.push([list.count, child]);
      list.setMode(list.copyRow(table, directory, row), found.look.mode & permissionMask);
    } else if (
      row !== undefined &&
      found.kind === "file" &&
      table.kind(row) === kinds.file &&
      this.#isKnown(row, found.look)
    ) {
      list.setLook(list.copyRow(table, directory, row), looks.same);
    } else {
      if (found.kind === "directory") children.push([list.count, found.look]);
      addFound(list, name, found, this.#options.now());
    }
  }

  #rowsByName(directory: number): ReadonlyMap<string, number> {
    const rows = new Map<string, number>();
    const count = this.#table.rowCount(directory);
    for (let i = 0, row = this.#table.rows(directory); i < count; i++, row += rowBytes) {
      rows.set(this.#table.name(directory, row), row);
    }
    return rows;
  }

  /** Numbers the new directories among the rows, forgets those that are no longer there, and puts the rows in place. */
  #setRows(
    directory: number,
    list: RowList,
    children: readonly (readonly [index: number, child: number | Look])[],
  ): void {
    const table = this.#table;
    const kept = new Set<number>();
    for (const [, child] of children) if (typeof child === "number") kept.add(child);
    for (let i = 0; i < list.count; i++) {
      if (list.kind(i) === kinds.directory) kept.add(list.extra(i));
    }
    for (let row = table.rows(directory), left = table.rowCount(directory); left > 0; row += rowBytes, left--) {
      if (table.kind(row) === kinds.directory && !kept.has(table.extra(row))) table.remove(table.extra(row));
    }
    for (const [index, child] of children) {
      if (typeof child === "number") continue;
      const number = table.addDirectory(directory, index);
      table.setDirectoryStamps(number, child.ino, 0, 0);
      list.setExtra(index * rowBytes, number);
    }
    table.setRows(directory, list);
  }

  #noteMode(directory: number, mode: number): void {
    const row = this.#table.rowOfDirectory(directory);
    if (this.#table.mode(row) === mode) return;
    this.#table.setMode(row, mode);
    const parent = this.#table.parent(directory);
    this.#table.setDirectoryFlags(parent, directoryFlags.unsaved, directoryFlags.encoded | directoryFlags.present);
  }

  /** The uppermost directory of the way to `directory`, itself included, that cannot be opened; undefined when all can. */
  #uppermostLost(directory: number): number | undefined {
    let lost: number | undefined;
    for (let at = directory; at !== 0; at = this.#table.parent(at)) {
      try {
        this.directories.get(at);
        break;
      } catch (error) {
        if (!(error instanceof NotThatDirectoryError)) assertOwnMeans(error, this.#table.pathOf(at));
        lost = at;
      }
    }
    return lost;
  }

  #lookIn(handle: Directory, directory: number, name: string, path: string | Buffer): Found | undefined {
    for (let attempts = 0; attempts < looksMax; attempts++) {
      try {
        const look = this.#options.looker.at(path);
        return look === undefined ? undefined : this.#classify(handle, directory, name, look);
      } catch (error) {
        const errno = errnoOf(error);
        if (errno === "ENOENT") return undefined;
        // Not a link any more when it was read: look again.
        if (errno === "EINVAL") continue;
        assertOwnMeans(error, this.#pathIn(directory, name));
        return { kind: "omitted", class: "unreadable" };
      }
    }
    return { kind: "omitted", class: "unstable" };
  }

  #classify(handle: Directory, directory: number, name: string, look: Look): Found {
    const { rules, ownDirectories, fileSystem } = this.#options;
    const isBranch = isDirectory(look.mode);
    const omission = rules.omission(() => this.#pathIn(directory, name), name, isBranch);
    if (omission !== undefined) return { kind: "omitted", class: omission };
    if (isBranch) {
      if (ownDirectories.has(identityKey(look.dev, look.ino))) return { kind: "omitted", class: "excluded", look };
      // Only directories tell: overlay file systems give files the device of a layer below.
      if (look.dev !== Number(this.#root.dev)) return { kind: "omitted", class: "mount" };
      return { kind: "directory", look };
    }
    if (isRegular(look.mode)) {
      const overSize = rules.maxFileBytes !== undefined && look.size > rules.maxFileBytes;
      return overSize ? { kind: "omitted", class: "over-size", look } : { kind: "file", look };
    }
    if (isLink(look.mode)) return { kind: "symlink", look, target: fileSystem.readlink(handle.at(name)) };
    return { kind: "omitted", class: "special" };
  }

  #pathIn(directory: number, name: string): WorkspacePath {
    return joinPath(this.#table.pathOf(directory) as WorkspacePath, name);
  }
}

/** Classes that are looked at anew each time: nothing in the stamps of the name would show that they no longer hold. */
const passing: ReadonlySet<OmissionClass> = new Set(["mount", "unreadable", "unstable"]);

function addFound(list: RowList, name: string, found: Found, lookedAt: number): void {
  const isRaw = isEscaped(name);
  const bytes = isRaw ? nameToBytes(name) : Buffer.from(name);
  const row = list.add(kinds[found.kind], bytes, isRaw, found.kind === "symlink" ? found.target : undefined);
  const { look } = found;
  list.setLook(row, looks.same);
  if (look !== undefined) {
    list.setStamps(row, look.size, look.mtimeMs, look.ctimeMs, look.ino);
    list.setMode(row, look.mode & permissionMask);
  }
  switch (found.kind) {
    case "file":
      list.addFlags(row, rowFlags.unread);
      break;
    case "symlink":
      if (isSettled(found.look, lookedAt)) list.addFlags(row, rowFlags.trusted);
      break;
    case "omitted": {
      list.setClass(row, omissionClasses.indexOf(found.class));
      // A directory of ours is left out by its identity, which is not in the row.
      const isOwn = found.class === "excluded" && look !== undefined;
      list.addFlags(row, isOwn || passing.has(found.class) ? rowFlags.always : rowFlags.trusted);
      break;
    }
    case "directory":
  }
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
