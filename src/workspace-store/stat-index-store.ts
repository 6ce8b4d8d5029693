/**
 * Keeps stat indexes between captures: in memory while the process lives and, with a spool directory, in one file per root
 * and rules, replaced atomically. Losing, damaging or failing to write one costs time and never an error.
 */
import { constants } from "node:fs";
import path from "node:path";
import { canonicalJson, errnoOf, sha256Hex, toFsPath, writeFileAtomic } from "../core/index.js";
import type { FileSystem, Json } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { CaptureRules } from "./contracts.js";
import { decodeStatIndex, encodeStatIndex } from "./stat-index.js";
import type { StatIndexHead, StatRows } from "./stat-index.js";

type Pace = () => Promise<void> | undefined;

interface Remembered {
  readonly dev: bigint;
  readonly rows: StatRows;
  /** The file these rows were read from or written to; another one there now was written by another process. */
  readonly stamp: string | undefined;
}

/** Roots whose rows stay in memory. */
const rememberedMax = 4;

export class StatIndexStore {
  readonly #fs: FileSystem;
  readonly #dir: string | undefined;
  readonly #remembered = new Map<string, Remembered>();

  constructor(fileSystem: FileSystem, spoolDir: string | undefined) {
    this.#fs = fileSystem;
    this.#dir = spoolDir === undefined ? undefined : path.join(spoolDir, "stat-index");
  }

  /** Names what rows are kept for. Rules are part of it, since rows of files that rules leave out would be dropped. */
  static key(root: string, rules: CaptureRules): string {
    return sha256Hex(canonicalJson(["looprig.stat-index", root, rules as Json]));
  }

  async load({ key, dev }: StatIndexHead, pace: Pace): Promise<StatRows> {
    const remembered = this.#remembered.get(key);
    const stamp = this.#stamp(key);
    if (remembered?.dev === dev && (this.#dir === undefined || remembered.stamp === stamp)) return remembered.rows;
    if (stamp === undefined) return new Map();
    try {
      const rows = await decodeStatIndex(this.#readFile(key), { key, dev }, pace);
      this.#remember(key, { dev, rows, stamp });
      return rows;
    } catch (error) {
      if (error instanceof FormatError || errnoOf(error) !== undefined) return new Map();
      throw error;
    }
  }

  async save(head: StatIndexHead, rows: StatRows, pace: Pace): Promise<void> {
    const file = this.#file(head.key);
    if (file !== undefined) {
      const bytes = await encodeStatIndex(head, rows, pace);
      try {
        this.#makeDir(path.dirname(file));
        writeFileAtomic(this.#fs, file, [bytes], { durable: false });
      } catch (error) {
        // A full or read-only spool costs the next capture time; this one is not the worse for it.
        if (errnoOf(error) === undefined) throw error;
      }
    }
    this.#remember(head.key, { dev: head.dev, rows, stamp: this.#stamp(head.key) });
  }

  #remember(key: string, value: Remembered): void {
    this.#remembered.delete(key);
    this.#remembered.set(key, value);
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= rememberedMax) break;
      this.#remembered.delete(oldest);
    }
  }

  #file(key: string): string | undefined {
    return this.#dir === undefined ? undefined : path.join(this.#dir, `${key}.v0`);
  }

  #stamp(key: string): string | undefined {
    const file = this.#file(key);
    if (file === undefined) return undefined;
    try {
      const { ino, size, mtimeNs, ctimeNs } = this.#fs.lstat(toFsPath(file));
      return [ino, size, mtimeNs, ctimeNs].join();
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return undefined;
    }
  }

  #readFile(key: string): Buffer {
    const fd = this.#fs.open(toFsPath(this.#file(key) as string), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const bytes = Buffer.allocUnsafe(Number(this.#fs.fstat(fd).size));
      let length = 0;
      while (length < bytes.length) {
        const read = this.#fs.read(fd, bytes, length, bytes.length - length, null);
        if (read === 0) break;
        length += read;
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
