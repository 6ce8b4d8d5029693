/**
 * Reads one regular file so that what comes out is one state the file had, never a mix of two (C106), and never waits for
 * a peer (C109): the descriptor is opened without blocking and must turn out to be the regular file that was looked at.
 *
 * A read counts when size, stamps and inode are the same before and after it. Where the stamps are so young that a write
 * during the read could have left them as they are, the content is read once more and must be the same: what stood there
 * at the end of the first reading and the beginning of the second then stood there whole. A state can still be one that
 * the writer itself had only half written; for large files, whose writing takes long, a short wait for quiet makes that
 * unlikely, and nothing but the absence of writers (`quiescent`) rules it out.
 */
import { constants } from "node:fs";
import type { BigIntStats } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { errnoOf } from "../core/index.js";
import type { Directory, FileSystem } from "../core/index.js";
import type { ContentId } from "./contracts.js";
import { contentIdOf, encodePieces, objectIdOf, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { isSettled } from "./stat-index.js";
import { assertOwnMeans } from "./walk.js";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

/** How long ago the last write of a large file should be. */
const quietMs = 100;
/** What one capture may spend on waiting for that. */
const waitsMaxMs = 200;

/** Where objects go; `add` takes a copy and ignores what it has. Absent while only hashing. */
export interface ObjectSink {
  add(id: ObjectId, bytes: Uint8Array): Promise<void> | undefined;
}

export type ReadOutcome =
  /** `settled`: any later write will show in the stamps of `stats`. */
  | { readonly kind: "read"; readonly id: ContentId; readonly stats: BigIntStats; readonly settled: boolean }
  /** It is no longer what was looked at, or changed while it was read: look again. */
  | { readonly kind: "changed" }
  | { readonly kind: "unreadable" };

export class ContentReader {
  readonly #fs: FileSystem;
  readonly #sink: ObjectSink | undefined;
  readonly #now: () => number;
  readonly #pace: () => Promise<void> | undefined;
  /** As large as the largest read so far, at most one piece. */
  #buffer = Buffer.allocUnsafe(16 * 1024);
  #waitLeftMs = waitsMaxMs;
  /** Bytes read so far, repeats included. */
  bytesRead = 0;

  constructor(
    fileSystem: FileSystem,
    options: {
      readonly sink: ObjectSink | undefined;
      readonly now: () => number;
      readonly pace: () => Promise<void> | undefined;
    },
  ) {
    this.#fs = fileSystem;
    this.#sink = options.sink;
    this.#now = options.now;
    this.#pace = options.pace;
  }

  /** One attempt. `seen` is the look that found a regular file there. */
  async read(directory: Directory, name: string, path: string, seen: BigIntStats): Promise<ReadOutcome> {
    let fd: number;
    try {
      fd = this.#fs.open(directory.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    } catch (error) {
      // ELOOP: a link now. ENXIO: a socket or a device now.
      if (["ENOENT", "ELOOP", "ENXIO", "ENOTDIR"].includes(errnoOf(error) ?? "")) return { kind: "changed" };
      assertOwnMeans(error, path);
      return { kind: "unreadable" };
    }
    try {
      return await this.#readOpened(fd, seen);
    } catch (error) {
      assertOwnMeans(error, path);
      return { kind: "unreadable" };
    } finally {
      this.#fs.close(fd);
    }
  }

  async #readOpened(fd: number, seen: BigIntStats): Promise<ReadOutcome> {
    const lookedAt = this.#now();
    const before = this.#fs.fstat(fd);
    if (!before.isFile() || before.ino !== seen.ino || before.size > BigInt(Number.MAX_SAFE_INTEGER)) {
      return { kind: "changed" };
    }
    const small = before.size <= BigInt(pieceBytes);
    const id = small ? this.#hashSmall(fd, before) : await this.#hashPieces(fd, before, this.#sink);
    if (id === undefined || !isSame(before, this.#fs.fstat(fd))) return { kind: "changed" };
    const settled = isSettled(before, lookedAt);
    if (!settled) {
      if (!small) await this.#quiet(before);
      if (!isSame(before, this.#fs.fstat(fd))) return { kind: "changed" };
      // Into the same buffer: when the ids agree, so do the bytes.
      const again = small ? this.#hashSmall(fd, before) : await this.#hashPieces(fd, before, undefined);
      if (again !== id || !isSame(before, this.#fs.fstat(fd))) return { kind: "changed" };
    }
    // Small content is stored only now that it is known to be one state.
    if (small) await this.#sink?.add(id, this.#buffer.subarray(0, Number(before.size)));
    return { kind: "read", id, stats: before, settled };
  }

  /** Waits until the last write is a moment ago, as far as this capture may still wait. */
  async #quiet({ mtimeNs }: BigIntStats): Promise<void> {
    const ageMs = Math.max(0, this.#now() - Number(mtimeNs / 1_000_000n));
    const waitMs = Math.min(quietMs - ageMs, this.#waitLeftMs);
    if (waitMs <= 0) return;
    this.#waitLeftMs -= waitMs;
    await delay(waitMs);
    await this.#pace();
  }

  /** Undefined when the file is shorter than it was; growth shows in its stats. Leaves the bytes in the buffer. */
  #hashSmall(fd: number, { size }: BigIntStats): ContentId | undefined {
    const expected = Number(size);
    if (this.#fill(fd, 0, expected) !== expected) return undefined;
    return contentIdOf(this.#buffer.subarray(0, expected));
  }

  async #hashPieces(fd: number, before: BigIntStats, sink: ObjectSink | undefined): Promise<ContentId | undefined> {
    const size = Number(before.size);
    const ids: ObjectId[] = [];
    for (let at = 0; at < size; at += pieceBytes) {
      const expected = Math.min(pieceBytes, size - at);
      if (this.#fill(fd, at, expected) !== expected) return undefined;
      const piece = this.#buffer.subarray(0, expected);
      const id = objectIdOf(piece);
      ids.push(id);
      await sink?.add(id, piece);
      await this.#pace();
      // A file being rewritten is given up early, before more of it is stored in vain.
      if (!isSame(before, this.#fs.fstat(fd))) return undefined;
    }
    const list = encodePieces(size, ids);
    const id = objectIdOf(list) as ContentId;
    await sink?.add(id, list);
    return id;
  }

  /** Reads up to `length` bytes at `position`; fewer at the end of the file. */
  #fill(fd: number, position: number, length: number): number {
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafe(Math.min(pieceBytes, length * 2));
    let done = 0;
    while (done < length) {
      const read = this.#fs.read(fd, this.#buffer, done, length - done, position + done);
      if (read === 0) break;
      done += read;
    }
    this.bytesRead += done;
    return done;
  }
}

const isSame = (a: BigIntStats, b: BigIntStats): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.mode === b.mode;
