import fs from "node:fs";
import type { FileSystem, FsPath } from "../core/index.js";
import { toFsPath } from "../core/index.js";

const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;

/** The text of a regular file of at most `bytesMax` (default 1 MiB) bytes; throws for anything else. Never blocks on a fifo. */
export const readSmallFile = (fileSystem: FileSystem, file: string, bytesMax = 1024 * 1024): string =>
  readSmallBytes(fileSystem, toFsPath(file), bytesMax).toString("utf8");

/** The same as bytes. */
export function readSmallBytes(fileSystem: FileSystem, file: FsPath, bytesMax: number): Buffer {
  const fd = fileSystem.open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    if (!fileSystem.fstat(fd).isFile()) throw new Error(`"${String(file)}" is not a regular file`);
    const buffer = Buffer.alloc(64 * 1024);
    const parts: Buffer[] = [];
    let total = 0;
    for (;;) {
      const got = fileSystem.read(fd, buffer, 0, buffer.length, null);
      if (got === 0) return Buffer.concat(parts);
      total += got;
      if (total > bytesMax) throw new Error(`"${String(file)}" is larger than ${bytesMax} bytes`);
      parts.push(Buffer.from(buffer.subarray(0, got)));
    }
  } finally {
    fileSystem.close(fd);
  }
}
