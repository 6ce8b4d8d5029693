/**
 * Identity of everything a snapshot is made of (G6). FROZEN: a change here changes every ref ever shown to anyone, and
 * `golden.json` fails. Packs, codecs, indexes and time stamps never enter.
 *
 * Every stored object is named by the SHA-256 of its own bytes, so that whatever reads one can verify it without knowing
 * what it is. What an object *is* follows from who names it: a file of at most `pieceBytes` names its content, a larger one
 * its list of pieces, a directory its entries. The domain words keep lists, directories and snapshots apart from each
 * other; a small file may spell any of them out, and the size in its entry says that it is content all the same.
 */
import { hash } from "node:crypto";
import type { SnapshotRef } from "../core/index.js";
import { ByteReader, ByteWriter, FormatError } from "./byte-codec.js";
import type { ContentId, TreeId } from "./contracts.js";

/** The longest content that is one object; larger files are lists of pieces of this size. A constant of the ref. */
export const pieceBytes = 1024 * 1024;

const piecesDomain = Buffer.from("looprig.pieces.v1\0", "latin1");
const snapshotDomain = Buffer.from("looprig.snapshot.v1\0", "latin1");
const refPrefix = "v1:sha256:";

/** The name of an object: 64 lowercase hex digits. */
export type ObjectId = string;

export const objectIdOf = (bytes: Uint8Array): ObjectId => hash("sha256", bytes);

/** The id of a file of at most `pieceBytes`. */
export const contentIdOf = (bytes: Uint8Array): ContentId => objectIdOf(bytes) as ContentId;

/** How many pieces a file has. */
export const pieceCount = (size: number): number => Math.ceil(size / pieceBytes);

/** Domain word, u64 size, u32 count, the ids. Its SHA-256 is the id of a file larger than `pieceBytes`. */
export function encodePieces(size: number, ids: readonly ObjectId[]): Buffer {
  const out = new ByteWriter(piecesDomain.length + 12 + ids.length * 32);
  out.bytes(piecesDomain).size(size).u32(ids.length);
  for (const id of ids) out.digest(id);
  return out.take();
}

/** Strict: throws `FormatError` for anything `encodePieces` does not make. */
export function decodePieces(bytes: Uint8Array): { readonly size: number; readonly ids: readonly ObjectId[] } {
  const reader = new ByteReader(bytes);
  reader.expect(piecesDomain, "a list of pieces");
  const size = reader.size();
  const count = reader.u32();
  if (size <= pieceBytes || count !== pieceCount(size)) throw new FormatError("its pieces do not add up to its size");
  if (reader.left !== count * 32) throw new FormatError("its length does not fit its count");
  const ids = Array.from({ length: count }, () => reader.digest());
  return { size, ids };
}

/** Domain word and the id of the root directory's encoding. Its SHA-256 is the ref. */
export function encodeSnapshot(root: TreeId): Buffer {
  return new ByteWriter(64).bytes(snapshotDomain).digest(root).take();
}

export function decodeSnapshot(bytes: Uint8Array): TreeId {
  const reader = new ByteReader(bytes);
  reader.expect(snapshotDomain, "a snapshot");
  const root = reader.digest() as TreeId;
  reader.end();
  return root;
}

export const refOf = (root: TreeId): SnapshotRef => `${refPrefix}${objectIdOf(encodeSnapshot(root))}` as SnapshotRef;
/** The object that a ref names: the encoding of its snapshot. */
export const objectOfRef = (ref: SnapshotRef): ObjectId => ref.slice(refPrefix.length);
