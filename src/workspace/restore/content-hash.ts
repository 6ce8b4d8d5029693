/** The content id of a file that is read piece by piece (G6). */
import type { FileSystem } from "../../core/index.js";
import { contentIdOf, encodePieces, objectIdOf, pieceBytes } from "../../workspace-store/index.js";
import type { ContentId } from "../../workspace-store/index.js";

/**
 * Reads the open file from its start and returns its content id, or undefined when it does not have `size` bytes.
 * `pace` runs after each piece, so that nobody waits for a large file.
 */
export async function hashFile(
  fileSystem: FileSystem,
  fd: number,
  size: number,
  pace: () => Promise<void> | undefined,
): Promise<ContentId | undefined> {
  const buffer = Buffer.allocUnsafe(Math.min(size + 1, pieceBytes));
  if (size <= pieceBytes) {
    const read = readFully(fileSystem, fd, buffer, 0);
    if (read !== size || !endsAt(fileSystem, fd, size)) return undefined;
    return contentIdOf(buffer.subarray(0, size));
  }
  const ids: string[] = [];
  for (let offset = 0; offset < size; offset += pieceBytes) {
    const length = Math.min(pieceBytes, size - offset);
    const piece = buffer.subarray(0, length);
    if (readFully(fileSystem, fd, piece, offset) !== length) return undefined;
    ids.push(objectIdOf(piece));
    await pace();
  }
  if (!endsAt(fileSystem, fd, size)) return undefined;
  return objectIdOf(encodePieces(size, ids)) as ContentId;
}

/** Fills `buffer` from the position given; returns how much there was. */
export function readFully(fileSystem: FileSystem, fd: number, buffer: Uint8Array, position: number): number {
  let done = 0;
  while (done < buffer.length) {
    const read = fileSystem.read(fd, buffer, done, buffer.length - done, position + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}

const endsAt = (fileSystem: FileSystem, fd: number, size: number): boolean =>
  fileSystem.read(fd, Buffer.alloc(1), 0, 1, size) === 0;
