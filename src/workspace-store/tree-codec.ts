/**
 * The canonical encoding of one directory (G6). FROZEN, like `object-ids.ts`: its SHA-256 is the directory's id.
 *
 *   "looprig.tree.v1" NUL · u32 count · entries in byte order of their names, each
 *     u8 kind · u16 length · name
 *     1 file       u16 mode · u64 size · 32-byte id
 *     2 directory  u16 mode · 32-byte id
 *     3 symlink    u32 length · target
 *     4 omitted    u8 class
 *
 * One directory has exactly one encoding: the decoder refuses whatever the encoder would not have made, so equal ids are
 * equal directories and nothing but a clean name ever reaches the file system.
 */
import { invariant, nameFromBytes, nameToBytes } from "../core/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import { objectIdOf } from "./object-ids.js";
import { field, kinds, rowBytes } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";
import type { ContentId, OmissionClass, TreeEntry, TreeId } from "./contracts.js";

const domain = Buffer.from("looprig.tree.v1\0", "latin1");

/** The position of a class is its number in the encoding: append only. */
export const omissionClasses = [
  "special",
  "over-size",
  "excluded",
  "vcs",
  "private",
  "mount",
  "unreadable",
  "unstable",
] as const satisfies readonly OmissionClass[];

export type NamedEntry = readonly [name: string, entry: TreeEntry];

/** Encodes entries that are in byte order of their names, without repeats. */
export function encodeTree(entries: readonly NamedEntry[]): Buffer {
  const out = new ByteWriter(32 + entries.length * 72);
  out.bytes(domain).u32(entries.length);
  for (const [name, entry] of entries) {
    const bytes = nameToBytes(name);
    invariant(bytes.length > 0 && bytes.length <= 0xffff, "BUG: a file name is longer than any file system's");
    out.u8(kinds[entry.kind]).u16(bytes.length).bytes(bytes);
    switch (entry.kind) {
      case "file":
        out.u16(entry.mode).size(entry.size).digest(entry.id);
        break;
      case "directory":
        out.u16(entry.mode).digest(entry.id);
        break;
      case "symlink": {
        const target = nameToBytes(entry.target);
        out.u32(target.length).bytes(target);
        break;
      }
      case "omitted":
        out.u8(omissionClasses.indexOf(entry.class));
        break;
      default:
        entry satisfies never;
    }
  }
  return out.take();
}

/** The encoding of a directory of a table: the bytes that `encodeTree` makes of the same entries. */
export function encodeRows(table: TreeTable, directory: number): Buffer {
  const count = table.rowCount(directory);
  const out = new ByteWriter(32 + count * 72);
  out.bytes(domain).u32(count);
  for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
    const start = table.nameStart(directory, row);
    const length = table.nameLength(row);
    const kind = table.kind(row);
    out
      .u8(kind)
      .u16(length)
      .bytes(table.bytes.subarray(start, start + length));
    const digest = row + field.digest;
    switch (kind) {
      case kinds.file:
        out
          .u16(table.mode(row))
          .size(table.size(row))
          .bytes(table.bytes.subarray(digest, digest + 32));
        break;
      case kinds.directory:
        out.u16(table.mode(row)).bytes(table.bytes.subarray(digest, digest + 32));
        break;
      case kinds.symlink: {
        const target = table.target(directory, row);
        out.u32(target.length).bytes(target);
        break;
      }
      default:
        out.u8(table.omissionClass(row));
    }
  }
  return out.take();
}

/** The id of a directory without names. */
export const emptyDirectoryId = objectIdOf(encodeTree([])) as TreeId;

/** Strict inverse of `encodeTree`. Throws `FormatError`. */
export function decodeTree(bytes: Uint8Array): readonly NamedEntry[] {
  const reader = new ByteReader(bytes);
  reader.expect(domain, "a directory");
  const count = reader.u32();
  const entries: NamedEntry[] = [];
  let previous: Buffer | undefined;
  for (let i = 0; i < count; i++) {
    const kind = reader.u8();
    const name = reader.bytes(reader.u16());
    assertName(name);
    if (previous && Buffer.compare(previous, name) >= 0) throw new FormatError("its names are not in order");
    previous = name;
    entries.push([nameFromBytes(name), decodeEntry(reader, kind)]);
  }
  reader.end();
  return entries;
}

function decodeEntry(reader: ByteReader, kind: number): TreeEntry {
  switch (kind) {
    case kinds.file:
      return { kind: "file", mode: decodeMode(reader), size: reader.size(), id: reader.digest() as ContentId };
    case kinds.directory:
      return { kind: "directory", mode: decodeMode(reader), id: reader.digest() as TreeId };
    case kinds.symlink: {
      const target = reader.bytes(reader.u32());
      if (target.length === 0 || target.includes(0)) throw new FormatError("a link's target is empty or holds a NUL");
      return { kind: "symlink", target: nameFromBytes(target) };
    }
    case kinds.omitted: {
      const omission = omissionClasses[reader.u8()];
      if (omission === undefined) throw new FormatError("an omission is of an unknown class");
      return { kind: "omitted", class: omission };
    }
    default:
      throw new FormatError(`an entry is of the unknown kind ${kind}`);
  }
}

function decodeMode(reader: ByteReader): number {
  const mode = reader.u16();
  if (mode > 0o777) throw new FormatError("a mode holds more than permission bits");
  return mode;
}

const slash = 0x2f;
const dot = 0x2e;

function assertName(name: Buffer): void {
  const dots = name.length <= 2 && name.every((byte) => byte === dot);
  if (dots || name.includes(slash) || name.includes(0)) throw new FormatError("a name is no file name");
}
