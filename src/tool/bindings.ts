/**
 * What a tool can be given (T2): one narrow interface per capability. Tools see these and nothing behind them; who
 * implements them is the session's business.
 */
import type { CanonicalRoot } from "../core/index.js";
import type { WorkspaceCoordinator } from "../workspace/index.js";

/** The right to change files below the root, one permit at a time. */
export interface WorkspaceBinding {
  readonly root: CanonicalRoot;
  /** While a call runs, permits acquired here belong to that call: they end with it. */
  readonly coordinator: WorkspaceCoordinator;
  /** Absent where the loop keeps none. */
  readonly observations?: WorkspaceObservations | undefined;
}

/** The right to know where the root is. There is no way to mutate in it. */
export interface ReadWorkspaceBinding {
  readonly root: CanonicalRoot;
}

/**
 * What one loop last saw of its files, shared by its file tools and its shell (C8). It grants no authority, never leaves
 * the root and never reaches the model.
 */
export interface WorkspaceObservations {
  /** Runs `work` as the only one of this loop at that path, and returns what it returns. */
  withPath<T>(path: string, work: (observed: PathObservation) => Promise<T>): Promise<T>;
  /** After a shell command: time stamps prove nothing any more. Content hashes stay. */
  invalidateAll(): void;
}

/** One path within its critical section. */
export interface PathObservation {
  /** Undefined when nothing was seen, or what was seen was dropped since. */
  readonly last: Observation | undefined;
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

/** Starts other loops of the rig. */
export interface DelegateController {
  /** Resolves with the final reply of the loop. */
  start(loop: string, input: string): Promise<string>;
}

/** Runs programs. */
export interface ProcessBinding {
  /** Resolves with the exit code. */
  spawn(command: readonly string[]): Promise<number>;
}
