import fs from "node:fs";
import { Directory, baseName, openBelow, parentOf } from "../core/index.js";
import type { FileSystem, WorkspacePath } from "../core/index.js";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = fs.constants;
const pieceBytes = 256 * 1024;

/** The bytes of a regular file of the live tree, reached without following a link. Never blocks on a fifo. */
export async function* readLiveFile(
  fileSystem: FileSystem,
  root: string,
  path: WorkspacePath,
): AsyncIterable<Uint8Array> {
  using top = Directory.open(fileSystem, root);
  using directory = openBelow(top, parentOf(path));
  const fd = fileSystem.open(directory.at(baseName(path)), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    if (!fileSystem.fstat(fd).isFile()) return;
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceBytes);
      const got = fileSystem.read(fd, piece, 0, piece.length, null);
      if (got === 0) return;
      yield piece.subarray(0, got);
    }
  } finally {
    fileSystem.close(fd);
  }
}
