/** Which directories make a tree too large, for the message that asks for consent (U11). */
import { kinds, rowBytes } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

const shownMax = 5;
/** A directory that holds nearly all of its parent is named in its stead: excluding it is what helps. */
const dominant = 0.9;
const blockBytes = 4096;

/** What reading a file costs, in whole blocks; holes are read like anything else. */
export const inBlocks = (size: number): number => Math.ceil(size / blockBytes) * blockBytes;

/** The largest directories that do not contain each other, largest first. */
export function largestDirectories(table: TreeTable): readonly { readonly path: string; readonly bytes: number }[] {
  const bytes = sizes(table);
  return directoriesIn(table, 0)
    .map((directory) => narrow(table, bytes, directory))
    .sort((a, b) => sizeOf(bytes, b) - sizeOf(bytes, a))
    .slice(0, shownMax)
    .map((directory) => ({ path: table.pathOf(directory), bytes: sizeOf(bytes, directory) }));
}

/** By directory: the bytes of the files in it and below. */
function sizes(table: TreeTable): Float64Array {
  const bytes = new Float64Array(table.directories);
  for (let directory = table.directories - 1; directory >= 0; directory--) {
    if (!table.has(directory)) continue;
    for (let row = table.rows(directory), left = table.rowCount(directory); left > 0; row += rowBytes, left--) {
      if (table.kind(row) === kinds.file) bytes[directory] = sizeOf(bytes, directory) + inBlocks(table.size(row));
    }
    const parent = table.parent(directory);
    if (directory !== 0) bytes[parent] = sizeOf(bytes, parent) + sizeOf(bytes, directory);
  }
  return bytes;
}

function narrow(table: TreeTable, bytes: Float64Array, directory: number): number {
  let at = directory;
  for (;;) {
    const heavy = directoriesIn(table, at).find((child) => sizeOf(bytes, child) >= sizeOf(bytes, at) * dominant);
    if (heavy === undefined || sizeOf(bytes, heavy) === 0) return at;
    at = heavy;
  }
}

function directoriesIn(table: TreeTable, directory: number): number[] {
  const children: number[] = [];
  for (let row = table.rows(directory), left = table.rowCount(directory); left > 0; row += rowBytes, left--) {
    if (table.kind(row) === kinds.directory) children.push(table.extra(row));
  }
  return children;
}

const sizeOf = (bytes: Float64Array, directory: number): number => bytes[directory] as number;
