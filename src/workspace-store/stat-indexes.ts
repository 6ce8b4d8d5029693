/**
 * Keeps what was learnt of trees between captures: in memory while the store value lives and, with a spool directory, in one file
 * per root and rules. Losing, damaging or failing to write one costs time and never an error.
 *
 * A table serves one capture at a time; another of the same root and rules waits for it, and then finds everything looked at.
 */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import path from "node:path";
import {
  canonicalJson,
  errnoOf,
  inSlices,
  pacer,
  raceAbort,
  sha256Hex,
  toFsPath,
  temporaryPrefix,
  writeAll,
} from "../core/index.js";
import type { Abortable, FileSystem, Json } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { CaptureRules } from "./contracts.js";
import {
  changesBytes,
  changesBytesMax,
  decodeStatIndex,
  encodeChanges,
  encodeHead,
  encodeRecords,
} from "./stat-index-file.js";
import type { StatIndexHead } from "./stat-index-file.js";
import { compacted, takeUnsaved } from "./table-upkeep.js";
import type { Unsaved } from "./table-upkeep.js";
import { TreeTable } from "./tree-table.js";

/** Roots whose tables stay in memory. */
const rememberedMax = 4;
/** The file is written anew when its batches are more than this share of what a new one would hold, and at least so long. */
const batchesShareMax = 0.25;
const batchesBytesMin = 64 * 1024;
/** And when one batch of changes is more than this share, before it is compressed. */
const changesShareMax = 1 / 16;
/** A batch is put together and written in one go. */
const batchBytesMax = 1024 * 1024;
/** Read between two looks at the clock. */
const readBytes = 1024 * 1024;
/** A write takes less than a second. */
const strayAgeMs = 60 * 60_000;
const unusedAgeMs = 90 * 24 * 60 * 60_000;

type Pace = () => Promise<void> | undefined;

interface FileState {
  /** Identity and stamps of the file as this value left it; another one there now was written by another process. */
  readonly stamp: string;
  readonly length: number;
  /** How long it was when it was last written as a whole. */
  readonly wholeLength: number;
}

interface Remembered {
  readonly dev: bigint;
  table: TreeTable;
  /** `losses` of the object store when `present` flags were last right. */
  presentAsOf: number;
  file: FileState | undefined;
}

/** The table of a root, for one capture. */
export interface TableLoan extends Disposable {
  readonly table: TreeTable;
  /** The number that was noted when the flags that say what the store has were last right; -1 when never. */
  presentAsOf: number;
  /** Keeps what was learnt for the next capture, and the next process. Pauses as `pace` says. */
  save(pace: () => Promise<void> | undefined): Promise<void>;
}

export class StatIndexes {
  readonly #fs: FileSystem;
  readonly #dir: string | undefined;
  readonly #remembered = new Map<string, Remembered>();
  /** By key: ends when nobody uses the table or waits for it. */
  readonly #uses = new Map<string, Promise<void>>();

  constructor(fileSystem: FileSystem, spoolDir: string | undefined) {
    this.#fs = fileSystem;
    this.#dir = spoolDir === undefined ? undefined : path.join(spoolDir, "stat-index");
  }

  /** Names what is kept. Rules are part of it, since they decide what is in the tree. */
  static key(root: string, rules: CaptureRules, includePrivate: boolean): string {
    return sha256Hex(canonicalJson(["looprig.stat-index", root, rules as Json, includePrivate]));
  }

  async borrow(head: StatIndexHead, { signal }: Abortable = {}): Promise<TableLoan> {
    const before = this.#uses.get(head.key) ?? Promise.resolve();
    let giveBack = (): void => undefined;
    const used = new Promise<void>((resolve) => {
      giveBack = resolve;
    });
    const all = before.then(() => used);
    this.#uses.set(head.key, all);
    void all.then(() => {
      if (this.#uses.get(head.key) === all) this.#uses.delete(head.key);
    });
    try {
      await raceAbort(before, signal);
      const remembered = await this.#load(head, pacer(signal));
      return {
        get table() {
          return remembered.table;
        },
        get presentAsOf() {
          return remembered.presentAsOf;
        },
        set presentAsOf(value) {
          remembered.presentAsOf = value;
        },
        save: (pace) => this.#save(head, remembered, pace),
        [Symbol.dispose]: giveBack,
      };
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  async #load(head: StatIndexHead, pace: Pace): Promise<Remembered> {
    const known = this.#remembered.get(head.key);
    if (known?.dev === head.dev) return this.#remember(head.key, known);
    const read = await this.#read(head, pace);
    return this.#remember(head.key, {
      dev: head.dev,
      table: read?.table ?? TreeTable.empty(),
      presentAsOf: -1,
      file: read?.file,
    });
  }

  #remember(key: string, value: Remembered): Remembered {
    this.#remembered.delete(key);
    this.#remembered.set(key, value);
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= rememberedMax) break;
      this.#remembered.delete(oldest);
    }
    return value;
  }

  async #read(
    head: StatIndexHead,
    pace: Pace,
  ): Promise<{ readonly table: TreeTable; readonly file: FileState | undefined } | undefined> {
    if (this.#dir === undefined) return undefined;
    try {
      const stamp = this.#stamp(head.key);
      const bytes = await this.#readFile(head.key, pace);
      const { table, whole } = await inSlices(decodeStatIndex(bytes, head), pace);
      const length = bytes.length;
      return { table, file: whole && stamp !== undefined ? { stamp, length, wholeLength: length } : undefined };
    } catch (error) {
      if (error instanceof FormatError || errnoOf(error) !== undefined) return undefined;
      throw error;
    }
  }

  async #save(head: StatIndexHead, remembered: Remembered, pace: Pace): Promise<void> {
    if (remembered.table.isWasteful) {
      remembered.table = await inSlices(compacted(remembered.table), pace);
      remembered.file = undefined;
    }
    const unsaved = takeUnsaved(remembered.table);
    if (
      this.#dir === undefined ||
      (unsaved.relisted.length + unsaved.changed.length === 0 && remembered.file !== undefined)
    )
      return;
    try {
      remembered.file = this.#append(head, remembered, unsaved) ?? (await this.#write(head, remembered.table, pace));
    } catch (error) {
      // A full or read-only spool costs the next process time; this capture is not the worse for it.
      if (errnoOf(error) === undefined) throw error;
      remembered.file = undefined;
    }
  }

  #append({ key }: StatIndexHead, { table, file }: Remembered, unsaved: Unsaved): FileState | undefined {
    if (file === undefined || this.#stamp(key) !== file.stamp) return undefined;
    const most = Math.min(changesBytesMax, Math.max(batchesBytesMin, file.wholeLength * changesShareMax));
    if (changesBytes(table, unsaved) > most) return undefined;
    const batch = encodeChanges(table, unsaved, file.length);
    const length = file.length + batch.length;
    const batches = length - file.wholeLength;
    if (batches > batchesBytesMin && batches > file.wholeLength * batchesShareMax) return undefined;
    const { O_WRONLY, O_APPEND, O_NOFOLLOW } = constants;
    const fd = this.#fs.open(toFsPath(this.#file(key)), O_WRONLY | O_APPEND | O_NOFOLLOW);
    try {
      writeAll(this.#fs, fd, batch);
    } finally {
      this.#fs.close(fd);
    }
    const stamp = this.#stamp(key);
    return stamp === undefined ? undefined : { ...file, stamp, length };
  }

  async #write(head: StatIndexHead, table: TreeTable, pace: Pace): Promise<FileState | undefined> {
    const file = this.#file(head.key);
    this.#makeDir(path.dirname(file));
    this.#sweep(path.dirname(file));
    const temporary = path.join(path.dirname(file), `${temporaryPrefix}${randomBytes(9).toString("hex")}`);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
    const fd = this.#fs.open(toFsPath(temporary), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    let length = 0;
    const write = (bytes: Buffer): void => {
      writeAll(this.#fs, fd, bytes);
      length += bytes.length;
    };
    try {
      try {
        write(encodeHead(head));
        for (const directories of inBatches(table)) {
          write(encodeRecords(table, directories, length));
          await pace();
        }
      } finally {
        this.#fs.close(fd);
      }
      this.#fs.rename(toFsPath(temporary), toFsPath(file));
    } catch (error) {
      this.#discard(temporary);
      throw error;
    }
    const stamp = this.#stamp(head.key);
    return stamp === undefined ? undefined : { stamp, length, wholeLength: length };
  }

  /** Removes what killed writers left, and indexes of roots that nobody captured for long. */
  #sweep(dir: string): void {
    const now = Date.now();
    for (const name of this.#fs.readdir(toFsPath(dir)).map(String)) {
      const file = path.join(dir, name);
      try {
        const ageMs = now - Number(this.#fs.lstat(toFsPath(file)).mtimeMs);
        if (ageMs > (name.startsWith(temporaryPrefix) ? strayAgeMs : unusedAgeMs)) this.#discard(file);
      } catch (error) {
        // Gone, or not ours to look at.
        if (errnoOf(error) === undefined) throw error;
      }
    }
  }

  #discard(file: string): void {
    try {
      this.#fs.unlink(toFsPath(file));
    } catch {
      // The next one tries again.
    }
  }

  #file(key: string): string {
    return path.join(this.#dir as string, `${key}.v1`);
  }

  #stamp(key: string): string | undefined {
    try {
      const { ino, size, mtimeNs, ctimeNs } = this.#fs.lstat(toFsPath(this.#file(key)));
      return [ino, size, mtimeNs, ctimeNs].join();
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return undefined;
    }
  }

  async #readFile(key: string, pace: Pace): Promise<Buffer> {
    const fd = this.#fs.open(toFsPath(this.#file(key)), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const bytes = Buffer.allocUnsafe(Number(this.#fs.fstat(fd).size));
      let length = 0;
      while (length < bytes.length) {
        const read = this.#fs.read(fd, bytes, length, Math.min(readBytes, bytes.length - length), null);
        if (read === 0) break;
        length += read;
        await pace();
      }
      return bytes.subarray(0, length);
    } finally {
      this.#fs.close(fd);
    }
  }

  #makeDir(dir: string): void {
    for (const each of [path.dirname(dir), dir]) {
      try {
        this.#fs.mkdir(toFsPath(each), 0o700);
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
      }
    }
  }
}

/** All directories of a table, so many at a time that their records make a batch. */
function* inBatches(table: TreeTable): Generator<readonly number[]> {
  let directories: number[] = [];
  let bytes = 0;
  for (let directory = 0; directory < table.directories; directory++) {
    if (!table.has(directory)) continue;
    directories.push(directory);
    bytes += table.recordBytes(directory).length;
    if (bytes < batchBytesMax) continue;
    yield directories;
    directories = [];
    bytes = 0;
  }
  if (directories.length > 0) yield directories;
}
