/**
 * What a tool can be given (T2): one narrow interface per capability. Tools see these and nothing behind them; who
 * implements them is the session's business.
 */
import type { CanonicalRoot } from "../core/index.js";
import type { ChangeRecords, CommitSection, WorkspaceCoordinator, WorkspaceObservations } from "../workspace/index.js";

export type { ChangeRecords, FileChange, FileState, RecordedPermit } from "../workspace/index.js";
export type { Observation, PathObservation, WorkspaceObservations } from "../workspace/index.js";

/** The right to change files below the root, one permit at a time. */
export interface WorkspaceBinding {
  readonly root: CanonicalRoot;
  /** While a call runs, permits acquired here belong to that call: they end with it. */
  readonly coordinator: WorkspaceCoordinator;
  /** Absent where the loop keeps none. */
  readonly observations?: WorkspaceObservations | undefined;
  /** In a shared root, where the commit step of a write takes place (C10); absent where no other session can write. */
  readonly commits?: CommitSection | undefined;
  /**
   * For a tool that says itself what it writes: its changes are recorded, and no window is opened around its permit. Absent
   * where no journal of changes is kept.
   */
  readonly records?: ChangeRecords | undefined;
  /** Absent where outputs that are too long to be shown are not kept. */
  readonly outputs?: KeptOutputs | undefined;
}

/** Outputs of tools of this loop that were longer than the model was shown. */
export interface KeptOutputs {
  /** By the name that the cut output gives; undefined when it is not kept (any more). */
  read(name: string): string | undefined;
}

/** The right to know where the root is. There is no way to mutate in it. */
export interface ReadWorkspaceBinding {
  readonly root: CanonicalRoot;
}

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
