/** Whether other file systems, or other directories of this one, are mounted below a path. */
import { errnoOf } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { readSmallFile } from "./small-file.js";

const tableBytesMax = 64 * 1024 * 1024;

/**
 * Device numbers do not show a directory that is bound from the same file system, and what is removed through it is gone from
 * where it really is. Where the kernel keeps no table (not Linux) there are no such mounts to be found; a table that cannot be
 * read counts as one that has them.
 */
export function hasMountsBelow(fileSystem: FileSystem, directory: string): boolean {
  let table: string;
  try {
    table = readSmallFile(fileSystem, "/proc/self/mountinfo", tableBytesMax);
  } catch (error) {
    return errnoOf(error) !== "ENOENT";
  }
  return table.split("\n").some((line) => {
    const mountPoint = unescaped(line.split(" ")[4] ?? "");
    return mountPoint === directory || mountPoint.startsWith(`${directory}/`);
  });
}

/** Blanks, tabs, line ends and backslashes stand in it as octal escapes. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
