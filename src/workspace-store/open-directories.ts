/**
 * Directories held open along a walk, bounded in number. One that was closed to stay within the bound is opened again from
 * its nearest open ancestor, component by component without following links, and must be the directory it was.
 */
import type { Directory } from "../core/index.js";

/** A directory of a walk: its place below the root and which one it was when first seen. */
export interface DirectoryPlace {
  /** Undefined for the root. */
  readonly parent: DirectoryPlace | undefined;
  readonly name: string;
  readonly dev: bigint;
  readonly ino: bigint;
}

/** Another directory stands where one was. */
export class DirectoryReplacedError extends Error {
  override readonly name = "DirectoryReplacedError";
  constructor(readonly place: DirectoryPlace) {
    super("another directory stands there now");
  }
}

export class OpenDirectories implements Disposable {
  readonly #root: Directory;
  readonly #openMax: number;
  readonly #open = new Map<DirectoryPlace, Directory>();

  /** `root` stays the caller's. */
  constructor(root: Directory, openMax = 200) {
    this.#root = root;
    this.#openMax = openMax;
  }

  /**
   * The open directory of a place; valid until the next call. Throws `DirectoryReplacedError`, or what opening throws
   * (ENOENT, ENOTDIR, ELOOP, EACCES).
   */
  get(place: DirectoryPlace): Directory {
    const missing: DirectoryPlace[] = [];
    let directory: Directory | undefined;
    for (let at = place; at.parent !== undefined; at = at.parent) {
      directory = this.#open.get(at);
      if (directory) {
        // Makes it the youngest.
        this.#open.delete(at);
        this.#open.set(at, directory);
        break;
      }
      missing.push(at);
    }
    let current = directory ?? this.#root;
    for (let next = missing.pop(); next !== undefined; next = missing.pop()) {
      const child = current.child(next.name);
      if (child.ino !== next.ino || child.dev !== next.dev) {
        child.close();
        throw new DirectoryReplacedError(next);
      }
      this.#open.set(next, child);
      this.#trim();
      current = child;
    }
    return current;
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
