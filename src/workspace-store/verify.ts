/** Reads everything some refs name and checks it, going on past damage to find all of it. */
import { isLooprigError, rootPath } from "../core/index.js";
import type { Abortable, SnapshotRef, WorkspacePath } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import { piecesOf } from "./content.js";
import type { TreeId, VerifyReport } from "./contracts.js";
import type { ObjectStore } from "./object-store.js";
import { decodeSnapshot, objectOfRef, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { decodeTree } from "./tree-codec.js";

type Damage = VerifyReport["damaged"][number];

export async function verifyRefs(
  objects: ObjectStore,
  refs: readonly SnapshotRef[],
  options: Abortable = {},
): Promise<VerifyReport> {
  const verification = new Verification(objects, options);
  await objects.refresh(options);
  for (const ref of refs) await verification.tree(ref);
  await verification.contents();
  return verification.report();
}

interface Content {
  readonly path: WorkspacePath;
  readonly size: number;
}

class Verification {
  readonly #objects: ObjectStore;
  readonly #options: Abortable;
  readonly #seen = new Set<ObjectId>();
  readonly #files = new Map<ObjectId, Content>();
  readonly #damaged: Damage[] = [];
  #bytes = 0;

  constructor(objects: ObjectStore, options: Abortable) {
    this.#objects = objects;
    this.#options = options;
  }

  report(): VerifyReport {
    return { objects: this.#seen.size, bytes: this.#bytes, damaged: this.#damaged };
  }

  /** Checks all directories of a ref and notes its files. */
  async tree(ref: SnapshotRef): Promise<void> {
    const root = await this.#check(objectOfRef(ref), undefined, decodeSnapshot);
    const stack: { readonly id: TreeId; readonly path: WorkspacePath }[] = root ? [{ id: root, path: rootPath }] : [];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const { id, path: parent } = next;
      for (const [name, entry] of (await this.#check(id, parent, decodeTree)) ?? []) {
        const path = (parent === "" ? name : `${parent}/${name}`) as WorkspacePath;
        if (entry.kind === "directory") stack.push({ id: entry.id, path });
        // The size is part of the key: the same id with another size would be another meaning.
        if (entry.kind === "file") this.#files.set(`${entry.id}:${entry.size}`, { path, size: entry.size });
      }
    }
  }

  /** Checks the content of the files noted, in the order it is stored in. */
  async contents(): Promise<void> {
    const pieces: { readonly id: ObjectId; readonly path: WorkspacePath; readonly length: number }[] = [];
    for (const [key, { path, size }] of this.#files) {
      const id = key.slice(0, 64);
      const ids = size <= pieceBytes ? [id] : await this.#list(id, path, size);
      ids.forEach((piece, i) => pieces.push({ id: piece, path, length: Math.min(pieceBytes, size - i * pieceBytes) }));
    }
    const place = ({ id }: { readonly id: ObjectId }) => this.#objects.place(id) ?? -1;
    for (const { id, path, length } of pieces.sort((a, b) => place(a) - place(b))) {
      await this.#check(id, path, (bytes) => {
        if (bytes.length !== length) throw new FormatError("has another length than its file");
      });
    }
  }

  async #list(id: ObjectId, path: WorkspacePath, size: number): Promise<readonly ObjectId[]> {
    let ids: readonly ObjectId[] = [];
    await this.#check(id, path, () => undefined);
    try {
      ids = await piecesOf(this.#objects, { id: id as never, size }, { ...this.#options, path });
    } catch (error) {
      if (!isLooprigError(error, "snapshot.object_missing", "snapshot.object_damaged")) throw error;
      if (!this.#damaged.some(({ object }) => object === id))
        this.#damaged.push({ object: id, path, problem: "damaged" });
    }
    return ids;
  }

  /** Reads and decodes an object once; notes what is wrong with it. Undefined the second time, and for damage. */
  async #check<T>(id: ObjectId, path: WorkspacePath | undefined, decode: (bytes: Buffer) => T): Promise<T | undefined> {
    if (this.#seen.has(id)) return undefined;
    this.#seen.add(id);
    try {
      const bytes = await this.#objects.read(id, { ...this.#options, path });
      this.#bytes += bytes.length;
      return decode(bytes);
    } catch (error) {
      const missing = isLooprigError(error, "snapshot.object_missing");
      if (!missing && !isLooprigError(error, "snapshot.object_damaged") && !(error instanceof FormatError)) throw error;
      const where = path === undefined ? {} : { path };
      this.#damaged.push({ object: id, ...where, problem: missing ? "missing" : "damaged" });
      return undefined;
    }
  }
}
