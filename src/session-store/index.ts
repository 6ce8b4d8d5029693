export type { Journal, SessionStore, SessionSummary } from "./contracts.js";
export type {
  CheckpointTrigger,
  EventEnvelope,
  EventOf,
  EventPayloads,
  EventType,
  NewEvent,
  PathsRecord,
  Placement,
  RestoreNotice,
  RestoreRecord,
  SessionEvent,
  StoredIdentity,
  UndoEntryName,
  WindowRecord,
} from "./events.js";
export type {
  AssistantPart,
  CustomPart,
  ProviderMetadata,
  ReasoningPart,
  TextPart,
  TokenUsage,
  ToolCallPart,
  ToolOutcome,
  TurnLimit,
} from "./messages.js";
export { createSessionStore } from "./store.js";
export type { SessionStorage, SessionStoreOptions } from "./store.js";
