/** Gathers objects into blocks and compresses each block when it is full. Small objects share one; see `pack-codec.ts`. */
import type { EncodedBlock } from "./pack-codec.js";
import { blockBytes, blockObjectsMax, encodeBlock } from "./pack-codec.js";
import type { ObjectId } from "./object-ids.js";

export class BlockBuilder {
  readonly #emit: (block: EncodedBlock) => void;
  readonly #bytes = Buffer.allocUnsafe(blockBytes);
  #length = 0;
  #ids: ObjectId[] = [];
  #lengths: number[] = [];

  constructor(emit: (block: EncodedBlock) => void) {
    this.#emit = emit;
  }

  /** Takes a copy of the bytes. */
  add(id: ObjectId, bytes: Uint8Array): void {
    if (bytes.length > blockBytes / 2) {
      this.#emit(encodeBlock(Buffer.from(bytes), [id], [bytes.length]));
      return;
    }
    if (this.#length + bytes.length > blockBytes || this.#ids.length === blockObjectsMax) this.close();
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    this.#ids.push(id);
    this.#lengths.push(bytes.length);
  }

  /** Emits what is left. */
  close(): void {
    if (this.#ids.length === 0) return;
    this.#emit(encodeBlock(Buffer.from(this.#bytes.subarray(0, this.#length)), this.#ids, this.#lengths));
    this.#length = 0;
    this.#ids = [];
    this.#lengths = [];
  }
}
