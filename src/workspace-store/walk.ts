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
import { compareNames, errnoOf, inSlices, joinPath, toFsPath } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import type { PathRules } from "./capture-rules.js";
import { addFound, assertOwnMeans, Classifier, identityKey } from "./found.js";
import type { Found } from "./found.js";
import { prepareHelpers } from "./lanes.js";
import { isAsInRow, lookCounters, Prefixes } from "./look-lane.js";
import { lookQuickly } from "./quick-look.js";
import { RowList } from "./row-list.js";
import { directoryFlags, kinds, looks, rowBytes, rowFlags } from "./table-layout.js";
import { isSettled, permissionMask, toLook } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";
import { NotThatDirectoryError, TableDirectories } from "./table-directories.js";
import type { TreeTable } from "./tree-table.js";

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

const directoriesBetweenPauses = 64;
/** How often a name that is not what it was taken for is looked at again. */
const replacementsMax = 3;
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
  readonly #classifier: Classifier;
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
    this.#classifier = new Classifier({ ...options, dev: Number(root.dev) });
    this.#trustsListings = stampedTypes.has(options.fileSystem.statfs(root.self()).type);
  }

  [Symbol.dispose](): void {
    this.directories[Symbol.dispose]();
  }

  /** Entries looked at so far that are no directories. */
  get seen(): number {
    return (this.#counters[lookCounters.seen] as number) + this.#listed;
  }

  /** Looks at everything below the root. */
  async run(): Promise<void> {
    await inSlices(this.#table.beginCapture(), this.#options.pace);
    await this.#distrustOwn();
    const job = { root: this.#rootPath, dev: Number(this.#root.dev), counters: this.#counters.buffer };
    await lookQuickly(this.#table, job, this.#options);
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
      else if (directory % directoriesBetweenPauses === 0) await this.#options.pace();
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
    return this.#classifier.find(handle, name, handle.at(name), () => this.#pathIn(directory, name));
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
      this.#keepEarlier(list, addFound(list, name, found, this.#options.now()), found, row);
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

  /** What is ours for the moment differs from capture to capture, so what was known of its surroundings does not hold. */
  async #distrustOwn(): Promise<void> {
    const { ownPaths, ownDirectories } = this.#options;
    if (ownPaths.size === 0 && ownDirectories.size === 0) return;
    const table = this.#table;
    const parents = new Set([...ownPaths].map((path) => path.slice(0, Math.max(0, path.lastIndexOf("/")))));
    for (let directory = 0; directory < table.directories; directory++) {
      if (!table.has(directory)) continue;
      if (directory % directoriesBetweenPauses === 0) await this.#options.pace();
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
    table.setDirectoryFlags(directory, 0, directoryFlags.encoded | directoryFlags.present);
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
    const { now, ownPaths, pace } = this.#options;
    const table = this.#table;
    const lookedAt = now();
    let handle: Directory;
    let names: string[];
    try {
      handle = this.directories.get(directory);
      names = handle.names();
    } catch (error) {
      if (directory === 0) throw error;
      if (error instanceof NotThatDirectoryError) return "lost";
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) return "lost";
      assertOwnMeans(error, table.pathOf(directory));
      return "unreadable";
    }
    // Older than the listing at worst, which costs another listing and hides nothing.
    const before = toLook(handle.asOpened);
    // Of a directory with a hundred thousand names each of these takes long enough by itself.
    await pace();
    const known = this.#rowsByName(directory);
    await pace();
    const path = table.pathOf(directory) as WorkspacePath;
    const prefix = this.#prefixes.of(directory);
    const list = this.#list;
    const children: [index: number, child: number | Look][] = [];
    let ownSkipped = false;
    list.clear();
    names.sort(compareNames);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      // A name that is made anew while it is listed may come twice.
      if (name === names[i - 1]) continue;
      if (ownPaths.size > 0 && ownPaths.has(joinPath(path, name))) {
        ownSkipped = true;
        continue;
      }
      // The handle stays open throughout: nothing else of this walk opens directories meanwhile.
      this.#addName(list, children, directory, name, known.get(name), () =>
        this.#classifier.find(handle, name, prefix === undefined ? handle.at(name) : toFsPath(prefix + name), () =>
          joinPath(path, name),
        ),
      );
      if (i % 64 === 63) await pace();
    }
    this.#listed += list.count - children.length;
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
    const isAsItWas =
      row !== undefined && (child === undefined ? table.look(row) : table.directoryLook(child)) === looks.same;
    // An omission without stamps holds only while the directory's own do, which is not so here.
    if (isAsItWas && (table.kind(row) !== kinds.omitted || table.ctime(row) !== 0)) {
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
      const at = addFound(list, name, found, this.#options.now());
      if (row !== undefined) this.#keepEarlier(list, at, found, row);
    }
  }

  /** The new row of a file remembers what the file of that name held before. */
  #keepEarlier(list: RowList, at: number, found: Found, row: number): void {
    const earlier =
      found.kind === "file" && this.#table.kind(row) === kinds.file ? this.#table.earlier(row) : undefined;
    if (earlier) list.setDigest(at, earlier);
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
    this.#table.setDirectoryFlags(parent, 0, directoryFlags.encoded | directoryFlags.present);
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

  #pathIn(directory: number, name: string): WorkspacePath {
    return joinPath(this.#table.pathOf(directory) as WorkspacePath, name);
  }
}
