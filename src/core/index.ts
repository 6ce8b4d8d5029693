export { inSlices, onAbort, pacer, raceAbort, signalOf, yieldToEventLoop } from "./abort.js";
export type { Abortable } from "./abort.js";
export { publishNoReplace, syncDirectory, temporaryPrefix, writeAll, writeFileAtomic } from "./atomic-file.js";
export type { AtomicWriteOptions } from "./atomic-file.js";
export { Directory, openBelow } from "./directory.js";
export { canonicalJson, sha256Hex } from "./encoding.js";
export type { Json } from "./encoding.js";
export {
  ConfigurationDriftError,
  CoordinatorError,
  LoopDefinitionError,
  LooprigError,
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
  isLooprigError,
} from "./errors.js";
export type { ErrorCode, ErrorDetails, ErrorOptions, LeaseHolder, LooprigErrorOf } from "./errors.js";
export { errnoOf, interceptFileSystem, isFull, isMissing, nodeFileSystem } from "./file-system.js";
export type { FileSystem, FileSystemCall, FsPath } from "./file-system.js";
export {
  mintCallId,
  mintEventId,
  mintGateId,
  mintLoopId,
  mintPlanId,
  mintSessionId,
  mintStepId,
  mintTurnId,
  parseRef,
  parseSessionId,
} from "./ids.js";
export type {
  Brand,
  CallId,
  CanonicalRoot,
  EventId,
  GateId,
  LoopId,
  PlanId,
  SessionId,
  SnapshotRef,
  StepId,
  TurnId,
} from "./ids.js";
export { InvariantError, invariant } from "./invariant.js";
export { compareNames, displayName, isEscapedName, nameFromBytes, nameToBytes, toFsPath } from "./names.js";
export { baseName, components, isWithin, joinPath, parentOf, parseWorkspacePath, rootPath } from "./workspace-path.js";
export type { WorkspacePath } from "./workspace-path.js";
