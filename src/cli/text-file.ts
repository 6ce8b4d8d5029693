/** Small text files that the command line is told to read, within a bound and through the seam. */
import fs from "node:fs";
import type { FileSystem } from "../core/index.js";

/** The text, or why it is none. What the operating system refuses is thrown. A fifo or device is never opened. */
export function readTextFile(
  fileSystem: FileSystem,
  file: string,
  bytesMax: number,
): { readonly text: string } | { readonly problem: string } {
  if (!fileSystem.stat(file).isFile()) return { problem: "it is no regular file" };
  const fd = fileSystem.open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const size = Number(fileSystem.fstat(fd).size);
    const tooLong = { problem: `it is longer than ${bytesMax} bytes` };
    if (size > bytesMax) return tooLong;
    // Room for one more byte tells a file that is growing.
    const bytes = Buffer.alloc(size + 1);
    let length = 0;
    for (;;) {
      const read = fileSystem.read(fd, bytes, length, bytes.length - length, length);
      if (read === 0) break;
      length += read;
      if (length === bytes.length) return { problem: "it grew while it was read" };
    }
    return { text: bytes.toString("utf8", 0, length).replace(/^\ufeff/, "") };
  } finally {
    fileSystem.close(fd);
  }
}
