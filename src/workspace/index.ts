export { assertNarrowRoot, canonicalHomes } from "./broad-root.js";
export { canonicalPath } from "./canonical-path.js";
export { captureProblem, captureSettingNames } from "./capture-rules.js";
export type { ChangedBy } from "./changed-by.js";
export type {
  CaptureSettings,
  Change,
  Checkpoint,
  EntryKind,
  ExecOptions,
  ExecResult,
  FileDiff,
  OpenWorkspaceOptions,
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
  WorkspaceView,
} from "./contracts.js";
export { createCoordinator } from "./coordinator.js";
export type { MutationScope, OwnedCoordinator, WorkspaceCoordinator, WorkspacePermit } from "./coordinator-contract.js";
export { openWorkspace, readWorkspace } from "./open-workspace.js";
export type { WorkspaceWorld } from "./open-workspace.js";
export { assertOutside } from "./persistence-boundary.js";
export { splitRefPath } from "./references.js";
export type { KeptReason } from "./restore/plan.js";
export { deleteSession, knownRoots, listSessions } from "./session-list.js";
