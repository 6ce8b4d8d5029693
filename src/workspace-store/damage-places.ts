/**
 * Where damaged objects stand: at which paths of which snapshots. Directories are read again, each distinct one once,
 * whatever the number of snapshots that share it.
 */
import { pacer } from "../core/index.js";
import type { Abortable, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { ContentId, TreeId, VerifyDamage } from "./contracts.js";
import { decodePieces, decodeSnapshot, objectOfRef, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import type { ObjectStore } from "./object-store.js";
import { decodeTree } from "./tree-codec.js";

/** What is wrong with each object that cannot be read. */
export type Damage = Map<ObjectId, VerifyDamage["problem"]>;

/** A damaged object, at a path relative to the directory that was asked about; "" is that directory itself. */
interface Found {
  readonly path: string;
  readonly object: ObjectId;
}

export async function locateDamage(
  objects: ObjectStore,
  refs: readonly SnapshotRef[],
  damage: Damage,
  options: Abortable,
): Promise<readonly VerifyDamage[]> {
  const places = new Places(objects, damage, options);
  const rows = new Map<string, VerifyDamage & { refs: SnapshotRef[] }>();
  const add = (object: ObjectId, path: string | undefined, ref: SnapshotRef): void => {
    const key = `${object}:${path ?? "\0"}`;
    const known = rows.get(key);
    if (known !== undefined) known.refs.push(ref);
    else {
      const problem = damage.get(object) ?? "damaged";
      rows.set(key, { object, ...(path === undefined ? {} : { path: path as WorkspacePath }), problem, refs: [ref] });
    }
  };
  for (const ref of refs) {
    const snapshot = objectOfRef(ref);
    if (damage.has(snapshot)) add(snapshot, undefined, ref);
    else {
      const top = decodeSnapshot(await objects.read(snapshot, options));
      for (const { object, path } of await places.below(top)) add(object, path, ref);
    }
  }
  return [...rows.values()];
}

class Places {
  readonly #objects: ObjectStore;
  readonly #damage: Damage;
  readonly #options: Abortable;
  readonly #pace: () => Promise<void> | undefined;
  readonly #below = new Map<TreeId, readonly Found[]>();
  readonly #within = new Map<string, readonly ObjectId[]>();

  constructor(objects: ObjectStore, damage: Damage, options: Abortable) {
    this.#objects = objects;
    this.#damage = damage;
    this.#options = options;
    this.#pace = pacer(options.signal);
  }

  async below(id: TreeId): Promise<readonly Found[]> {
    const known = this.#below.get(id);
    if (known !== undefined) return known;
    const found = this.#damage.has(id) ? [{ path: "", object: id }] : await this.#look(id);
    this.#below.set(id, found);
    return found;
  }

  async #look(id: TreeId): Promise<readonly Found[]> {
    await this.#pace();
    const found: Found[] = [];
    for (const [name, entry] of decodeTree(await this.#objects.read(id, this.#options))) {
      if (entry.kind === "directory") {
        for (const { path, object } of await this.below(entry.id)) {
          found.push({ path: path === "" ? name : `${name}/${path}`, object });
        }
      } else if (entry.kind === "file") {
        for (const object of await this.#content(entry.id, entry.size)) found.push({ path: name, object });
      }
    }
    return found;
  }

  /** The damaged objects among those that make up a file. */
  async #content(id: ContentId, size: number): Promise<readonly ObjectId[]> {
    if (this.#damage.has(id)) return [id];
    if (size <= pieceBytes) return [];
    const key = `${id}:${size}`;
    const known = this.#within.get(key);
    if (known !== undefined) return known;
    const { ids } = decodePieces(await this.#objects.read(id, this.#options));
    const found = [...new Set(ids.filter((piece) => this.#damage.has(piece)))];
    this.#within.set(key, found);
    return found;
  }
}
