/** Encodes the directories of a table whose rows changed, from the leaves to the root, and hands new nodes to the writer. */
import { hash } from "node:crypto";
import type { ObjectStore } from "./object-store.js";
import type { PackWriter } from "./pack-writer.js";
import { encodeRows } from "./tree-codec.js";
import { directoryFlags, field } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

const directoriesBetweenPauses = 64;

/**
 * Afterwards every directory has its tree id. Returns, by id, the encodings that were made or that the store does not have,
 * for a tree that is read before it is stored or is not stored at all. With a writer, what the store does not have is added.
 */
export async function encodeDirectories(
  table: TreeTable,
  objects: ObjectStore,
  writer: PackWriter | undefined,
  pace: () => Promise<void> | undefined,
): Promise<ReadonlyMap<string, Buffer>> {
  const nodes = new Map<string, Buffer>();
  // A directory's number is larger than its parent's, so children come first.
  for (let directory = table.directories - 1; directory >= 0; directory--) {
    if (!table.has(directory)) continue;
    const flags = table.directoryFlags(directory);
    const isEncoded = (flags & directoryFlags.encoded) !== 0;
    if (directory % directoriesBetweenPauses === 0) await pace();
    if (isEncoded && (flags & directoryFlags.present) !== 0) continue;
    const place = table.treeId(directory);
    if (isEncoded && objects.hasAt(table.bytes, place)) {
      table.setDirectoryFlags(directory, directoryFlags.present);
      continue;
    }
    const bytes = encodeRows(table, directory);
    const digest = hash("sha256", bytes, "buffer");
    // What it was until now is much like it, and is zeros for a new one.
    const earlier = isEncoded ? undefined : table.bytes.toString("hex", place, place + 32);
    if (!isEncoded) noteId(table, directory, digest);
    const id = digest.toString("hex");
    nodes.set(id, bytes);
    // That of a large directory took long enough, and compressing it does too.
    await pace();
    await writer?.add(id, bytes, earlier);
    await pace();
  }
  return nodes;
}

function noteId(table: TreeTable, directory: number, digest: Buffer): void {
  const { encoded, present } = directoryFlags;
  table.setTreeId(directory, digest);
  table.setDirectoryFlags(directory, encoded, present);
  if (directory === 0) return;
  const row = table.rowOfDirectory(directory);
  if (digest.equals(table.bytes.subarray(row + field.digest, row + field.digest + 32))) return;
  table.setDigest(row, digest);
  table.setDirectoryFlags(table.parent(directory), 0, encoded | present);
}
