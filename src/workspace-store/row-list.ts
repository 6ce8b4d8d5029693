/** Putting together the rows of a directory before they go into a table. */
import { invariant } from "../core/index.js";
import { field, kinds, rowBytes, rowFlags } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

/** The rows of one directory while they are put together, in byte order of their names. */
export class RowList {
  rows = Buffer.alloc(64 * rowBytes);
  names = Buffer.allocUnsafe(4096);
  count = 0;
  namesLength = 0;

  clear(): void {
    this.count = 0;
    this.namesLength = 0;
  }

  /** A row with nothing but its name (and target); a name in bytes is one that is not UTF-8. Returns where it starts in `rows`. */
  add(kind: number, name: string | Uint8Array, target?: Uint8Array): number {
    const at = this.#next();
    this.rows.fill(0, at, at + rowBytes);
    const nameAt = this.namesLength;
    const length = typeof name === "string" ? this.#addText(name) : this.#addBytes(name);
    invariant(length > 0 && length <= 0xffff, "BUG: a file name is longer than any file system's");
    this.rows.writeUInt32LE(nameAt, at + field.nameAt);
    this.rows.writeUInt16LE(length, at + field.nameLength);
    this.rows[at + field.kind] = kind;
    if (typeof name !== "string") this.rows[at + field.flags] = rowFlags.rawName;
    if (target !== undefined) this.rows.writeUInt32LE(this.#addBytes(target), at + field.extra);
    return at;
  }

  /** A copy of a row of a table; returns where it starts in `rows`. */
  copyRow(table: TreeTable, directory: number, row: number): number {
    const at = this.#next();
    table.bytes.copy(this.rows, at, row, row + rowBytes);
    const start = table.nameStart(directory, row);
    const own = table.kind(row) === kinds.symlink ? table.extra(row) : 0;
    const length = table.nameLength(row) + own;
    this.rows.writeUInt32LE(this.namesLength, at + field.nameAt);
    this.#addBytes(table.bytes.subarray(start, start + length));
    return at;
  }

  setStamps(at: number, size: number, mtimeMs: number, ctimeMs: number, ino: number): void {
    this.rows.writeDoubleLE(size, at + field.size);
    this.rows.writeDoubleLE(mtimeMs, at + field.mtime);
    this.rows.writeDoubleLE(ctimeMs, at + field.ctime);
    this.rows.writeDoubleLE(ino, at + field.ino);
  }

  setDigest(at: number, digest: Uint8Array): void {
    this.rows.set(digest, at + field.digest);
  }

  setMode(at: number, mode: number): void {
    this.rows.writeUInt16LE(mode, at + field.mode);
  }

  setExtra(at: number, extra: number): void {
    this.rows.writeUInt32LE(extra, at + field.extra);
  }

  setClass(at: number, omission: number): void {
    this.rows[at + field.class] = omission;
  }

  setLook(at: number, look: number): void {
    this.rows[at + field.look] = look;
  }

  addFlags(at: number, flags: number): void {
    this.rows[at + field.flags] = (this.rows[at + field.flags] as number) | flags;
  }

  kind = (index: number): number => this.rows[index * rowBytes + field.kind] as number;
  extra = (index: number): number => this.rows.readUInt32LE(index * rowBytes + field.extra);

  #next(): number {
    const at = this.count * rowBytes;
    if (at + rowBytes > this.rows.length) this.rows = grown(this.rows, at);
    this.count++;
    return at;
  }

  #addText(name: string): number {
    this.#reserve(name.length * 3);
    const length = this.names.write(name, this.namesLength, "utf8");
    this.namesLength += length;
    return length;
  }

  #addBytes(bytes: Uint8Array): number {
    this.#reserve(bytes.length);
    this.names.set(bytes, this.namesLength);
    this.namesLength += bytes.length;
    return bytes.length;
  }

  #reserve(length: number): void {
    while (this.namesLength + length > this.names.length) this.names = grown(this.names, this.namesLength);
  }
}

function grown(buffer: Buffer, used: number): Buffer<ArrayBuffer> {
  const larger = Buffer.alloc(buffer.length * 2);
  buffer.copy(larger, 0, 0, used);
  return larger;
}
