/**
 * What collections are about to remove, as the store itself says it (G2): small immutable blobs
 * `condemned/<time>-<digest>`, each a list of objects by the pack they lie in.
 *
 * 1. A copy of an object is removed only if a list names it that was published before the pins were listed that did not
 *    reach it. So whoever relies on stored objects pins first, then lists this prefix before indexes and packs, and counts
 *    no copy that is named: either the collection sees the pin or the capture sees the list.
 * 2. Copies are named and not objects: what is stored anew lies in another pack and is not condemned.
 * 3. Lists never change. One goes when everything it names is gone or was reached again.
 */
import { hash } from "node:crypto";
import { SnapshotError } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import { isLooprigError } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import type { Condemned } from "./object-index.js";
import type { ObjectId } from "./object-ids.js";
import { UnsupportedVersionError } from "./pack-codec.js";

export const condemnedPrefix = "condemned/";

const magic = Buffer.from("LRCONDEM", "latin1");
const condemnedVersion = 1;

export interface CondemnedList {
  /** When the pins were listed that did not reach these objects, in milliseconds. */
  readonly markedAt: number;
  readonly copies: Condemned;
}

/** Its name is what the time and the bytes make it, so that publishing one again is nothing. */
export const condemnedKey = (markedAt: number, bytes: Uint8Array): string =>
  `${condemnedPrefix}${String(markedAt).padStart(15, "0")}-${hash("sha256", bytes).slice(0, 32)}`;

export function encodeCondemned({ markedAt, copies }: CondemnedList): Buffer {
  let count = 0;
  for (const ids of copies.values()) count += ids.size;
  const out = new ByteWriter(64 + copies.size * 36 + count * 32);
  out.bytes(magic).u32(condemnedVersion).size(markedAt).u32(copies.size);
  for (const [packId, ids] of copies) {
    out.digest(packId).u32(ids.size);
    for (const id of ids) out.digest(id);
  }
  const body = out.take();
  return Buffer.concat([body, Buffer.from(hash("sha256", body), "hex")]);
}

/** Strict inverse of `encodeCondemned`. Throws `FormatError` for damage and `UnsupportedVersionError` for a later format. */
export function decodeCondemned(bytes: Uint8Array): CondemnedList {
  const reader = new ByteReader(bytes);
  reader.expect(magic, "a list of condemned objects");
  const end = bytes.length - 32;
  if (end < magic.length + 16) throw new FormatError("ends too early");
  if (hash("sha256", bytes.subarray(0, end)) !== Buffer.from(bytes.subarray(end)).toString("hex"))
    throw new FormatError("its digest is another");
  const version = reader.u32();
  if (version !== condemnedVersion) throw new UnsupportedVersionError(version);
  const markedAt = reader.size();
  const packs = reader.u32();
  const copies = new Map<string, ReadonlySet<ObjectId>>();
  for (let i = 0; i < packs; i++) {
    const packId = reader.digest();
    const count = reader.u32();
    const hex = reader.bytes(count * 32).toString("hex");
    const ids = new Set<ObjectId>();
    for (let at = 0; at < hex.length; at += 64) ids.add(hex.slice(at, at + 64));
    if (ids.size !== count || copies.has(packId)) throw new FormatError("it names something twice");
    copies.set(packId, ids);
  }
  reader.digest();
  reader.end();
  return { markedAt, copies };
}

/** The lists in force, read as they come: published ones never change, so each is read once. */
export class CondemnedLists {
  readonly #blobs: Blobs;
  readonly #read = new Map<string, CondemnedList>();
  readonly #unreadable = new Map<string, FormatError | UnsupportedVersionError>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  /** Keys of blobs that are no list this looprig can read. While there is one, nothing stored may be relied on. */
  get unreadable(): ReadonlyMap<string, FormatError | UnsupportedVersionError> {
    return this.#unreadable;
  }

  /** Lists anew. What was published before the call is in the answer, unless it was removed since. */
  async list(options: Abortable = {}): Promise<ReadonlyMap<string, CondemnedList>> {
    const keys: string[] = [];
    for await (const { key } of this.#blobs.list(condemnedPrefix, options)) keys.push(key);
    const listed = new Set(keys);
    for (const key of [...this.#read.keys()]) if (!listed.has(key)) this.#read.delete(key);
    for (const key of [...this.#unreadable.keys()]) if (!listed.has(key)) this.#unreadable.delete(key);
    for (const key of keys) {
      if (this.#read.has(key)) continue;
      try {
        this.#read.set(key, decodeCondemned(await this.#blobs.get(key, options)));
        this.#unreadable.delete(key);
      } catch (error) {
        // Removed since it was listed: whatever it named is gone, or was reached.
        if (isLooprigError(error, "blob.missing")) continue;
        if (!(error instanceof FormatError) && !(error instanceof UnsupportedVersionError)) throw error;
        this.#unreadable.set(key, error);
      }
    }
    return this.#read;
  }

  /** Throws unless every list could be read: a capture that cannot know what is condemned relies on nothing. */
  assertReadable(): void {
    for (const [key, cause] of this.#unreadable) {
      throw new SnapshotError(
        "snapshot.condemned_unreadable",
        `Cannot rely on what the store holds: the list "${key}" of what a collection is about to remove ` +
          (cause instanceof UnsupportedVersionError ? "is of a newer looprig" : "is damaged"),
        { key },
        { cause, hint: "looprig gc removes damaged lists; one of a newer looprig needs that looprig" },
      );
    }
  }
}

/** All lists in one. */
export function mergeCondemned(lists: Iterable<CondemnedList>): Condemned {
  const all = new Map<string, ReadonlySet<ObjectId>>();
  for (const { copies } of lists) {
    for (const [packId, ids] of copies) {
      const known = all.get(packId);
      all.set(packId, known === undefined ? ids : new Set([...known, ...ids]));
    }
  }
  return all;
}
