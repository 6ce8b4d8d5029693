import fs from "node:fs";
import type { FileSystem } from "../core/index.js";
import { toFsPath } from "../core/index.js";

const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = fs.constants;

/** The text of a regular file of at most `bytesMax` (default 1 MiB) bytes; throws for anything else. Never blocks on a fifo. */
export function readSmallFile(fileSystem: FileSystem, file: string, bytesMax = 1024 * 1024): string {
  const fd = fileSystem.open(toFsPath(file), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    if (!fileSystem.fstat(fd).isFile()) throw new Error(`"${file}" is not a regular file`);
    const buffer = Buffer.alloc(64 * 1024);
    const parts: Buffer[] = [];
    let total = 0;
    for (;;) {
      const got = fileSystem.read(fd, buffer, 0, buffer.length, null);
      if (got === 0) return Buffer.concat(parts).toString("utf8");
      total += got;
      if (total > bytesMax) throw new Error(`"${file}" is larger than ${bytesMax} bytes`);
      parts.push(Buffer.from(buffer.subarray(0, got)));
    }
  } finally {
    fileSystem.close(fd);
  }
}
