/** Small text files that the command line is told to read, within a bound and through the seam. */
import fs from "node:fs";
import { Directory, baseName, isMissing, openBelow, parentOf, parseWorkspacePath } from "../core/index.js";
import type { FileSystem } from "../core/index.js";

const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = fs.constants;

/** The text, or why it is none. */
export type TextRead = { readonly text: string } | { readonly problem: string };

/** A file that the user names, wherever it is. What the operating system refuses is thrown. A fifo or device is never opened. */
export function readTextFile(fileSystem: FileSystem, file: string, bytesMax: number): TextRead {
  if (!fileSystem.stat(file).isFile()) return irregular;
  return readOpened(fileSystem, fileSystem.open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY), bytesMax);
}

/**
 * A file that lies in a directory nobody vouches for: links are followed as long as they stay in `root`, which is canonical.
 * Undefined where nothing has the name. What the operating system refuses is thrown, and `path.escapes` where a link is
 * swapped in meanwhile.
 */
export function readTextBelow(
  fileSystem: FileSystem,
  root: string,
  name: string,
  bytesMax: number,
): TextRead | undefined {
  using top = Directory.open(fileSystem, root);
  const prefix = root.endsWith("/") ? root : `${root}/`;
  let real: string;
  try {
    top.lstat(name);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    real = fileSystem.realpath(`${prefix}${name}`);
  } catch (error) {
    if (isMissing(error)) return { problem: "it is a link to nothing" };
    throw error;
  }
  if (!real.startsWith(prefix)) return { problem: "it is a link that leads out of the directory" };
  const path = parseWorkspacePath(real.slice(prefix.length));
  using directory = openBelow(top, parentOf(path));
  if (!directory.lstat(baseName(path)).isFile()) return irregular;
  const fd = fileSystem.open(directory.at(baseName(path)), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  return readOpened(fileSystem, fd, bytesMax);
}

const irregular: TextRead = { problem: "it is no regular file" };

/** Closes what it is given. */
function readOpened(fileSystem: FileSystem, fd: number, bytesMax: number): TextRead {
  try {
    const stat = fileSystem.fstat(fd);
    if (!stat.isFile()) return irregular;
    const size = Number(stat.size);
    if (size > bytesMax) return { problem: `it is longer than ${bytesMax} bytes` };
    // Room for one more byte tells a file that is growing.
    const bytes = Buffer.alloc(size + 1);
    let length = 0;
    for (;;) {
      const read = fileSystem.read(fd, bytes, length, bytes.length - length, length);
      if (read === 0) break;
      length += read;
      if (length === bytes.length) return { problem: "it grew while it was read" };
    }
    const content = bytes.subarray(0, length);
    if (content.includes(0)) return { problem: "it is binary: it holds NUL bytes" };
    return { text: content.toString("utf8").replace(/^\ufeff/, "") };
  } finally {
    fileSystem.close(fd);
  }
}
