/** Buffers by key, the least recently used dropped once their sizes exceed the bound. The newest one always stays. */
export class ByteLru<K> {
  readonly #bytesMax: number;
  readonly #entries = new Map<K, Buffer>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: K): Buffer | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: Buffer): void {
    this.#bytes += value.length - (this.#entries.get(key)?.length ?? 0);
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const [oldest, { length }] of this.#entries) {
      if (this.#bytes <= this.#bytesMax || this.#entries.size === 1) break;
      this.#entries.delete(oldest);
      this.#bytes -= length;
    }
  }
}
