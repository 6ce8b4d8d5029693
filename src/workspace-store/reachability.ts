/**
 * What pins reach: the mark of a collection, and the sizes of owners. Walks every directory and every list of pieces once,
 * through verified reads, and reads no content.
 *
 * An object can be several things at once, since a small file may hold the very bytes of a directory: it is expanded once
 * for each of them.
 */
import { isLooprigError, pacer, rootPath } from "../core/index.js";
import type { Abortable, WorkspacePath } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { CollectReport } from "./contracts.js";
import type { DigestTable } from "./digest-table.js";
import type { ObjectStore } from "./object-store.js";
import { decodePieces, decodeSnapshot, objectOfRef, pieceBytes } from "./object-ids.js";
import type { ObjectId } from "./object-ids.js";
import type { Pin, PinnedRefs } from "./pins.js";
import { decodeTree } from "./tree-codec.js";

export type ReachDamage = CollectReport["damaged"][number];

/** What an object is to whoever names it; as bits, since it may be expanded as several. */
const roles = { content: 0, directory: 1, pieces: 2, snapshot: 4 } as const;
type Role = (typeof roles)[keyof typeof roles];

interface Found {
  readonly number: number;
  readonly role: Role;
  readonly path: WorkspacePath | undefined;
}

export interface ReachOptions extends Abortable {
  /** Called now and then with the objects reached so far. */
  readonly onReached?: ((objects: number) => void) | undefined;
}

const nothing = new Int32Array(0);

/**
 * Those of `ids` that lie nowhere. Where the table of a pack is damaged its bits may have been other ids: of a content, or of a base
 * without which what is stored against it is lost.
 */
export async function placeless(objects: ObjectStore, ids: DigestTable, { signal }: Abortable): Promise<ObjectId[]> {
  const pace = pacer(signal);
  const found: ObjectId[] = [];
  for (let number = 0; number < ids.size; number++) {
    const id = ids.hex(number);
    if (objects.place(id) === undefined) found.push(id);
    await pace();
  }
  return found;
}

/** Adds what the copies of reached objects cannot be decoded without: it is kept like they are. */
export function addBases(objects: ObjectStore, ids: DigestTable): void {
  // Those that come in are asked as well, since the table grows under the loop.
  for (let number = 0; number < ids.size; number++) {
    for (const base of objects.basesOf(ids.hex(number))) ids.add(base);
  }
}

export class Reachability {
  readonly #objects: ObjectStore;
  readonly #options: ReachOptions;
  readonly #pace: () => Promise<void> | undefined;
  readonly #ids: DigestTable;
  readonly #expanded: number[] = [];
  readonly #children: Int32Array[] = [];
  readonly #walked = new Set<number>();
  readonly #damaged: ReachDamage[] = [];

  /** Numbers objects in `ids`, which nobody else adds to until the walk is over. */
  constructor(objects: ObjectStore, ids: DigestTable, options: ReachOptions) {
    this.#objects = objects;
    this.#ids = ids;
    this.#options = options;
    this.#pace = pacer(options.signal);
  }

  /** Nodes that could not be read. What is below them is not reached through them. */
  get damaged(): readonly ReachDamage[] {
    return this.#damaged;
  }

  /** Reaches what these pins keep; what was reached before is not walked again. */
  async reach(pins: readonly PinnedRefs[]): Promise<void> {
    for (const { owner, id, refs } of pins) {
      for (const ref of refs) await this.#walk(this.#ids.add(objectOfRef(ref)), { owner, id });
    }
  }

  /** What the object names, by their numbers. */
  childrenOf(number: number): Int32Array {
    return this.#children[number] ?? nothing;
  }

  async #walk(snapshot: number, pin: Pin): Promise<void> {
    if (this.#walked.has(snapshot)) return;
    this.#walked.add(snapshot);
    const stack: Found[] = [{ number: snapshot, role: roles.snapshot, path: undefined }];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const { number, role, path } = next;
      const done = this.#expanded[number] ?? 0;
      if ((done & role) === role) continue;
      this.#expanded[number] = done | role;
      await this.#pace();
      this.#options.onReached?.(this.#ids.size);
      const below = await this.#expand(next, path, pin);
      const known = this.#children[number] ?? nothing;
      this.#children[number] = Int32Array.from([...known, ...below.map((found) => found.number)]);
      for (const found of below) if (found.role !== roles.content) stack.push(found);
    }
  }

  async #expand({ number, role }: Found, path: WorkspacePath | undefined, pin: Pin): Promise<readonly Found[]> {
    const id = this.#ids.hex(number);
    try {
      const bytes = await this.#objects.read(id, { signal: this.#options.signal, path });
      switch (role) {
        case roles.snapshot:
          return [this.#found(decodeSnapshot(bytes), roles.directory, rootPath)];
        case roles.pieces:
          return decodePieces(bytes).ids.map((piece) => this.#found(piece, roles.content, path));
        case roles.directory:
          return decodeTree(bytes).flatMap(([name, entry]) => {
            if (entry.kind !== "directory" && entry.kind !== "file") return [];
            const below = (path === rootPath ? name : `${path ?? ""}/${name}`) as WorkspacePath;
            if (entry.kind === "directory") return [this.#found(entry.id, roles.directory, below)];
            return [this.#found(entry.id, entry.size > pieceBytes ? roles.pieces : roles.content, below)];
          });
        case roles.content:
          return [];
      }
    } catch (error) {
      const missing = isLooprigError(error, "snapshot.object_missing");
      if (!missing && !isLooprigError(error, "snapshot.object_damaged") && !(error instanceof FormatError)) throw error;
      const where = path === undefined ? {} : { path };
      this.#damaged.push({
        object: id,
        ...where,
        problem: missing ? "missing" : "damaged",
        owner: pin.owner,
        id: pin.id,
      });
      return [];
    }
  }

  #found(id: ObjectId, role: Role, path: WorkspacePath | undefined): Found {
    return { number: this.#ids.add(id), role, path };
  }
}
