/** How what a tool changes is put on record (E3, U1, U2): what tools see of it, and what the session does with it. */
import type { Abortable, CallId, SnapshotRef } from "../core/index.js";
import type { CallCoordinator, OwnedCoordinator, WorkspacePermit } from "./coordinator-contract.js";

/** What stands, or will stand, at a path. `mode` is the permission bits alone. */
export type FileState =
  | { readonly kind: "file"; readonly mode: number; readonly bytes: Uint8Array }
  | { readonly kind: "directory"; readonly mode: number };

/** What a call is about to change at one path. A mode and a rename are changes too: of one path, and of two. */
export interface FileChange {
  /** Relative to the root, canonical. */
  readonly path: string;
  /** Undefined for nothing. */
  readonly before: FileState | undefined;
  readonly after: FileState | undefined;
}

/** A permit for paths whose holder says what it writes, so that no window is needed around it. */
export interface RecordedPermit extends WorkspacePermit {
  /**
   * Makes the record durable, and with it what would be lost otherwise: bytes that no captured tree of the turn holds. Called
   * before the first of the changes is visible, once for each attempt. `staged` are the paths of files that the write needs
   * for its moment, beside what it writes and named `.looprig-…`; `replaced` is the path of a second name of the file it
   * replaces. Rejects with `coordinator.invalid_path` for what the permit
   * does not cover. Rejects with `storage.*` or `journal.*`; then nothing may be written.
   */
  record(
    changes: readonly FileChange[],
    options?: Abortable & { readonly staged?: readonly string[] | undefined; readonly replaced?: string | undefined },
  ): Promise<void>;
  /** Stores bytes that somebody else wrote and that stand nowhere any more; durable on return, under the ref it returns. */
  keep(file: { readonly path: string; readonly mode: number; readonly bytes: Uint8Array }): Promise<SnapshotRef>;
  /** For a write that reaches more than its paths (a file with several names): a window from here to the release. */
  openWindow(options?: Abortable): Promise<void>;
}

/** What a call may put on record. Absent where nobody keeps a journal of changes. */
export interface ChangeRecords {
  /** As `acquire` of the coordinator with a path mutation of these paths. */
  acquire(paths: readonly string[], options?: Abortable): Promise<RecordedPermit>;
  /** Durable before the first instruction of the command; `pid` leads a process group of its own (G5). */
  processStarted(process: { readonly pid: number; readonly command: string }): Promise<void>;
  /** After the group has ended, so that nobody waits for it any more. */
  processExited(exit: { readonly exitCode?: number | undefined; readonly signal?: string | undefined }): Promise<void>;
}

/** A call's view of the coordinator where permits leave a record. */
export interface RecordingCall extends CallCoordinator {
  readonly records: ChangeRecords;
}

/** The coordinator as the tools of a session get it. */
export interface RecordingCoordinator extends OwnedCoordinator {
  forCall(callId: CallId): RecordingCall;
}
