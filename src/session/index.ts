export type {
  DriftChange,
  DriftSeverity,
  GateAnswer,
  PlacementDefinition,
  ResumeOptions,
  Session,
  SessionDefinition,
  SessionDelta,
  SnapshotPolicy,
  StartOptions,
  Turn,
  TurnResult,
} from "./contracts.js";
export { resumeSession } from "./resume.js";
export { startSession } from "./start.js";
