/**
 * Directories of a table held open, bounded in number. Each is opened from its parent's handle without following links and
 * must be the directory that was listed, so a handle is always below the root, whatever happens to paths meanwhile (U10).
 */
import { errnoOf } from "../core/index.js";
import type { Directory } from "../core/index.js";
import type { TreeTable } from "./tree-table.js";

/** Another directory stands where the listed one was. */
export class NotThatDirectoryError extends Error {
  override readonly name = "NotThatDirectoryError";
  constructor(readonly directory: number) {
    super("another directory stands there now");
  }
}

export class TableDirectories implements Disposable {
  readonly #root: Directory;
  readonly #dev: bigint;
  readonly #openMax: number;
  #open = new Map<number, Directory>();
  #table: TreeTable;

  /** `root` stays the caller's. */
  constructor(table: TreeTable, root: Directory, openMax = 200) {
    this.#table = table;
    this.#root = root;
    this.#dev = root.dev;
    this.#openMax = openMax;
  }

  /**
   * The open directory; valid until the next call. Throws `NotThatDirectoryError`, or what opening throws (ENOENT, ENOTDIR,
   * ELOOP, EACCES).
   */
  get(directory: number): Directory {
    const missing: number[] = [];
    let current: Directory | undefined;
    for (let at = directory; at !== 0; at = this.#table.parent(at)) {
      current = this.#open.get(at);
      if (current) {
        // Makes it the youngest.
        this.#open.delete(at);
        this.#open.set(at, current);
        break;
      }
      missing.push(at);
    }
    current ??= this.#root;
    for (let next = missing.pop(); next !== undefined; next = missing.pop()) {
      const child = this.#child(current, this.#table.nameOfDirectory(next));
      if (Number(child.ino) !== this.#table.directoryIno(next) || child.dev !== this.#dev) {
        child.close();
        throw new NotThatDirectoryError(next);
      }
      this.#open.set(next, child);
      this.#trim();
      current = child;
    }
    return current;
  }

  #child(parent: Directory, name: string): Directory {
    try {
      return parent.child(name);
    } catch (error) {
      if (!["EMFILE", "ENFILE"].includes(errnoOf(error) ?? "")) throw error;
      // Those held for later go first.
      for (const [number, directory] of this.#open) {
        if (directory === parent) continue;
        this.#open.delete(number);
        directory.close();
      }
      return parent.child(name);
    }
  }

  #trim(): void {
    if (this.#open.size <= this.#openMax) return;
    for (const [oldest, directory] of this.#open) {
      this.#open.delete(oldest);
      directory.close();
      return;
    }
  }

  [Symbol.dispose](): void {
    for (const directory of this.#open.values()) directory.close();
    this.#open.clear();
  }
}
