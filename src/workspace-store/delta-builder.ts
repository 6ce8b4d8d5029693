/**
 * Stores objects by what differs from an earlier version of theirs: a directory in which one name changed, a file with an
 * edited line. What a capture adds is then near to what was changed (C068).
 *
 * 1. A base is an object that is stored without bases itself, so reading one object never needs more than one other.
 * 2. An object becomes a patch only where that takes much less than storing it whole.
 * 3. Not many, and not much: a base must be read and decoded first, which a capture of many changed files has no time for.
 */
import { deflateRawSync } from "node:zlib";
import { isLooprigError, pacer } from "../core/index.js";
import { encodePatches, sharedEnds } from "./delta-codec.js";
import type { Patched } from "./delta-codec.js";
import type { ObjectStore } from "./object-store.js";
import type { ObjectId } from "./object-ids.js";
import { encodeBlock } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";

/** A patch costs the id of its base, so of a smaller object there is nothing to save. */
const objectBytesMin = 128;
const candidatesMax = 256;
const candidateBytesMax = 8 * 1024 * 1024;
/** What a patch may take of what the object takes whole, to be worth depending on another. */
const shareMax = 0.5;
/** Where so little of an object differs there is no need to compress it twice to know. */
const surelySmallShare = 1 / 8;
/** What a patch costs beside its bytes: the id of its base and the lengths of what is shared. */
const rowBytes = 36;
/** What differs shares a dictionary of 32 KiB; and reading one object of a block reads the bases of all. */
const blockMiddleBytes = 24 * 1024;
const blockObjects = 64;

interface Candidate {
  readonly id: ObjectId;
  readonly bytes: Buffer;
  readonly base: ObjectId;
}

export class DeltaBuilder {
  readonly #objects: ObjectStore;
  #candidates: Candidate[] = [];
  #offered = 0;
  #offeredBytes = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** Takes a copy of the bytes, or returns false: then the object is to be stored whole. */
  offer(id: ObjectId, bytes: Uint8Array, earlier: ObjectId): boolean {
    if (bytes.length < objectBytesMin || this.#offered === candidatesMax) return false;
    if (this.#offeredBytes + bytes.length > candidateBytesMax) return false;
    const base = this.#objects.wholeOf(earlier);
    if (base === undefined || base === id) return false;
    this.#offered++;
    this.#offeredBytes += bytes.length;
    this.#candidates.push({ id, bytes: Buffer.from(bytes), base });
    return true;
  }

  /** Hands out blocks of patches, and the objects that are better stored whole. */
  async finish(emit: (block: EncodedBlock) => void, addWhole: (id: ObjectId, bytes: Buffer) => void): Promise<void> {
    const candidates = this.#candidates;
    this.#candidates = [];
    let group: Patched[] = [];
    let middleBytes = 0;
    const close = (): void => {
      if (group.length > 0) emit(encodePatches(group));
      group = [];
      middleBytes = 0;
    };
    const pace = pacer(undefined);
    const ids = Buffer.from(candidates.map(({ id }) => id).join(""), "hex");
    for (const candidate of candidates) {
      await pace();
      const patched = await this.#patched(candidate, ids);
      if (patched === undefined) {
        addWhole(candidate.id, candidate.bytes);
        continue;
      }
      const own = differing(patched);
      if (middleBytes + own > blockMiddleBytes || group.length === blockObjects) close();
      group.push(patched);
      middleBytes += own;
    }
    close();
  }

  async #patched({ id, bytes, base }: Candidate, ids: Buffer): Promise<Patched | undefined> {
    let baseBytes: Buffer;
    try {
      baseBytes = await this.#objects.read(base);
    } catch (error) {
      if (!isLooprigError(error, "snapshot.object_missing", "snapshot.object_damaged")) throw error;
      return undefined;
    }
    const patched: Patched = { id, bytes, base: { id: base, bytes: baseBytes } };
    return isWorthIt(patched, ids) ? patched : undefined;
  }
}

/** Bytes that differ, in the object and in its base. */
function differing({ bytes, base }: Patched): number {
  const { prefix, suffix } = sharedEnds(bytes, base.bytes);
  return bytes.length + base.bytes.length - 2 * (prefix + suffix);
}

/** `ids` are those of the objects that may come to share its block, as in the dictionary there. */
function isWorthIt({ id, bytes, base }: Patched, ids: Buffer): boolean {
  const { prefix, suffix } = sharedEnds(bytes, base.bytes);
  const middle = bytes.subarray(prefix, bytes.length - suffix);
  if (middle.length <= bytes.length * surelySmallShare) return true;
  const whole = encodeBlock(Buffer.from(bytes), [id], [bytes.length]).stored.length;
  const most = whole * shareMax - rowBytes;
  if (middle.length <= most) return true;
  const dictionary = Buffer.concat([base.bytes.subarray(prefix, base.bytes.length - suffix), ids]);
  return deflateRawSync(middle, { dictionary }).length <= most;
}
