/**
 * Stores small objects by what differs from an earlier version of theirs: the tree node of a large directory in which one
 * name changed, a source file with an edited line. What a capture adds is then near to what was changed (C068).
 *
 * 1. A base is an object that is stored without bases itself, so reading one object never needs more than one other.
 * 2. An object becomes a delta only where that takes much less than storing it whole.
 * 3. Few and small: a base must be read and decoded first, which a capture of many changed files has no time for.
 */
import type { ObjectStore } from "./object-store.js";
import type { ObjectId } from "./object-ids.js";
import { deltaWindowBytes, encodeBlock, encodeDelta } from "./pack-codec.js";
import type { EncodedBlock } from "./pack-codec.js";
import { isLooprigError, pacer } from "../core/index.js";

/** Below it there is little to save, beyond it deflate does not see the base. */
const objectBytes = { min: 512, max: deltaWindowBytes - 1024 };
const objectsMax = 256;
/** What a base must save to be worth depending on. */
const shareMax = 0.5;
/** What a block costs beside its bytes, for each object: its rows in pack and index, and its base in both. */
const rowBytes = 64;

interface Candidate {
  readonly id: ObjectId;
  readonly bytes: Buffer;
  readonly base: ObjectId;
}
interface Delta {
  readonly id: ObjectId;
  readonly bytes: Buffer;
  readonly base: { readonly id: ObjectId; readonly bytes: Buffer };
}

export class DeltaBuilder {
  readonly #objects: ObjectStore;
  #candidates: Candidate[] = [];
  #offered = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** Takes a copy of the bytes, or returns false: then the object is to be stored whole. */
  offer(id: ObjectId, bytes: Uint8Array, earlier: ObjectId): boolean {
    if (bytes.length < objectBytes.min || bytes.length > objectBytes.max || this.#offered === objectsMax) return false;
    const base = this.#objects.wholeOf(earlier);
    if (base === undefined || base === id) return false;
    this.#offered++;
    this.#candidates.push({ id, bytes: Buffer.from(bytes), base });
    return true;
  }

  /** Hands out delta blocks, and the objects that are better stored whole. */
  async finish(emit: (block: EncodedBlock) => void, addWhole: (id: ObjectId, bytes: Buffer) => void): Promise<void> {
    const candidates = this.#candidates;
    this.#candidates = [];
    let group: Delta[] = [];
    let span = 0;
    const close = (): void => {
      if (group.length > 0) emit(encodeGroup(group));
      group = [];
      span = 0;
    };
    const pace = pacer(undefined);
    for (const candidate of candidates) {
      await pace();
      const delta = await this.#deltaOf(candidate);
      if (delta === undefined) {
        addWhole(candidate.id, candidate.bytes);
        continue;
      }
      const own = Math.max(delta.bytes.length, delta.base.bytes.length);
      if (span + own > deltaWindowBytes) close();
      group.push(delta);
      span += own;
    }
    close();
  }

  async #deltaOf({ id, bytes, base }: Candidate): Promise<Delta | undefined> {
    let baseBytes: Buffer;
    try {
      baseBytes = await this.#objects.read(base);
    } catch (error) {
      if (!isLooprigError(error, "snapshot.object_missing", "snapshot.object_damaged")) throw error;
      return undefined;
    }
    if (baseBytes.length < objectBytes.min || baseBytes.length > objectBytes.max) return undefined;
    const delta: Delta = { id, bytes, base: { id: base, bytes: baseBytes } };
    const whole = encodeBlock(bytes, [id], [bytes.length]).stored.length;
    return encodeGroup([delta]).stored.length + rowBytes < whole * shareMax ? delta : undefined;
  }
}

const encodeGroup = (group: readonly Delta[]): EncodedBlock =>
  encodeDelta(
    Buffer.concat(group.map(({ bytes }) => bytes)),
    group.map(({ id }) => id),
    group.map(({ bytes }) => bytes.length),
    group.map(({ base }) => base),
  );
