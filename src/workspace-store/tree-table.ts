/**
 * What is known of one tree, flat: a record per directory in one shared buffer, so that several threads look at it at once
 * without a copy, and so that the stat index on disk is these very bytes (`table-layout.ts`).
 *
 * 1. Rows of a record are in byte order of their names. Directory 0 is the root; a directory's number is larger than its parent's.
 * 2. A record is changed in place while its names stay the same, and otherwise written anew at the end of the buffer. What
 *    it leaves behind is counted and squeezed out by `table-upkeep.ts`.
 * 3. Threads write only to rows and headers handed to them; only the owner moves records, and only while no thread works.
 * 4. `look` and the flags in `transientFlags` belong to one capture or one store value and mean nothing on disk.
 */
import { nameFromBytes } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { RowList } from "./row-list.js";
import {
  directoryFlags,
  field,
  header,
  headerBytes,
  kinds,
  lastingRowFlags,
  looks,
  rowBytes,
  rowFlags,
  transientFlags,
} from "./table-layout.js";

/** Words of the directory list per directory: where its record is (in units of 8 bytes), its parent, its row there. */
const linkWords = 3;
const noDirectory = 0;
const rowsBetweenPauses = 512;

/** What another thread needs to look at the table. */
export interface SharedTable {
  readonly arena: SharedArrayBuffer;
  readonly links: SharedArrayBuffer;
  readonly directories: number;
}

/** What a stat index holds, in the order it was written. */
export type Saved = { readonly records: Uint8Array } | SavedChanges;
export interface SavedChanges {
  readonly directory: number;
  readonly head: Buffer | undefined;
  /** The row, or its flags alone. */
  readonly rows: readonly (readonly [row: number, bytes: Uint8Array])[];
}

export class TreeTable {
  #arena: SharedArrayBuffer;
  bytes: Buffer;
  #u16: Uint16Array;
  #u32: Uint32Array;
  #f64: Float64Array;
  #links: Int32Array;
  #directories: number;
  /** End of the last record. */
  #end: number;
  /** Bytes between records that no directory uses any more. */
  #wasted = 0;
  #live = 0;

  private constructor(arena: SharedArrayBuffer, links: Int32Array, directories: number, end: number) {
    this.#arena = arena;
    this.bytes = Buffer.from(arena);
    this.#u16 = new Uint16Array(arena);
    this.#u32 = new Uint32Array(arena);
    this.#f64 = new Float64Array(arena);
    this.#links = links;
    this.#directories = directories;
    this.#end = end;
  }

  /** A table that knows of a root and nothing in it. */
  static empty(): TreeTable {
    const table = new TreeTable(new SharedArrayBuffer(64 * 1024), sharedWords(64 * linkWords), 0, 8);
    table.addDirectory(0, 0);
    return table;
  }

  /** The same table in another thread, for reading paths and writing to rows. */
  static attach({ arena, links, directories }: SharedTable): TreeTable {
    return new TreeTable(arena, new Int32Array(links), directories, arena.byteLength);
  }

  share(): SharedTable {
    return { arena: this.#arena, links: this.#links.buffer as SharedArrayBuffer, directories: this.#directories };
  }

  /** One more than the largest number of a directory; some below may be gone. */
  get directories(): number {
    return this.#directories;
  }

  /** Directories that are there. */
  get liveDirectories(): number {
    return this.#live;
  }

  get isWasteful(): boolean {
    return this.#wasted > this.#end / 2 && this.#wasted > 1024 * 1024;
  }

  // ── directories ───────────────────────────────────────────────────────────────────────────────────────────────────

  has(directory: number): boolean {
    return this.#links[directory * linkWords] !== noDirectory;
  }

  /** Where its record starts. */
  record(directory: number): number {
    return (this.#links[directory * linkWords] as number) * 8;
  }

  parent(directory: number): number {
    return this.#links[directory * linkWords + 1] as number;
  }

  /** Where the row of a directory starts that is not the root. */
  rowOfDirectory(directory: number): number {
    const row = this.#links[directory * linkWords + 2] as number;
    return this.record(this.parent(directory)) + headerBytes + row * rowBytes;
  }

  rowCount(directory: number): number {
    return this.#u32[(this.record(directory) + header.rows) >> 2] as number;
  }

  /** Where its rows start. */
  rows(directory: number): number {
    return this.record(directory) + headerBytes;
  }

  directoryIno = (directory: number): number => this.#f64[(this.record(directory) + header.ino) >> 3] as number;
  directoryMtime = (directory: number): number => this.#f64[(this.record(directory) + header.mtime) >> 3] as number;
  directoryCtime = (directory: number): number => this.#f64[(this.record(directory) + header.ctime) >> 3] as number;

  setDirectoryStamps(directory: number, ino: number, mtimeMs: number, ctimeMs: number): void {
    const at = (this.record(directory) + header.ino) >> 3;
    if (this.#f64[at] === ino && this.#f64[at + 1] === mtimeMs && this.#f64[at + 2] === ctimeMs) return;
    this.#f64[at] = ino;
    this.#f64[at + 1] = mtimeMs;
    this.#f64[at + 2] = ctimeMs;
    this.setDirectoryFlags(directory, directoryFlags.unsaved);
  }

  /** Where its tree id lies. */
  treeId(directory: number): number {
    return this.record(directory) + header.id;
  }

  setTreeId(directory: number, digest: Uint8Array): void {
    const at = this.treeId(directory);
    if (this.bytes.compare(digest, 0, 32, at, at + 32) === 0) return;
    this.bytes.set(digest, at);
    this.setDirectoryFlags(directory, directoryFlags.unsaved);
  }

  directoryFlags(directory: number): number {
    return this.bytes[this.record(directory) + header.flags] as number;
  }

  setDirectoryFlags(directory: number, set: number, clear = 0): void {
    const at = this.record(directory) + header.flags;
    const before = this.bytes[at] as number;
    const after = (before & ~clear) | set;
    this.bytes[at] = ((before ^ after) & directoryFlags.listed) === 0 ? after : after | directoryFlags.unsaved;
  }

  directoryLook(directory: number): number {
    return this.bytes[this.record(directory) + header.look] as number;
  }

  setDirectoryLook(directory: number, look: number): void {
    this.bytes[this.record(directory) + header.look] = look;
  }

  /** A new directory without rows, whose row in its parent is `row`. */
  addDirectory(parent: number, row: number): number {
    const number = this.#directories++;
    if (this.#directories * linkWords > this.#links.length) {
      const larger = sharedWords(this.#links.length * 2);
      larger.set(this.#links);
      this.#links = larger;
    }
    this.#links.set([noDirectory, parent, row], number * linkWords);
    const at = this.#allocate(headerBytes);
    this.bytes.fill(0, at, at + headerBytes);
    this.#u32[(at + header.number) >> 2] = number;
    this.#u32[(at + header.bytes) >> 2] = headerBytes;
    this.#links[number * linkWords] = at / 8;
    this.#live++;
    this.setDirectoryFlags(number, directoryFlags.relisted);
    return number;
  }

  /** Forgets a directory and all below it. */
  remove(directory: number): void {
    const stack = [directory];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (!this.has(next)) continue;
      for (let row = this.rows(next), left = this.rowCount(next); left > 0; row += rowBytes, left--) {
        if (this.kind(row) === kinds.directory) stack.push(this.extra(row));
      }
      this.#wasted += this.#u32[(this.record(next) + header.bytes) >> 2] as number;
      this.#links[next * linkWords] = noDirectory;
      this.#live--;
    }
  }

  /**
   * Puts the rows of `list` in the place of a directory's rows. The stamps, flags and look of the directory stay, except that
   * its tree id no longer holds. Directories among the rows must have their numbers.
   */
  setRows(directory: number, list: RowList): void {
    const needed = padded(headerBytes + list.count * rowBytes + list.namesLength);
    const old = this.record(directory);
    const capacity = this.#u32[(old + header.bytes) >> 2] as number;
    let at = old;
    if (needed > capacity) {
      at = this.#allocate(needed);
      this.bytes.copyWithin(at, old, old + headerBytes);
      this.#u32[(at + header.bytes) >> 2] = needed;
      this.#links[directory * linkWords] = at / 8;
      this.#wasted += capacity;
    }
    this.#u32[(at + header.rows) >> 2] = list.count;
    this.#u32[(at + header.names) >> 2] = list.namesLength;
    const names = at + headerBytes + list.count * rowBytes;
    list.rows.copy(this.bytes, at + headerBytes, 0, list.count * rowBytes);
    list.names.copy(this.bytes, names, 0, list.namesLength);
    const { relisted, encoded, present } = directoryFlags;
    this.setDirectoryFlags(directory, relisted, encoded | present);
    for (let i = 0, row = at + headerBytes; i < list.count; i++, row += rowBytes) {
      if (this.kind(row) !== kinds.directory) continue;
      const child = this.extra(row) * linkWords;
      this.#links[child + 1] = directory;
      this.#links[child + 2] = i;
    }
  }

  // ── rows, by where they start ─────────────────────────────────────────────────────────────────────────────────────

  kind = (row: number): number => this.bytes[row + field.kind] as number;
  omissionClass = (row: number): number => this.bytes[row + field.class] as number;
  flags = (row: number): number => this.bytes[row + field.flags] as number;
  look = (row: number): number => this.bytes[row + field.look] as number;
  mode = (row: number): number => this.#u16[(row + field.mode) >> 1] as number;
  size = (row: number): number => this.#f64[row >> 3] as number;
  mtime = (row: number): number => this.#f64[(row + field.mtime) >> 3] as number;
  ctime = (row: number): number => this.#f64[(row + field.ctime) >> 3] as number;
  ino = (row: number): number => this.#f64[(row + field.ino) >> 3] as number;
  /** The number of the directory, or the length of the link's target. */
  extra = (row: number): number => this.#u32[(row + field.extra) >> 2] as number;

  setLook(row: number, look: number): void {
    this.bytes[row + field.look] = look;
  }

  setFlags(row: number, set: number, clear = 0): void {
    const at = row + field.flags;
    const before = this.bytes[at] as number;
    const after = (before & ~clear) | set;
    this.bytes[at] = ((before ^ after) & lastingRowFlags) === 0 ? after : after | rowFlags.reflagged;
  }

  setStamps(row: number, size: number, mtimeMs: number, ctimeMs: number, ino: number): void {
    const at = row >> 3;
    const [s, m, c, i] = [this.#f64[at], this.#f64[at + 1], this.#f64[at + 2], this.#f64[at + 3]];
    if (s === size && m === mtimeMs && c === ctimeMs && i === ino) return;
    this.setFlags(row, rowFlags.unsaved);
    this.#f64[at] = size;
    this.#f64[at + 1] = mtimeMs;
    this.#f64[at + 2] = ctimeMs;
    this.#f64[at + 3] = ino;
  }

  setDigest(row: number, digest: Uint8Array): void {
    const at = row + field.digest;
    if (this.bytes.compare(digest, 0, 32, at, at + 32) === 0) return;
    this.setFlags(row, rowFlags.unsaved);
    this.bytes.set(digest, at);
  }

  /** The digest in a row whose content is to be read: what the file held before. Undefined for none. */
  earlier(row: number): Buffer | undefined {
    const digest = this.bytes.subarray(row + field.digest, row + field.digest + 32);
    return digest.every((byte) => byte === 0) ? undefined : digest;
  }

  setMode(row: number, mode: number): void {
    if (this.mode(row) === mode) return;
    this.setFlags(row, rowFlags.unsaved);
    this.#u16[(row + field.mode) >> 1] = mode;
  }

  /** Where the bytes of its name start; `directory` is the one it is in. */
  nameStart(directory: number, row: number): number {
    const names = this.rows(directory) + this.rowCount(directory) * rowBytes;
    return names + (this.#u32[(row + field.nameAt) >> 2] as number);
  }

  nameLength = (row: number): number => this.#u16[(row + field.nameLength) >> 1] as number;

  name(directory: number, row: number): string {
    const start = this.nameStart(directory, row);
    const end = start + this.nameLength(row);
    if ((this.flags(row) & rowFlags.rawName) !== 0) return nameFromBytes(Buffer.from(this.bytes.subarray(start, end)));
    return this.bytes.toString("utf8", start, end);
  }

  /** The bytes of a link's target, not copied. */
  target(directory: number, row: number): Buffer {
    const start = this.nameStart(directory, row) + this.nameLength(row);
    return this.bytes.subarray(start, start + this.extra(row));
  }

  nameOfDirectory(directory: number): string {
    return directory === 0 ? "" : this.name(this.parent(directory), this.rowOfDirectory(directory));
  }

  /** Its path below the root; empty for the root. */
  pathOf(directory: number): string {
    const parts: string[] = [];
    for (let at = directory; at !== 0; at = this.parent(at)) parts.push(this.nameOfDirectory(at));
    return parts.reverse().join("/");
  }

  /** Clears what belongs to one capture, in every row. Pauses now and then. */
  *beginCapture(): Generator<undefined, void> {
    let sincePause = 0;
    for (let directory = 0; directory < this.#directories; directory++) {
      if (!this.has(directory)) continue;
      this.setDirectoryLook(directory, looks.none);
      for (let row = this.rows(directory), left = this.rowCount(directory); left > 0; row += rowBytes, left--) {
        this.bytes[row + field.look] = looks.none;
        this.setFlags(row, 0, rowFlags.unread);
      }
      sincePause += this.rowCount(directory) + 1;
      if (sincePause < rowsBetweenPauses) continue;
      sincePause = 0;
      yield;
    }
  }

  /** Forgets what the store has. */
  clearPresent(): void {
    for (let directory = 0; directory < this.#directories; directory++) {
      if (!this.has(directory)) continue;
      this.setDirectoryFlags(directory, 0, directoryFlags.present);
      for (let row = this.rows(directory), left = this.rowCount(directory); left > 0; row += rowBytes, left--) {
        this.setFlags(row, 0, rowFlags.present);
      }
    }
  }

  // ── as bytes ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The bytes of a directory's record; valid until the table changes. */
  recordBytes(directory: number): Buffer {
    const at = this.record(directory);
    return this.bytes.subarray(at, at + (this.#u32[(at + header.bytes) >> 2] as number));
  }

  /**
   * A table of what a stat index says, in the order it was written: records end to end, later ones in the place of earlier ones of the
   * same number, and changes of rows. `bytes` is what all records take. Throws `FormatError` unless they make one tree. Pauses
   * now and then.
   */
  static *fromSaved(saved: Iterable<Saved>, bytes: number): Generator<undefined, TreeTable> {
    // A little room, so that the first changes need no larger buffer.
    const arena = new SharedArrayBuffer(padded(8 + bytes * 1.1 + 65_536));
    const table = new TreeTable(arena, sharedWords(64 * linkWords), 0, 8);
    for (const part of saved) {
      if ("records" in part) table.#takeRecords(part.records);
      else table.#takeChanges(part);
      yield;
    }
    yield* table.#linkUp();
    return table;
  }

  #takeRecords(records: Uint8Array): void {
    let at = this.#allocate(records.length);
    this.bytes.set(records, at);
    const end = this.#end;
    while (at < end) {
      if (at + headerBytes > end) throw new FormatError("ends inside a record");
      const number = this.#u32[(at + header.number) >> 2] as number;
      const bytes = this.#u32[(at + header.bytes) >> 2] as number;
      const used =
        headerBytes +
        (this.#u32[(at + header.rows) >> 2] as number) * rowBytes +
        (this.#u32[(at + header.names) >> 2] as number);
      if (bytes % 8 !== 0 || bytes < used || at + bytes > end || number > end / headerBytes) {
        throw new FormatError("a record is longer than what is there");
      }
      while (number * linkWords >= this.#links.length) {
        const larger = sharedWords(this.#links.length * 2);
        larger.set(this.#links);
        this.#links = larger;
      }
      const link = number * linkWords;
      const earlier = this.#links[link] as number;
      if (earlier !== noDirectory) this.#wasted += this.#u32[(earlier * 8 + header.bytes) >> 2] as number;
      this.#links[link] = at / 8;
      this.#directories = Math.max(this.#directories, number + 1);
      at += bytes;
    }
  }

  #takeChanges({ directory, head, rows }: SavedChanges): void {
    if (directory >= this.#directories || !this.has(directory)) throw new FormatError("changes what is not there");
    const at = this.record(directory);
    if (head !== undefined) {
      for (const same of [header.number, header.rows, header.names, header.bytes]) {
        if (head.readUInt32LE(same) !== this.#u32[(at + same) >> 2]) throw new FormatError("changes another directory");
      }
      this.bytes.set(head, at);
    }
    for (const [row, bytes] of rows) {
      if (row >= this.rowCount(directory)) throw new FormatError("changes a row that is not there");
      const start = at + headerBytes + row * rowBytes;
      this.bytes.set(bytes, bytes.length === 1 ? start + field.flags : start);
    }
  }

  /** Finds every directory's parent, and drops the records that nothing leads to any more. */
  *#linkUp(): Generator<undefined, void> {
    let sincePause = 0;
    if (this.#directories === 0 || !this.has(0)) throw new FormatError("has no root");
    const reached = new Uint8Array(this.#directories);
    reached[0] = 1;
    this.#live = 0;
    for (let directory = 0; directory < this.#directories; directory++) {
      if (!this.has(directory)) continue;
      if (reached[directory] !== 1) {
        this.#wasted += this.#u32[(this.record(directory) + header.bytes) >> 2] as number;
        this.#links[directory * linkWords] = noDirectory;
        continue;
      }
      this.#live++;
      const look = this.record(directory) + header.look;
      this.bytes[look] = looks.none;
      this.setDirectoryFlags(directory, 0, transientFlags);
      const count = this.rowCount(directory);
      const names = this.#u32[(this.record(directory) + header.names) >> 2] as number;
      for (let i = 0, row = this.rows(directory); i < count; i++, row += rowBytes) {
        this.setFlags(row, 0, transientFlags);
        const own = this.kind(row) === kinds.symlink ? this.extra(row) : 0;
        if ((this.#u32[(row + field.nameAt) >> 2] as number) + this.nameLength(row) + own > names) {
          throw new FormatError("a name is longer than what is there");
        }
        if (this.kind(row) !== kinds.directory) continue;
        const child = this.extra(row);
        // A parent has the smaller number, so one pass reaches all, and none twice.
        if (child <= directory || child >= this.#directories || !this.has(child) || reached[child] === 1) {
          throw new FormatError("its directories make no tree");
        }
        reached[child] = 1;
        this.#links[child * linkWords + 1] = directory;
        this.#links[child * linkWords + 2] = i;
      }
      sincePause += count + 1;
      if (sincePause < rowsBetweenPauses) continue;
      sincePause = 0;
      yield;
    }
  }

  #allocate(length: number): number {
    const at = this.#end;
    if (at + length > this.#arena.byteLength) {
      const larger = new SharedArrayBuffer(
        Math.max(padded(at + length), Math.ceil((this.#arena.byteLength * 1.5) / 8) * 8),
      );
      Buffer.from(larger).set(this.bytes.subarray(0, at));
      this.#arena = larger;
      this.bytes = Buffer.from(larger);
      this.#u16 = new Uint16Array(larger);
      this.#u32 = new Uint32Array(larger);
      this.#f64 = new Float64Array(larger);
    }
    this.#end = at + length;
    return at;
  }
}

const sharedWords = (count: number): Int32Array => new Int32Array(new SharedArrayBuffer(count * 4));
const padded = (length: number): number => Math.ceil(length / 8) * 8;
