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
export { readSession } from "./read-session.js";
export type { SessionView } from "./read-session.js";
export { resumeSession } from "./resume.js";
export type { LoopHistory, OpenGate, SessionHistory, TurnHistory } from "./session-history.js";
export { startSession } from "./start.js";
