/** What one loop remembers of its files, as its tools see it (C8). */

/**
 * What one loop last saw of its files, shared by its file tools and its shell (C8). It grants no authority, never leaves
 * the root and never reaches the model.
 */
export interface WorkspaceObservations {
  /**
   * Runs `work` as the only one of this loop at that path, and returns what it returns. The path is absolute and canonical
   * inside the root, or clean and relative to it; anything else rejects with `coordinator.invalid_path`.
   */
  withPath<T>(path: string, work: (observed: PathObservation) => Promise<T>): Promise<T>;
  /** After a shell command: time stamps prove nothing any more. Content hashes stay. */
  invalidateAll(): void;
}

/** What the owner of a loop has of its observations. */
export interface OwnedObservations extends WorkspaceObservations {
  /** Drops what was seen of these paths and of all that lies below them: they were changed beneath the loop (C8). */
  forget(paths: Iterable<string>): void;
}

/** One path within its critical section. */
export interface PathObservation {
  /** Undefined when nothing was seen, or what was seen was dropped since. */
  readonly last: Observation | undefined;
  /** Replaces what was seen of the path. A truncated or failed read records nothing. */
  record(seen: Observation): void;
}

/** Identity is content (C9): an observation compares bytes, by their SHA-256, whatever time stamps say. */
export type Observation =
  | { readonly kind: "absent" }
  | {
      readonly kind: "present";
      readonly contentHash: string;
      /** Whether all of the content was seen: only then may it be written over. */
      readonly complete: boolean;
    };
