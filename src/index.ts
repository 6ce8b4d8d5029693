/**
 * The public entry `looprig`. It imports no driver statically: the default storage is loaded here, on demand, the one
 * arrow of its kind.
 */
import os from "node:os";
import { rigDefiner } from "./rig/index.js";
import type { OpenWorkspaceOptions, ReadWorkspaceOptions, Workspace, WorkspaceView } from "./workspace/index.js";
import { openWorkspace as open, readWorkspace as read } from "./workspace/index.js";
import type { WorkspaceWorld } from "./workspace/index.js";

const world = (): WorkspaceWorld => ({
  openDefaultStorage: async (options) => (await import("./storage-local/index.js")).openLocalStorage(options),
  defaultStorageDir: async () => (await import("./storage-local/index.js")).localStateDir(),
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

/** A validated, frozen assembly of loops, storage and placement, of which any number of sessions are started. */
export const defineRig = rigDefiner(() => ({ homes: [os.homedir()] }));

/** The same directory for reading: no lease, nothing written but a private cache; works beside a live session. */
export const readWorkspace = (options: ReadWorkspaceOptions): Promise<WorkspaceView> => read(options, world());

export { isLooprigError, LooprigError, parseRef, parseSessionId, displayName } from "./core/index.js";
export {
  ConfigurationDriftError,
  CoordinatorError,
  LoopDefinitionError,
  ModelError,
  PersistenceOverlapError,
  RestoreError,
  RigDefinitionError,
  SessionBusyError,
  SnapshotError,
  SnapshotPolicyError,
  StaleFileError,
  StorageError,
  ToolDefinitionError,
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
export { defineLoop, scriptedModel } from "./loop/index.js";
export type { LanguageModel, LoopDefinition, LoopOptions, ScriptStep } from "./loop/index.js";
export type { Rig, RigSession } from "./rig/index.js";
export type { Session, SessionDelta, Turn, TurnResult } from "./session/index.js";
export { defineReadTools, defineTool, defineTools, jsonSchema, tool } from "./tool/index.js";
export type {
  Capability,
  ReadWorkspaceBinding,
  Tool,
  ToolDefinition,
  ToolOutput,
  ToolSchema,
  WorkspaceBinding,
} from "./tool/index.js";
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
