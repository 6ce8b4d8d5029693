/**
 * A set of SHA-256 digests, each with a number that stands for it: open addressing over typed arrays.
 *
 * A `Map` of hex strings costs some 150 bytes and a microsecond an entry, which shows at a hundred thousand; this costs 50
 * bytes and looks a digest up where it lies, without making a string of it. Digests spread evenly by themselves, so their
 * first four bytes are the hash. Entries are never removed; owners mark what no longer counts by the entry's number.
 */
import { invariant } from "../core/index.js";

const digestBytes = 32;
/** Digests are compared and copied a word at a time. */
const digestWords = digestBytes / 4;
const free = -1;

export class DigestTable {
  #words = new Uint32Array(1024 * digestWords);
  #slots = new Int32Array(2048).fill(free);
  #count = 0;
  readonly #scratch = Buffer.from(new ArrayBuffer(digestBytes));
  readonly #scratchWords = new Uint32Array(this.#scratch.buffer);
  /** The words of the buffer that was last asked about: callers go through one. */
  #asked: Uint32Array = this.#scratchWords;

  /** How many digests there are; their numbers are 0 to `size - 1`. */
  get size(): number {
    return this.#count;
  }

  /** The digests end to end, by their numbers. Valid until the next `add`. */
  get bytes(): Buffer {
    return Buffer.from(this.#words.buffer, 0, this.#count * digestBytes);
  }

  /** The number of a digest given in hex, or -1. */
  find(hex: string): number {
    this.#scratch.write(hex, 0, digestBytes, "hex");
    return this.#find(this.#scratchWords, 0);
  }

  /** The number of the digest that lies in `bytes` at `at`, or -1. */
  findAt(bytes: Uint8Array, at: number): number {
    const words = this.#wordsOf(bytes, at);
    return this.#find(words, words === this.#scratchWords ? 0 : (bytes.byteOffset + at) / 4);
  }

  /** The number of a digest, given in hex, that is there or is added now. */
  add(hex: string): number {
    invariant(hex.length === digestBytes * 2, "BUG: an object id is no digest");
    this.#scratch.write(hex, 0, digestBytes, "hex");
    return this.#add(this.#scratchWords, 0);
  }

  /** The same for the digest that lies in `bytes` at `at`. */
  addAt(bytes: Uint8Array, at: number): number {
    const words = this.#wordsOf(bytes, at);
    return this.#add(words, words === this.#scratchWords ? 0 : (bytes.byteOffset + at) / 4);
  }

  hex(number: number): string {
    return this.bytes.toString("hex", number * digestBytes, (number + 1) * digestBytes);
  }

  #find(words: Uint32Array, at: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = (words[at] as number) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#slots[slot] as number;
      if (number === free || isSame(this.#words, number * digestWords, words, at)) return number;
    }
  }

  #add(words: Uint32Array, at: number): number {
    const found = this.#find(words, at);
    if (found !== free) return found;
    if (this.#count * 2 >= this.#slots.length) this.#grow();
    const number = this.#count++;
    const own = number * digestWords;
    if (own === this.#words.length) {
      const larger = new Uint32Array(own * 2);
      larger.set(this.#words);
      this.#words = larger;
    }
    for (let i = 0; i < digestWords; i++) this.#words[own + i] = words[at + i] as number;
    this.#place(number);
    return number;
  }

  /** Words among which the digest at `at` is: those of its own buffer, or of the scratch, into which it is copied. */
  #wordsOf(bytes: Uint8Array, at: number): Uint32Array {
    const { buffer, byteOffset } = bytes;
    if ((byteOffset + at) % 4 !== 0) {
      for (let i = 0; i < digestBytes; i++) this.#scratch[i] = bytes[at + i] as number;
      return this.#scratchWords;
    }
    if (this.#asked.buffer !== buffer) this.#asked = new Uint32Array(buffer, 0, buffer.byteLength >> 2);
    return this.#asked;
  }

  #place(number: number): void {
    const mask = this.#slots.length - 1;
    let slot = (this.#words[number * digestWords] as number) & mask;
    while (this.#slots[slot] !== free) slot = (slot + 1) & mask;
    this.#slots[slot] = number;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(free);
    for (let number = 0; number < this.#count; number++) this.#place(number);
  }
}

function isSame(a: Uint32Array, at: number, b: Uint32Array, bAt: number): boolean {
  for (let i = 0; i < digestWords; i++) if (a[at + i] !== b[bAt + i]) return false;
  return true;
}

/** 32 evenly spread bits of the digest at `at`. */
export const hashAt = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)) >>>
  0;
