/** The content of files as it lies in the store: one object, or a list of pieces. */
import { isLooprigError } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { ContentId, TreeEntry } from "./contracts.js";
import { objectDamaged } from "./object-store.js";
import type { ObjectStore } from "./object-store.js";
import { decodePieces, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";

export type FileEntry = Extract<TreeEntry, { kind: "file" }>;

type ReadOptions = Abortable & { readonly path?: WorkspacePath | undefined };

/** The objects that hold the bytes of a file, in order; those of a large one are named by its verified list. */
export async function piecesOf(
  objects: ObjectStore,
  { id, size }: Pick<FileEntry, "id" | "size">,
  options: ReadOptions = {},
): Promise<readonly ObjectId[]> {
  if (size <= pieceBytes) return [id];
  const bytes = await objects.read(id, options);
  try {
    const list = decodePieces(bytes);
    if (list.size !== size) throw new FormatError("is of a file of another size");
    return list.ids;
  } catch (error) {
    if (error instanceof FormatError) throw objectDamaged(id, options.path, error);
    throw error;
  }
}

/** The verified bytes of a file, at most 1 MiB at a time. */
export async function* readContent(
  objects: ObjectStore,
  file: Pick<FileEntry, "id" | "size">,
  options: ReadOptions = {},
): AsyncGenerator<Buffer> {
  let left = file.size;
  for (const id of await piecesOf(objects, file, options)) {
    const bytes = await objects.read(id, options);
    if (bytes.length !== Math.min(pieceBytes, left)) throw objectDamaged(id, options.path);
    left -= bytes.length;
    if (bytes.length > 0) yield bytes;
  }
}

/** Whether the index has every object of a file. Reads the list of a large one, and no content. */
export async function isPresent(
  objects: ObjectStore,
  id: ContentId,
  size: number,
  options: ReadOptions = {},
): Promise<boolean> {
  if (!objects.has(id)) return false;
  if (size <= pieceBytes) return true;
  try {
    return (await piecesOf(objects, { id, size }, options)).every((piece) => objects.has(piece));
  } catch (error) {
    if (isLooprigError(error, "snapshot.object_missing", "snapshot.object_damaged")) return false;
    throw error;
  }
}
