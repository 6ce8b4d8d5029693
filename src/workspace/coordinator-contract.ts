/** The coordinator as tools and the session see it (C1–C6). */
import type { Abortable, CallId } from "../core/index.js";

/** What a mutation may touch. One value, so that a wrong pairing of operation and paths cannot be written. */
export type MutationScope =
  | {
      readonly operation: "path-mutation";
      /** One or more, each absolute and canonical inside the root, or clean and relative to it. */
      readonly paths: readonly string[];
    }
  /** Whatever may write anywhere: a shell command. */
  | { readonly operation: "whole-mutation" }
  /** Capture and restore. */
  | { readonly operation: "checkpoint" };

/** The right to change what its scope names. `release` is idempotent. */
export interface WorkspacePermit extends Disposable {
  /** Gives the right back. Idempotent; what a call still holds when it ends is released for it. */
  release(): void;
  /** Aborts when the permit is taken away: its call was given up, or the root's lease was lost. Not on release. */
  readonly revoked: AbortSignal;
  /**
   * What a mutator calls right before it commits (C5). Throws `coordinator.revoked` when the permit was revoked or
   * released, `workspace_root.lease_lost` when the root is no longer ours.
   */
  assertHeld(): void;
}

/** Who may write when (C1–C5): one per session, shared by its loops, fair. As tools get it, it belongs to the call that runs. */
export interface WorkspaceCoordinator {
  /**
   * Waits for the permit. Rejects with `coordinator.invalid_operation` or `.invalid_path` (a wrong scope),
   * `coordinator.acquire_canceled` (an abort; nothing is held and nobody is kept waiting), `workspace_root.lease_lost`.
   */
  acquire(scope: MutationScope, options?: Abortable): Promise<WorkspacePermit>;
  /** Throws `workspace_root.lease_lost` unless the root is surely still ours. */
  assertHealthy(): void;
}

/**
 * The coordinator as one call of a tool sees it: it remembers what the call holds. `acquire` also rejects with
 * `coordinator.reentry` (the scope conflicts with one this call holds or waits for), `coordinator.deadlock` (it would wait
 * for a call that waits for this one) and, after the call was given up, `coordinator.revoked`.
 * Disposing it ends the call: what it still holds is revoked and what it waits for is cancelled.
 */
export interface CallCoordinator extends WorkspaceCoordinator, Disposable {
  readonly callId: CallId;
}

/** What the owner of the root has: one per session, shared by all its loops. */
export interface OwnedCoordinator extends WorkspaceCoordinator {
  /** The view of a call, the same one until it is disposed. Its owner disposes it when the call has settled. */
  forCall(callId: CallId): CallCoordinator;
  /** Takes a permit away, or all that a call holds; the call gets no more (C6). Nothing happens when it is gone already. */
  revoke(target: WorkspacePermit | CallId): void;
  /** Makes a permit outlive its call: nobody else's wait begins or ends. It is held until it is released. */
  detach(permit: WorkspacePermit): void;
  /** Whether nothing is held and nobody waits. */
  idle(): boolean;
  counts(): { readonly held: number; readonly waiting: number };
}
