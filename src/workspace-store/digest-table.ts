/**
 * A set of SHA-256 digests, each with a number that stands for it: open addressing over typed arrays.
 *
 * A `Map` of hex strings costs some 150 bytes and a microsecond an entry, which shows at a hundred thousand; this costs 50
 * bytes and looks a digest up where it lies, without making a string of it. Digests spread evenly by themselves, so their
 * first four bytes are the hash. Entries are never removed; owners mark what no longer counts by the entry's number.
 */
import { invariant } from "../core/index.js";

const digestBytes = 32;
const free = -1;

export class DigestTable {
  #digests = Buffer.allocUnsafe(1024 * digestBytes);
  #slots = new Int32Array(2048).fill(free);
  #count = 0;
  readonly #scratch = Buffer.alloc(digestBytes);

  /** How many digests there are; their numbers are 0 to `size - 1`. */
  get size(): number {
    return this.#count;
  }

  /** The digests end to end, by their numbers. Valid until the next `add`. */
  get bytes(): Buffer {
    return this.#digests.subarray(0, this.#count * digestBytes);
  }

  /** The number of a digest given in hex, or -1. */
  find(hex: string): number {
    this.#scratch.write(hex, 0, digestBytes, "hex");
    return this.findAt(this.#scratch, 0);
  }

  /** The number of the digest that lies in `bytes` at `at`, or -1. */
  findAt(bytes: Uint8Array, at: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashAt(bytes, at) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot] as number;
      if (number === free || this.#isAt(number, bytes, at)) return number;
    }
  }

  /** The number of a digest, given in hex, that is there or is added now. */
  add(hex: string): number {
    const found = this.find(hex);
    if (found !== free) return found;
    invariant(hex.length === digestBytes * 2, "BUG: an object id is no digest");
    if (this.#count * 2 >= this.#slots.length) this.#grow();
    const number = this.#count++;
    if (number * digestBytes === this.#digests.length) this.#digests = doubled(this.#digests);
    this.#scratch.copy(this.#digests, number * digestBytes);
    this.#place(number);
    return number;
  }

  hex(number: number): string {
    return this.#digests.toString("hex", number * digestBytes, (number + 1) * digestBytes);
  }

  #isAt(number: number, bytes: Uint8Array, at: number): boolean {
    const own = number * digestBytes;
    for (let i = 0; i < digestBytes; i++) if (this.#digests[own + i] !== bytes[at + i]) return false;
    return true;
  }

  #place(number: number): void {
    const mask = this.#slots.length - 1;
    let slot = hashAt(this.#digests, number * digestBytes) & mask;
    while (this.#slots[slot] !== free) slot = (slot + 1) & mask;
    this.#slots[slot] = number;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(free);
    for (let number = 0; number < this.#count; number++) this.#place(number);
  }
}

/** 32 evenly spread bits of the digest at `at`. */
export const hashAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)) >>>
  0;

function doubled(buffer: Buffer): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafe(buffer.length * 2);
  buffer.copy(larger);
  return larger;
}
