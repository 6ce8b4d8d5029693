import fs from "node:fs";
import { isMissing } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

const { O_RDONLY, O_NOFOLLOW } = fs.constants;

/** At most `bytesMax` bytes from the start of a file that is no link, or undefined when there is none. */
export function readSmallFile(fileSystem: FileSystem, file: string, bytesMax: number): Uint8Array | undefined {
  let fd: number;
  try {
    fd = fileSystem.open(file, O_RDONLY | O_NOFOLLOW);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    const buffer = Buffer.alloc(bytesMax);
    let length = 0;
    while (length < bytesMax) {
      const read = fileSystem.read(fd, buffer, length, bytesMax - length, null);
      if (read === 0) break;
      length += read;
    }
    return buffer.subarray(0, length);
  } finally {
    fileSystem.close(fd);
  }
}
