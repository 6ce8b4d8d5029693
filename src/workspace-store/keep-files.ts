/**
 * Keeps the bytes of single files without a walk: as a small snapshot that holds these paths and nothing else. So what a
 * write is about to replace can be named, pinned, shown and verified like any other tree (U4, G2).
 */
import { baseName, compareNames, invariant, parentOf, rootPath, signalOf, StorageError } from "../core/index.js";
import type { SnapshotRef, WorkspacePath } from "../core/index.js";
import type { Blobs } from "../storage/index.js";
import type { ContentId, KeepOptions, KeptFile, TreeEntry, TreeId } from "./contracts.js";
import { contentIdOf, encodePieces, encodeSnapshot, objectIdOf, objectOfRef, pieceBytes, refOf } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import type { ObjectStore } from "./object-store.js";
import { PackWriter } from "./pack-writer.js";
import type { Pins } from "./pins.js";
import { encodeTree } from "./tree-codec.js";
import type { NamedEntry } from "./tree-codec.js";

const attemptsMax = 16;

type Add = (id: ObjectId, bytes: Uint8Array) => Promise<void> | undefined;

/** What a tree says of a file with these bytes. */
export function fileEntryOf(bytes: Uint8Array, mode: number): Extract<TreeEntry, { kind: "file" }> {
  const pieces = piecesOf(bytes);
  const id = pieces === undefined ? contentIdOf(bytes) : (objectIdOf(pieces.list) as ContentId);
  return { kind: "file", mode, size: bytes.length, id };
}

export interface KeepEnvironment {
  readonly blobs: Blobs;
  readonly objects: ObjectStore;
  readonly pins: Pins;
}

/** Durable on return: packs, their indexes, the pin, and then a look whether all of it still counts, as every capture does it. */
export async function keepFiles(
  { blobs, objects, pins }: KeepEnvironment,
  files: readonly KeptFile[],
  options: KeepOptions = {},
): Promise<SnapshotRef> {
  await objects.load(signalOf(options));
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const losses = objects.losses;
    const writer = new PackWriter(blobs, objects);
    const ref = await addAll(files, (id, bytes) => writer.add(id, bytes));
    await writer.flush(options.signal);
    if (options.pin !== undefined) await pins.pin(options.pin, [ref], signalOf(options));
    await objects.look(signalOf(options));
    // What vanished or was condemned meanwhile may be what the writer took for stored (G2, G3).
    if (objects.losses === losses) return ref;
  }
  throw new StorageError(
    "storage.failed",
    `Cannot keep the bytes of ${files.length} files: packs keep vanishing from the store while it is written`,
    { operation: "keep" },
    { retryable: true },
  );
}

async function addAll(files: readonly KeptFile[], add: Add): Promise<SnapshotRef> {
  const directories = new Map<WorkspacePath, Map<string, TreeEntry>>([[rootPath, new Map()]]);
  for (const { path, bytes, mode } of files) {
    for (const { id, bytes: object } of objectsOf(bytes)) await add(id, object);
    directoryOf(directories, parentOf(path)).set(baseName(path), fileEntryOf(bytes, mode));
  }
  const root = await addDirectory(directories, rootPath, add);
  const ref = refOf(root);
  await add(objectOfRef(ref), encodeSnapshot(root));
  return ref;
}

function directoryOf(
  directories: Map<WorkspacePath, Map<string, TreeEntry>>,
  path: WorkspacePath,
): Map<string, TreeEntry> {
  const known = directories.get(path);
  if (known !== undefined) return known;
  const made = new Map<string, TreeEntry>();
  directories.set(path, made);
  // Its entry is completed when everything below it is known.
  directoryOf(directories, parentOf(path)).set(baseName(path), { kind: "directory", mode: 0o755, id: "" as TreeId });
  return made;
}

async function addDirectory(
  directories: ReadonlyMap<WorkspacePath, ReadonlyMap<string, TreeEntry>>,
  path: WorkspacePath,
  add: Add,
): Promise<TreeId> {
  const found = directories.get(path);
  invariant(found !== undefined, "BUG: a directory of kept files was never made");
  const entries: NamedEntry[] = [];
  for (const [name, entry] of [...found].sort(([a], [b]) => compareNames(a, b))) {
    const below = (path === rootPath ? name : `${path}/${name}`) as WorkspacePath;
    entries.push([
      name,
      entry.kind === "directory" ? { ...entry, id: await addDirectory(directories, below, add) } : entry,
    ]);
  }
  const bytes = encodeTree(entries);
  const id = objectIdOf(bytes) as TreeId;
  await add(id, bytes);
  return id;
}

interface Pieces {
  readonly list: Buffer;
  readonly pieces: readonly { readonly id: ObjectId; readonly bytes: Uint8Array }[];
}

function piecesOf(bytes: Uint8Array): Pieces | undefined {
  if (bytes.length <= pieceBytes) return undefined;
  const pieces: { id: ObjectId; bytes: Uint8Array }[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    pieces.push({ id: objectIdOf(piece), bytes: piece });
  }
  const ids = pieces.map(({ id }) => id);
  return { list: encodePieces(bytes.length, ids), pieces };
}

function objectsOf(bytes: Uint8Array): readonly { readonly id: ObjectId; readonly bytes: Uint8Array }[] {
  const pieces = piecesOf(bytes);
  if (pieces === undefined) return [{ id: contentIdOf(bytes), bytes }];
  return [...pieces.pieces, { id: objectIdOf(pieces.list), bytes: pieces.list }];
}
