/**
 * Reading and writing of the fixed-width, big-endian fields all formats here are made of.
 * A reader never looks past its bytes: whatever is cut short or left over is a `FormatError`, which callers turn into
 * "damaged"; it never becomes a value.
 */

/** Bytes that are not what their format says. Internal: readers of the store translate it into a typed error. */
export class FormatError extends Error {
  override readonly name = "FormatError";
}

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get at(): number {
    return this.#at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** The next `length` bytes, not copied. */
  bytes(length: number): Buffer {
    const at = this.#pass(length);
    return this.#bytes.subarray(at, this.#at);
  }

  u8(): number {
    return this.#bytes.readUInt8(this.#pass(1));
  }

  u16(): number {
    return this.#bytes.readUInt16BE(this.#pass(2));
  }

  u32(): number {
    return this.#bytes.readUInt32BE(this.#pass(4));
  }

  /** A u64 that fits a JavaScript number. */
  size(): number {
    const value = this.u64();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new FormatError(`holds the impossible size ${value.toString()}`);
    return Number(value);
  }

  u64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#pass(8));
  }

  i64(): bigint {
    return this.#bytes.readBigInt64BE(this.#pass(8));
  }

  /** 32 bytes as lowercase hex. */
  digest(): string {
    return this.bytes(32).toString("hex");
  }

  expect(literal: Uint8Array, what: string): void {
    if (!this.bytes(literal.length).equals(literal)) throw new FormatError(`does not start as ${what}`);
  }

  end(): void {
    if (this.left > 0) throw new FormatError(`has ${this.left} bytes too many`);
  }

  /** Where the next `length` bytes start, which count as read. */
  #pass(length: number): number {
    if (length > this.left) throw new FormatError(`ends ${length - this.left} bytes too early at byte ${this.#at}`);
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

/** Grows as needed; `take` hands out what was written. */
export class ByteWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity = 1024) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get length(): number {
    return this.#length;
  }

  bytes(value: Uint8Array): this {
    const at = this.#reserve(value.length);
    this.#bytes.set(value, at);
    return this;
  }

  u8(value: number): this {
    const at = this.#reserve(1);
    this.#bytes.writeUInt8(value, at);
    return this;
  }

  u16(value: number): this {
    const at = this.#reserve(2);
    this.#bytes.writeUInt16BE(value, at);
    return this;
  }

  u32(value: number): this {
    const at = this.#reserve(4);
    this.#bytes.writeUInt32BE(value, at);
    return this;
  }

  size(value: number): this {
    return this.u64(BigInt(value));
  }

  u64(value: bigint): this {
    const at = this.#reserve(8);
    this.#bytes.writeBigUInt64BE(value, at);
    return this;
  }

  i64(value: bigint): this {
    const at = this.#reserve(8);
    this.#bytes.writeBigInt64BE(value, at);
    return this;
  }

  digest(hex: string): this {
    const at = this.#reserve(32);
    this.#bytes.write(hex, at, 32, "hex");
    return this;
  }

  /** What was written. The writer must not be used afterwards. */
  take(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  // May replace the buffer, so it must run before `#bytes` is looked at.
  #reserve(length: number): number {
    const at = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.#length, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, at);
      this.#bytes = larger;
    }
    return at;
  }
}
