/**
 * The public entry `looprig`. It imports no driver statically: the default storage is loaded here, on demand, the one
 * arrow of its kind.
 */
import os from "node:os";
import type { Abortable, SessionId } from "./core/index.js";
import { rigDefiner } from "./rig/index.js";
import { readSession as readStored } from "./session/index.js";
import type { SessionView } from "./session/index.js";
import type { Storage } from "./storage/index.js";
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

/**
 * A validated, frozen assembly of loops, storage and placement, of which any number of sessions are started. Synchronous; reads
 * the file system to make paths canonical, writes and acquires nothing. Throws `rig_definition.*`, `loop_definition.*`,
 * `workspace_placement.*`, `snapshot_policy.*`, `persistence.overlap`.
 */
export const defineRig = rigDefiner(() => ({ homes: [os.homedir()] }));

/**
 * A directory for reading: no lease, nothing written but a private cache; works beside a live session. Rejects with
 * `option.invalid`, `workspace_placement.*`, `workspace_root.changed`, `storage.*`; an abort with the signal's reason.
 */
export const readWorkspace = (options: ReadWorkspaceOptions): Promise<WorkspaceView> => read(options, world());

/**
 * A stored session for reading: what was said, its checkpoints, what changed. No lease, no rig, nothing written but a private
 * cache; it may be at work in another process. Rejects with `session_id.invalid` or `session.unknown`.
 */
export const readSession = (
  storage: Storage,
  id: SessionId | (string & {}),
  options: Abortable = {},
): Promise<SessionView> => readStored(storage, id, options);

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
  Abortable,
  CallId,
  CanonicalRoot,
  ErrorCode,
  ErrorDetails,
  ErrorOptions,
  EventId,
  GateId,
  Json,
  LeaseHolder,
  LooprigErrorOf,
  LoopId,
  SessionId,
  SnapshotRef,
  StepId,
  TurnId,
  WorkspacePath,
} from "./core/index.js";
export { defineLoop, scriptedModel } from "./loop/index.js";
export type {
  AssistantMessage,
  CallResult,
  LanguageModel,
  LoopDefinition,
  LoopOptions,
  Message,
  ScriptCall,
  ScriptedModelOptions,
  ScriptStep,
  TurnLimits,
} from "./loop/index.js";
export type {
  DefineRig,
  ExclusiveWorkspace,
  LeaserParts,
  LoopManifest,
  PlacementManifest,
  ResumeSessionOptions,
  Rig,
  RigManifest,
  RigOptions,
  RigSession,
  SessionStoreParts,
  SessionWorkspaces,
  SharedSnapshotPolicyOptions,
  SharedWorkspace,
  SnapshotPolicyOptions,
  SnapshotTrigger,
  StartSessionOptions,
  ToolManifest,
  WithoutPlacement,
  WithPlacement,
  WorkspaceStoreParts,
} from "./rig/index.js";
export type {
  DriftChange,
  DriftSeverity,
  GateAnswer,
  LoopHistory,
  OpenGate,
  Session,
  SessionDelta,
  SessionHistory,
  SessionView,
  SnapshotPolicy,
  Turn,
  TurnHistory,
  TurnResult,
} from "./session/index.js";
export { defineReadTools, defineTool, defineTools, jsonSchema, tool } from "./tool/index.js";
export type {
  BindingsFor,
  CallContext,
  Capability,
  CapabilityBindings,
  ChangeRecords,
  DefineReadToolsOptions,
  DefineToolOptions,
  DefineToolsOptions,
  DelegateController,
  FileChange,
  FileState,
  InferInput,
  KeptOutputs,
  NeedsApproval,
  Observation,
  PathObservation,
  ProcessBinding,
  ReadWorkspaceBinding,
  RecordedPermit,
  Tool,
  ToolDefinition,
  ToolOptions,
  ToolOutput,
  ToolSchema,
  WorkspaceBinding,
  WorkspaceObservations,
} from "./tool/index.js";
export { createSessionStore } from "./session-store/index.js";
export type {
  AssistantPart,
  CheckpointTrigger,
  CustomPart,
  EventEnvelope,
  EventOf,
  EventPayloads,
  EventType,
  Journal,
  NewEvent,
  PathsRecord,
  Placement,
  ProviderMetadata,
  ReasoningPart,
  RestoreNotice,
  RestoreRecord,
  SessionEvent,
  SessionStorage,
  SessionStore,
  SessionStoreOptions,
  SessionSummary,
  StoredIdentity,
  TextPart,
  TokenUsage,
  ToolCallPart,
  ToolOutcome,
  TurnLimit,
  UndoEntryName,
  WindowRecord,
} from "./session-store/index.js";
export { createWorkspaceStore } from "./workspace-store/index.js";
export type {
  CaptureOptions,
  CaptureProgress,
  CaptureResult,
  CaptureRules,
  CollectOptions,
  CollectProgress,
  CollectReport,
  ContentId,
  DerivedTree,
  DeriveOptions,
  KeepOptions,
  KeptFile,
  LookOptions,
  MaterializeOptions,
  OmissionClass,
  OwnerStats,
  PresentPaths,
  ScanOptions,
  ScanResult,
  StoreStats,
  Tree,
  TreeChange,
  TreeEntry,
  TreeId,
  VerifyDamage,
  VerifyProgress,
  VerifyReport,
  WorkspaceStore,
  WorkspaceStoreOptions,
} from "./workspace-store/index.js";
export { canonicalPath, deleteSession, knownRoots, listSessions } from "./workspace/index.js";
export type {
  CanonicalPathOptions,
  CaptureSettings,
  Change,
  ChangedBy,
  ChangedByCall,
  Checkpoint,
  CommitSection,
  EntryKind,
  ExecOptions,
  ExecResult,
  FileDiff,
  KeptReason,
  MutationScope,
  OpenWorkspaceOptions,
  Overlap,
  ReadWorkspaceOptions,
  RedoOptions,
  RefLike,
  ResolvedRef,
  RestoreAction,
  RestoreOptions,
  RestorePlan,
  RestoreReceipt,
  RootHistory,
  TurnSummary,
  UndoEntry,
  UndoOptions,
  Workspace,
  WorkspaceCoordinator,
  WorkspacePermit,
  WorkspaceView,
} from "./workspace/index.js";
