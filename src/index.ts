/**
 * The public entry `looprig`. It imports no driver statically: the default storage is loaded here, on demand, the one
 * arrow of its kind.
 */
import os from "node:os";
import type { OpenWorkspaceOptions, ReadWorkspaceOptions, Workspace, WorkspaceView } from "./workspace/index.js";
import { openWorkspace as open, readWorkspace as read } from "./workspace/index.js";
import type { WorkspaceWorld } from "./workspace/index.js";

const world = (): WorkspaceWorld => ({
  openDefaultStorage: async (options) => (await import("./storage-local/index.js")).openLocalStorage(options),
  defaultStorageDir: async () => {
    const { defaultStateDir } = await import("./storage-local/index.js");
    return defaultStateDir(process.env, process.platform, os.homedir());
  },
  homes: [os.homedir()],
  argv: process.argv,
});

/**
 * Opens a directory for writing: its lease, a baseline, and undo. With no `storage` the default state directory is opened,
 * and closed with the workspace. See `OpenWorkspaceOptions` for defaults and bounds.
 *
 * Rejects with `option.invalid`, `workspace_placement.*`, `persistence.overlap`, `workspace_root.*`, `capture.*` or
 * `storage.*`; nothing is held then. An abort rejects with the signal's reason, and nothing is held either.
 */
export const openWorkspace = (options: OpenWorkspaceOptions): Promise<Workspace> => open(options, world());

/** The same directory for reading: no lease, nothing written but a private cache; works beside a live session. */
export const readWorkspace = (options: ReadWorkspaceOptions): Promise<WorkspaceView> => read(options, world());

export { isLooprigError, LooprigError, parseRef, parseSessionId, displayName } from "./core/index.js";
export {
  CoordinatorError,
  PersistenceOverlapError,
  RestoreError,
  SessionBusyError,
  SnapshotError,
  StorageError,
  WorkspacePlacementError,
  WorkspaceRootBusyError,
  WorkspaceRootChangedError,
  WorkspaceRootLeaseLostError,
  WorkspaceUnavailableError,
} from "./core/index.js";
export type {
  CanonicalRoot,
  ErrorCode,
  ErrorDetails,
  LeaseHolder,
  LooprigErrorOf,
  SessionId,
  SnapshotRef,
  TurnId,
  WorkspacePath,
} from "./core/index.js";
export { createSessionStore } from "./session-store/index.js";
export type { SessionEvent, SessionStore, SessionSummary } from "./session-store/index.js";
export { createWorkspaceStore } from "./workspace-store/index.js";
export type { Tree, TreeChange, TreeEntry, WorkspaceStore } from "./workspace-store/index.js";
export { canonicalPath, deleteSession, knownRoots, listSessions } from "./workspace/index.js";
export type {
  CaptureSettings,
  Change,
  ChangedBy,
  Checkpoint,
  ExecOptions,
  ExecResult,
  FileDiff,
  OpenWorkspaceOptions,
  ReadWorkspaceOptions,
  RefLike,
  RestoreAction,
  RestoreOptions,
  RestorePlan,
  RestoreReceipt,
  RootHistory,
  TurnSummary,
  UndoOptions,
  Workspace,
  WorkspaceView,
} from "./workspace/index.js";
