/**
 * The root as it is now, for whoever plans: the whole tree, which is a walk, or single paths, which are looked at one by one. What
 * was asked for decides what it costs, so a plan that needs no walk makes none.
 */
import type { Abortable, WorkspacePath } from "../core/index.js";
import type { CaptureResult, PresentPaths, Tree, TreeEntry } from "../workspace-store/index.js";
import { capturedTree } from "./known-tree.js";
import type { KnownTree } from "./known-tree.js";
import type { RootReader } from "./root-reader.js";

/** What a plan saw of the root. */
export type Seen =
  /** The whole tree, stored as it was: a restore has its safety with it (U4). */
  | { readonly by: "capture"; readonly known: KnownTree }
  /** The whole tree, and nothing was stored. */
  | { readonly by: "scan" }
  /** Only the paths that the plan is about. */
  | { readonly by: "paths" };

export class PresentRoot {
  readonly #reader: RootReader;
  readonly #options: Abortable;
  readonly #capture: (() => Promise<CaptureResult>) | undefined;
  #tree: Promise<Tree> | undefined;
  #seen: Seen = { by: "paths" };

  /** `capture` stores the tree; without it the tree is hashed and forgotten. */
  constructor(reader: RootReader, options: Abortable, capture?: () => Promise<CaptureResult>) {
    this.#reader = reader;
    this.#options = options;
    this.#capture = capture;
  }

  get seen(): Seen {
    return this.#seen;
  }

  /** The whole tree, walked at most once. */
  tree(): Promise<Tree> {
    this.#tree ??= this.#walk();
    return this.#tree;
  }

  /** Holds the root open while `work` looks at single paths; each question looks anew. */
  look<T>(work: (present: PresentPaths) => Promise<T>): Promise<T> {
    return this.#reader.look(work, this.#options);
  }

  lookup(path: WorkspacePath): Promise<TreeEntry | undefined> {
    return this.look((present) => present.lookup(path));
  }

  async #walk(): Promise<Tree> {
    if (this.#capture === undefined) {
      this.#seen = { by: "scan" };
      return this.#reader.tree("now", this.#options);
    }
    const result = await this.#capture();
    this.#seen = { by: "capture", known: capturedTree(result) };
    return result.tree;
  }
}

/** The same questions to a tree that was walked. */
export const pathsOfTree = (tree: Tree): PresentPaths => ({
  lookup: (path) => tree.lookup(path),
  names: async (path) => (await tree.list(path)).map(([name]) => name),
});
