/**
 * Which objects need not be stored: the store has them, or somebody is storing them right now.
 *
 * Between threads this is a table of fingerprints in shared memory. A fingerprint can stand for another object by chance (once
 * in some ten thousand captures of a hundred thousand files); the object that then was not stored is found missing when the
 * capture looks every object up before it returns a ref (G3), and is read again.
 */
import { hashAt } from "./digest-table.js";

export interface Claims {
  /** Whether the caller is the one who stores the object with this digest. */
  claim(digest: Uint8Array): boolean;
}

export class SharedClaims implements Claims {
  readonly buffer: SharedArrayBuffer;
  readonly #slots: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#slots = new Int32Array(buffer);
  }

  static forObjects(count: number): SharedClaims {
    let slots = 4096;
    while (slots < count * 2) slots *= 2;
    return new SharedClaims(new SharedArrayBuffer(slots * 4));
  }

  claim(digest: Uint8Array): boolean {
    const mask = this.#slots.length - 1;
    // Zero means free, and other bits than those that choose the slot tell objects of one slot apart.
    const mark = hashAt(digest, 4) | 0 || 1;
    let slot = hashAt(digest, 0) & mask;
    for (let probes = 0; probes <= mask; probes++, slot = (slot + 1) & mask) {
      const found = Atomics.compareExchange(this.#slots, slot, 0, mark);
      if (found === 0) return true;
      if (found === mark) return false;
    }
    // Full: storing twice is harmless.
    return true;
  }
}
