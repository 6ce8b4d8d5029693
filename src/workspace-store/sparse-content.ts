/** Writing the content of one file, with holes where a large one holds nothing but zeros. */
import type { Abortable, FileSystem, WorkspacePath } from "../core/index.js";
import { piecesOf } from "./content.js";
import type { FileEntry } from "./content.js";
import { objectDamaged } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { pieceBytes } from "./object-ids.js";

/** Aligned stretches of zeros of this length become holes. Shorter ones would cost more extents than they save blocks. */
export const holeBytes = 64 * 1024;
const zeros = Buffer.alloc(holeBytes);

/** The id of a piece of zeros: what has it need not be read to be left out. */
export const zeroPieceId = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58";

/** Pieces of a large file that are loaded while one is written. */
const piecesAhead = 3;

/** Writes `bytes` at `position`, however the system splits it. */
function writeAt(fileSystem: FileSystem, fd: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length;) {
    done += fileSystem.write(fd, bytes, done, bytes.length - done, position + done);
  }
}

/** Writes a piece without its aligned stretches of zeros; returns where the last byte written ends, or 0. */
function writeSparse(fileSystem: FileSystem, fd: number, piece: Buffer, position: number): number {
  let end = 0;
  let start = 0;
  const flush = (until: number) => {
    if (until > start) {
      writeAt(fileSystem, fd, piece.subarray(start, until), position + start);
      end = position + until;
    }
  };
  for (let at = 0; at + holeBytes <= piece.length; at += holeBytes) {
    if (!piece.subarray(at, at + holeBytes).equals(zeros)) continue;
    flush(at);
    start = at + holeBytes;
  }
  flush(piece.length);
  return end;
}

/** Writes the verified content of a file above `pieceBytes` into a new, empty one. `pace` lets others run between pieces. */
export async function writeLargeContent(
  fileSystem: FileSystem,
  fd: number,
  objects: ObjectStore,
  entry: FileEntry,
  { pace, ...options }: Abortable & { readonly path: WorkspacePath; readonly pace: () => Promise<void> | undefined },
): Promise<void> {
  const ids = await piecesOf(objects, entry, options);
  let written = 0;
  let ahead = 0;
  for (const [i, id] of ids.entries()) {
    for (; ahead < ids.length && ahead <= i + piecesAhead; ahead++) {
      const next = ids[ahead];
      if (next !== undefined && next !== zeroPieceId) objects.prefetch(next);
    }
    const position = i * pieceBytes;
    if (id === zeroPieceId && position + pieceBytes <= entry.size) {
      await pace();
      continue;
    }
    const piece = await objects.read(id, options);
    if (piece.length !== Math.min(pieceBytes, entry.size - position)) throw objectDamaged(id, options.path);
    written = Math.max(written, writeSparse(fileSystem, fd, piece, position));
    await pace();
  }
  if (written < entry.size) fileSystem.ftruncate(fd, entry.size);
}
