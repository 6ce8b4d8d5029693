/**
 * Roots of liveness (G2): small blobs `roots/<owner>/<id>/<digest>`, each a list of refs.
 *
 * They are blobs and not values of the KV because they must share the fate of the bytes they keep: a store that is copied,
 * restored or put on another disk takes its pins along, and a lost KV can never read as "nothing is pinned". The digest in
 * the key makes pinning more refs under one id an addition instead of a replacement, and pinning the same again nothing.
 */
import { hash } from "node:crypto";
import { displayName, isLooprigError, parseRef, SnapshotError, StorageError } from "../core/index.js";
import type { Abortable, SnapshotRef } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import { objectOfRef } from "./object-ids.js";
import { UnsupportedVersionError } from "./pack-codec.js";

export interface Pin {
  readonly owner: string;
  readonly id: string;
}
export interface PinnedRefs extends Pin {
  readonly refs: readonly SnapshotRef[];
}

const prefix = "roots/";
const magic = Buffer.from("LRROOT\0\0", "latin1");
const pinVersion = 1;
const component = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,200}$/;

export class Pins {
  readonly #blobs: Blobs;
  /** Pins never change under their key, so one that was read need not be read again. */
  readonly #read = new Map<string, readonly SnapshotRef[]>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  /** Returns whether they were not pinned like this already. */
  async pin(pin: Pin, refs: readonly SnapshotRef[], options: Abortable = {}): Promise<boolean> {
    const { key, bytes } = blobOf(pin, refs);
    return this.#blobs.put(key, [bytes], { signal: options.signal });
  }

  /** Takes back one `pin` that returned true. */
  async takeBack(pin: Pin, refs: readonly SnapshotRef[]): Promise<void> {
    await this.#blobs.delete(blobOf(pin, refs).key);
  }

  async unpin({ owner, id }: { readonly owner: string; readonly id?: string | undefined }, options: Abortable = {}) {
    const below = `${prefix}${checked(owner)}/${id === undefined ? "" : `${checked(id)}/`}`;
    for (const key of await this.#keys(below, options)) await this.#blobs.delete(key, { signal: options.signal });
  }

  /** Rejects with `snapshot.pin_damaged` when one cannot be read: a list with holes must not pass for all of them. */
  async list(options: Abortable = {}): Promise<readonly PinnedRefs[]> {
    const pins = new Map<string, { owner: string; id: string; refs: Set<SnapshotRef> }>();
    for (const key of await this.#keys(prefix, options)) {
      const [owner, id] = key.slice(prefix.length).split("/") as [string, string];
      const refs = await this.#load(key, { owner, id }, options);
      if (refs === undefined) continue;
      const name = `${owner}/${id}`;
      const pin = pins.get(name) ?? { owner, id, refs: new Set() };
      pins.set(name, pin);
      for (const ref of refs) pin.refs.add(ref);
    }
    return [...pins.values()].map(({ owner, id, refs }) => ({ owner, id, refs: [...refs] }));
  }

  /** Undefined when it was removed since it was listed. */
  async #load(key: string, pin: Pin, options: Abortable): Promise<readonly SnapshotRef[] | undefined> {
    const known = this.#read.get(key);
    if (known) return known;
    let bytes: Uint8Array;
    try {
      bytes = await this.#blobs.get(key, { signal: options.signal });
    } catch (error) {
      if (isLooprigError(error, "blob.missing")) return undefined;
      throw error;
    }
    try {
      const refs = decodePin(bytes);
      this.#read.set(key, refs);
      return refs;
    } catch (error) {
      if (error instanceof UnsupportedVersionError) {
        throw new StorageError(
          "storage.unsupported_version",
          `Cannot read the pin "${pin.id}" of "${pin.owner}": it has version ${error.version} and this looprig reads up to ${pinVersion}; use a newer one`,
          { dir: key, found: error.version, supported: pinVersion },
          { cause: error },
        );
      }
      if (!(error instanceof FormatError)) throw error;
      throw new SnapshotError(
        "snapshot.pin_damaged",
        `Cannot read the pin "${pin.id}" of "${pin.owner}": its bytes are damaged; nothing may be collected until it is removed or made anew`,
        { ...pin },
        { cause: error },
      );
    }
  }

  async #keys(below: string, options: Abortable): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.#blobs.list(below, { signal: options.signal })) keys.push(key);
    return keys;
  }
}

function blobOf({ owner, id }: Pin, refs: readonly SnapshotRef[]): { readonly key: string; readonly bytes: Buffer } {
  const bytes = encodePin(refs.map(parseRef));
  const digest = hash("sha256", bytes).slice(0, 32);
  return { key: `${prefix}${checked(owner)}/${checked(id)}/${digest}`, bytes };
}

function checked(part: string): string {
  if (component.test(part)) return part;
  throw new StorageError(
    "storage.invalid_key",
    `Cannot pin under "${displayName(part)}": it is no storage key component`,
    {
      key: part,
      reason: "it is empty, too long, a dot name, or holds a character that is not one of A-Z a-z 0-9 . _ -",
    },
  );
}

function encodePin(refs: readonly SnapshotRef[]): Buffer {
  const objects = [...new Set(refs.map(objectOfRef))].sort();
  const out = new ByteWriter(64 + objects.length * 32);
  out.bytes(magic).u32(pinVersion).u32(objects.length);
  for (const object of objects) out.digest(object);
  const body = out.take();
  return Buffer.concat([body, Buffer.from(hash("sha256", body), "hex")]);
}

/** The digest that pins of every version end with; only when it holds is the version believed. */
function decodePin(bytes: Uint8Array): readonly SnapshotRef[] {
  const reader = new ByteReader(bytes);
  reader.expect(magic, "a pin");
  const end = bytes.length - 32;
  if (end < magic.length + 8) throw new FormatError("ends too early");
  if (hash("sha256", bytes.subarray(0, end)) !== Buffer.from(bytes.subarray(end)).toString("hex"))
    throw new FormatError("its digest is another");
  // Version 0 has the same layout.
  const version = reader.u32();
  if (version > pinVersion) throw new UnsupportedVersionError(version);
  const count = reader.u32();
  if (reader.left !== count * 32 + 32) throw new FormatError("its length does not fit its count");
  return Array.from({ length: count }, () => parseRef(`v1:sha256:${reader.digest()}`));
}
