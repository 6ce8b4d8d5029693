/**
 * Reads everything some refs name and checks it, going on past damage to find all of it. Each object is read once; where
 * damage stands is looked up afterwards, and only then.
 */
import { isLooprigError, pacer, rootPath } from "../core/index.js";
import type { Abortable, SnapshotRef, WorkspacePath } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { ContentId, TreeId, VerifyProgress, VerifyReport } from "./contracts.js";
import { locateDamage } from "./damage-places.js";
import type { Damage } from "./damage-places.js";
import type { ObjectStore } from "./object-store.js";
import { decodePieces, decodeSnapshot, objectOfRef, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import { decodeTree } from "./tree-codec.js";

const progressMs = 100;

export interface VerifyOptions extends Abortable {
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined;
}

export async function verifyRefs(
  objects: ObjectStore,
  refs: readonly SnapshotRef[],
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const verification = new Verification(objects, options);
  await objects.refresh(options);
  for (const ref of refs) await verification.tree(ref);
  await verification.contents();
  const { damage, ...read } = verification.result();
  return { ...read, damaged: damage.size === 0 ? [] : await locateDamage(objects, refs, damage, options) };
}

interface Content {
  readonly path: WorkspacePath;
  readonly id: ContentId;
  readonly size: number;
}

class Verification {
  readonly #objects: ObjectStore;
  readonly #options: VerifyOptions;
  readonly #pace: () => Promise<void> | undefined;
  readonly #seen = new Set<ObjectId>();
  /** By id and size: the same id with another size would be another meaning. */
  readonly #files = new Map<string, Content>();
  readonly #damage: Damage = new Map();
  #bytes = 0;
  #estimate: VerifyProgress["estimate"];
  #toldAt = 0;

  constructor(objects: ObjectStore, options: VerifyOptions) {
    this.#objects = objects;
    this.#options = options;
    this.#pace = pacer(options.signal);
  }

  result(): { readonly objects: number; readonly bytes: number; readonly damage: Damage } {
    return { objects: this.#seen.size, bytes: this.#bytes, damage: this.#damage };
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
        if (entry.kind !== "file") continue;
        const { id: content, size } = entry;
        this.#files.set(`${content}:${size}`, { path, id: content, size });
      }
    }
  }

  /** Checks the content of the files noted, in the order it is stored in. */
  async contents(): Promise<void> {
    const pieces: { readonly id: ObjectId; readonly path: WorkspacePath; readonly length: number }[] = [];
    for (const { path, id, size } of this.#files.values()) {
      const ids = size <= pieceBytes ? [id] : await this.#list(id, path, size);
      ids.forEach((piece, i) => pieces.push({ id: piece, path, length: Math.min(pieceBytes, size - i * pieceBytes) }));
    }
    this.#estimate = this.#rest(pieces);
    const place = ({ id }: { readonly id: ObjectId }) => this.#objects.place(id) ?? -1;
    for (const { id, path, length } of pieces.sort((a, b) => place(a) - place(b))) {
      await this.#check(id, path, (bytes) => {
        if (bytes.length !== length) throw new FormatError("has another length than its file");
      });
    }
  }

  /** What will have been read once these are. */
  #rest(pieces: readonly { readonly id: ObjectId; readonly length: number }[]): VerifyProgress["estimate"] {
    const unread = new Map(pieces.filter(({ id }) => !this.#seen.has(id)).map(({ id, length }) => [id, length]));
    let bytes = this.#bytes;
    for (const length of unread.values()) bytes += length;
    return { objects: this.#seen.size + unread.size, bytes };
  }

  async #list(id: ContentId, path: WorkspacePath, size: number): Promise<readonly ObjectId[]> {
    const list = await this.#check(id, path, decodePieces);
    if (list === undefined) return [];
    if (list.size !== size) this.#damage.set(id, "damaged");
    return list.ids;
  }

  /** Reads and decodes an object once; notes what is wrong with it. Undefined the second time, and for damage. */
  async #check<T>(id: ObjectId, path: WorkspacePath | undefined, decode: (bytes: Buffer) => T): Promise<T | undefined> {
    if (this.#seen.has(id)) return undefined;
    this.#seen.add(id);
    await this.#pace();
    try {
      const bytes = await this.#objects.read(id, { signal: this.#options.signal, path });
      this.#bytes += bytes.length;
      this.#tell();
      return decode(bytes);
    } catch (error) {
      const missing = isLooprigError(error, "snapshot.object_missing");
      if (!missing && !isLooprigError(error, "snapshot.object_damaged") && !(error instanceof FormatError)) throw error;
      this.#damage.set(id, missing ? "missing" : "damaged");
      return undefined;
    }
  }

  #tell(): void {
    const { onProgress } = this.#options;
    const now = performance.now();
    if (onProgress === undefined || now - this.#toldAt < progressMs) return;
    this.#toldAt = now;
    const estimate = this.#estimate;
    onProgress({ objects: this.#seen.size, bytes: this.#bytes, ...(estimate === undefined ? {} : { estimate }) });
  }
}
