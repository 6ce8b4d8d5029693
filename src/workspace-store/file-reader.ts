/**
 * Reads one regular file so that what comes out is one state the file had, never a mix of two (C106), and never waits for
 * a peer (C109): the descriptor is opened without blocking, is read at positions, which nothing that could block allows, and
 * must turn out to be the regular file that was looked at.
 *
 * A read counts when size, stamps and inode are after it what they were in a look before it: that of the walk, as long ago as
 * it may be. Where the stamps are so young that a write during the read could have left them as they are, the content is
 * read once more and must be the same: what stood there at the end of the first reading and the beginning of the second
 * then stood there whole. A state can still be one that the writer itself had only half written; nothing but the absence of
 * writers (`quiescent`) rules that out.
 *
 * Everything here is synchronous and owns one buffer, so that every lane has a reader of its own.
 */
import { hash } from "node:crypto";
import { constants } from "node:fs";
import { errnoOf } from "../core/index.js";
import type { Directory, FileSystem } from "../core/index.js";
import type { Claims } from "./claims.js";
import { pieceBytes } from "./object-ids.js";
import { isRegular, isSameLook, isSettled } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

/** Where objects go. Takes a copy of the bytes. `earlier` is the digest of what the file held before, where that is known. */
export interface ObjectSink {
  add(digest: Buffer, bytes: Buffer, earlier?: Buffer): void;
}

/** A sink that stores what nobody claimed yet. */
export function claimingSink(claims: Claims, store: (hex: string, bytes: Buffer) => void): ObjectSink {
  return {
    add: (digest, bytes) => {
      if (claims.claim(digest)) store(digest.toString("hex"), bytes);
    },
  };
}

export type SmallRead =
  | { readonly kind: "read"; readonly look: Look; readonly digest: Buffer; readonly settled: boolean }
  /** It is no longer what was looked at, or changed while it was read: look again. */
  | { readonly kind: "changed" }
  | { readonly kind: "unreadable"; readonly error: unknown };

/** The file a reader is to read: as it was when it was looked at. */
export interface Expected {
  readonly size: number;
  /** Whether the opened file has that size, and all else a look says. */
  is(look: Look): boolean;
}

export class FileReader {
  readonly #fs: FileSystem;
  readonly #looker: Looker;
  readonly #now: () => number;
  /** As large as the largest read so far, at most one piece. */
  #buffer = Buffer.allocUnsafe(64 * 1024);
  /** Bytes read so far, repeats included. */
  bytesRead = 0;

  constructor(fileSystem: FileSystem, looker: Looker, now: () => number) {
    this.#fs = fileSystem;
    this.#looker = looker;
    this.#now = now;
  }

  /** One attempt at a file of at most one piece. `earlier` is handed on to the sink. */
  small(
    directory: Directory,
    name: string,
    expected: Expected,
    sink: ObjectSink | undefined,
    earlier: Buffer | undefined,
  ): SmallRead {
    let fd: number;
    try {
      fd = this.#open(directory, name);
    } catch (error) {
      return isAnotherKind(error) ? { kind: "changed" } : { kind: "unreadable", error };
    }
    try {
      const lookedAt = this.#now();
      const bytes = this.#fill(fd, 0, expected.size);
      const look = this.#looker.opened(fd);
      if (bytes === undefined || !isRegular(look.mode) || !expected.is(look)) return { kind: "changed" };
      const digest = hash("sha256", bytes, "buffer");
      const settled = isSettled(look, lookedAt);
      if (!settled) {
        // Into the same buffer: when the digests agree, so do the bytes.
        const again = this.#fill(fd, 0, expected.size);
        if (again === undefined || !digest.equals(hash("sha256", again, "buffer"))) return { kind: "changed" };
        if (!isSameLook(look, this.#looker.opened(fd))) return { kind: "changed" };
      }
      // Stored only now that it is known to be one state.
      sink?.add(digest, bytes, earlier);
      return { kind: "read", look, digest, settled };
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return this.#isStill(fd, expected) ? { kind: "unreadable", error } : { kind: "changed" };
    } finally {
      this.#fs.close(fd);
    }
  }

  /**
   * Some pieces of a large file that is as `isExpected` says and stays so; pauses after each. Writes their digests to `digests`.
   */
  *pieces(
    directory: Directory,
    name: string,
    isExpected: (look: Look) => boolean,
    { first, count, digests }: { readonly first: number; readonly count: number; readonly digests: Buffer },
    sink: ObjectSink | undefined,
  ): Generator<undefined, "read" | "changed" | "unreadable"> {
    let fd: number;
    try {
      fd = this.#open(directory, name);
    } catch (error) {
      return isAnotherKind(error) ? "changed" : "unreadable";
    }
    try {
      const before = this.#looker.opened(fd);
      if (!isRegular(before.mode) || !isExpected(before)) return "changed";
      for (let i = 0; i < count; i++) {
        const at = (first + i) * pieceBytes;
        const bytes = this.#fill(fd, at, Math.min(pieceBytes, before.size - at));
        if (bytes === undefined) return "changed";
        const digest = digestOfPiece(bytes);
        digest.copy(digests, i * 32);
        // A file being rewritten is given up early, before more of it is stored in vain.
        if (!isSameLook(before, this.#looker.opened(fd))) return "changed";
        sink?.add(digest, bytes);
        yield;
      }
      return "read";
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return "unreadable";
    } finally {
      this.#fs.close(fd);
    }
  }

  /** Reading fails at once where something else stands, a directory or a pipe. */
  #isStill(fd: number, expected: Expected): boolean {
    try {
      const look = this.#looker.opened(fd);
      return isRegular(look.mode) && expected.is(look);
    } catch {
      return true;
    }
  }

  #open(directory: Directory, name: string): number {
    return this.#fs.open(directory.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  }

  /** `length` bytes at `position`, valid until the next call; undefined when the file ends before. */
  #fill(fd: number, position: number, length: number): Buffer | undefined {
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafe(Math.min(pieceBytes, length * 2));
    let done = 0;
    while (done < length) {
      const read = this.#fs.read(fd, this.#buffer, done, length - done, position + done);
      if (read === 0) break;
      done += read;
    }
    this.bytesRead += done;
    return done === length ? this.#buffer.subarray(0, length) : undefined;
  }
}

/** ELOOP: a link now. ENXIO: a socket or a device now. */
const isAnotherKind = (error: unknown): boolean =>
  ["ENOENT", "ELOOP", "ENXIO", "ENOTDIR"].includes(errnoOf(error) ?? "");

const zeros = Buffer.alloc(pieceBytes);
const zeroDigest = hash("sha256", zeros, "buffer");

/** Holes read as zeros; comparing is ten times faster than hashing, and ends at the first other byte. */
const digestOfPiece = (bytes: Buffer): Buffer =>
  bytes.length === pieceBytes && bytes.equals(zeros) ? zeroDigest : hash("sha256", bytes, "buffer");
