/**
 * Node decodes the command line as UTF-8 and puts U+FFFD where bytes are none, which loses them. On Linux the kernel keeps
 * the bytes: there such words are read again, in the reversible spelling of core's names.
 */
import fs from "node:fs";
import { nameFromBytes } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

const source = "/proc/self/cmdline";

/** `decoded` are the last words of the command line, as Node gives them. */
export function rawWords(decoded: readonly string[], fileSystem: FileSystem): readonly string[] {
  if (!decoded.some((word) => word.includes("\ufffd"))) return decoded;
  let bytes: Buffer;
  try {
    bytes = readAll(fileSystem);
  } catch {
    // No such file on this system: the words stay as they are, and the file is not found under that name.
    return decoded;
  }
  const words = splitWords(bytes).slice(-decoded.length);
  // A process may rewrite its command line; what does not decode to the same words is not it.
  const same = words.length === decoded.length && words.every((word, i) => word.toString("utf8") === decoded[i]);
  return same ? words.map(nameFromBytes) : decoded;
}

function splitWords(bytes: Buffer): Buffer[] {
  const words: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, start)) {
    words.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return words;
}

function readAll(fileSystem: FileSystem): Buffer {
  const fd = fileSystem.open(source, fs.constants.O_RDONLY);
  try {
    const pieces: Buffer[] = [];
    for (;;) {
      const piece = Buffer.alloc(64 * 1024);
      const read = fileSystem.read(fd, piece, 0, piece.length, null);
      if (read === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, read));
    }
  } finally {
    fileSystem.close(fd);
  }
}
