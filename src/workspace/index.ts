export { assertNarrowRoot, canonicalHomes } from "./broad-root.js";
export { canonicalPath } from "./canonical-path.js";
export type { CanonicalPathOptions } from "./canonical-path.js";
export { captureProblem, captureSettingNames } from "./capture-rules.js";
export { buildRoot } from "./build-root.js";
export type { ChangedBy, ChangedByCall, Overlap } from "./changed-by.js";
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
export type { ChangeRecords, FileChange, FileState, RecordedPermit } from "./change-records.js";
export { ChangeRecorder } from "./change-recorder.js";
export { closeTurn, closeWindows } from "./close-turn.js";
export { createCommitSection } from "./commit-section.js";
export type { CommitSection } from "./commit-section.js";
export { createCoordinator } from "./coordinator.js";
export type { MutationScope, OwnedCoordinator, WorkspaceCoordinator, WorkspacePermit } from "./coordinator-contract.js";
export type { RecordingCall, RecordingCoordinator } from "./change-records.js";
export { examineRoots } from "./examine-roots.js";
export type { RootExamination } from "./examine-roots.js";
export { readGitHead } from "./git-head.js";
export { openTurn as openTurnOf } from "./history.js";
export { createObservations } from "./observations.js";
export type {
  Observation,
  OwnedObservations,
  PathObservation,
  WorkspaceObservations,
} from "./observations-contract.js";
export { openWorkspace, readWorkspace } from "./open-workspace.js";
export { OwnedRoot } from "./owned-root.js";
export { OwnedWorkspace } from "./owned-workspace.js";
export { replaceStranger, treeToGoOnFrom } from "./replace-stranger.js";
export { dropCheckpoints, planDrop } from "./retention/drop-checkpoints.js";
export type { RootDrop } from "./retention/drop-checkpoints.js";
export type { KeepPolicy } from "./retention/keep-policy.js";
export { RootReader } from "./root-reader.js";
export { endGroup } from "./process-group.js";
export { assertEnded } from "./settle-sessions.js";
export { takeRoot } from "./take-root.js";
export { RootView } from "./view.js";
export type { WorkspaceWorld } from "./open-workspace.js";
export { assertOutside } from "./persistence-boundary.js";
export { splitRefPath } from "./references.js";
export type { KeptReason } from "./restore/plan.js";
export { deleteSession, knownRoots, listSessions } from "./session-list.js";
