/**
 * What each type of event looks like in a journal: `EventPayloads` once more, for data that comes from outside. The
 * compiler keeps the two tables together; old journals keep them honest (`fixtures/`).
 */
import type { CallId, EventId, GateId, LoopId, SessionId, SnapshotRef, StepId, TurnId } from "../core/index.js";
import type {
  CheckpointTrigger,
  EventEnvelope,
  EventPayloads,
  EventType,
  PathsRecord,
  Placement,
  RestoreNotice,
  RestoreRecord,
  StoredIdentity,
  UndoEntryName,
  WindowRecord,
} from "./events.js";
import type {
  AssistantPart,
  CustomPart,
  ReasoningPart,
  TextPart,
  TokenUsage,
  ToolCallPart,
  ToolOutcome,
  TurnLimit,
} from "./messages.js";
import {
  allWords,
  count,
  flag,
  integer,
  json,
  listOf,
  mapOf,
  matching,
  members,
  nullable,
  optional,
  text,
  variants,
  words,
} from "./shape.js";
import type { Shape } from "./shape.js";

const id = <T extends string>(): Shape<T> => matching<T>(/./su, "an id");
export const ref = matching<SnapshotRef>(/^v1:sha256:[0-9a-f]{64}$/, "a snapshot ref");
const decimal = matching<string>(/^-?[0-9]+$/, "a decimal number as text");

export const placement = words<Placement>({ exclusive: true, session: true, shared: true, none: true });

const trigger = words<CheckpointTrigger>({
  seed: true,
  baseline: true,
  manual: true,
  idle: true,
  "turn-done": true,
  "step-done": true,
  interrupt: true,
  resume: true,
  window: true,
  interval: true,
  "pre-restore": true,
  "post-restore": true,
});

const identity = members<StoredIdentity>({ dev: decimal, ino: decimal, birthtimeNs: decimal, mode: count });

const turnEnd = { order: count, head: optional(text), changed: count };
const exit = { exitCode: optional(integer), signal: optional(text) };
const nothing = members<EventPayloads["session-idle"]>({});

const window = members<WindowRecord>({
  kind: words({ window: true }),
  callId: id<CallId>(),
  from: ref,
  to: ref,
  opened: flag,
  settled: optional(flag),
  openOrder: count,
  closeOrder: count,
});

const paths = members<PathsRecord>({
  kind: words({ paths: true }),
  callId: id<CallId>(),
  order: count,
  changes: listOf(members({ path: text, before: nullable(text), after: nullable(text) })),
  kept: optional(ref),
  staged: optional(listOf(text)),
  replaced: optional(text),
});

const action = words({ undo: true, redo: true, restore: true });
const entry = matching<UndoEntryName>(/^[tc][0-9]+$/, "the name of a turn or checkpoint");

const restoreNotice = members<RestoreNotice>({
  by: id<SessionId>(),
  planId: text,
  action,
  entry,
  order: count,
  written: listOf(text),
  deleted: listOf(text),
  more: count,
});

const restore = members<RestoreRecord>({
  action,
  entry,
  target: optional(ref),
  from: ref,
  ref,
  order: count,
  planId: text,
  result: words({ done: true, partly: true }),
  written: listOf(text),
  deleted: listOf(text),
  kept: listOf(members({ path: text, reason: text })),
  conflicts: listOf(members({ path: text })),
});

const metadata = optional(mapOf(json));
const part = variants<"type", AssistantPart>("type", {
  text: members<TextPart>({ type: words({ text: true }), text, metadata }),
  reasoning: members<ReasoningPart>({ type: words({ reasoning: true }), text, metadata }),
  "tool-call": members<ToolCallPart>({
    type: words({ "tool-call": true }),
    callId: id<CallId>(),
    name: text,
    input: text,
    modelCallId: optional(text),
    cut: optional(flag),
    metadata,
  }),
  custom: members<CustomPart>({ type: words({ custom: true }), kind: text, metadata }),
});

const outcome = words<ToolOutcome>({ ok: true, error: true, refused: true, unknown: true });

const usage = members<TokenUsage>({
  inputTokens: optional(count),
  outputTokens: optional(count),
  cachedInputTokens: optional(count),
  reasoningTokens: optional(count),
});

/** The members an event may carry beside its payload. */
export const scope = members<Pick<EventEnvelope, "loopId" | "turnId" | "stepId" | "cause">>({
  loopId: optional(id<LoopId>()),
  turnId: optional(id<TurnId>()),
  stepId: optional(id<StepId>()),
  cause: optional(id<EventId>()),
});

export const eventId = id<EventId>();

export const payloads: { readonly [T in EventType]: Shape<EventPayloads[T]> } = {
  "session-started": members<EventPayloads["session-started"]>({
    placement,
    root: optional(text),
    identity: optional(identity),
    command: text,
    fingerprint: optional(text),
    manifest: optional(json),
  }),
  "session-active": members<EventPayloads["session-active"]>({ doing: text }),
  "session-idle": nothing,
  "session-faulted": members<EventPayloads["session-faulted"]>({ code: text }),
  "session-recovered": nothing,
  "session-closed": nothing,
  "loop-started": members<EventPayloads["loop-started"]>({ name: text }),
  "active-loop-changed": members<EventPayloads["active-loop-changed"]>({ name: text }),
  "turn-started": members<EventPayloads["turn-started"]>({
    number: count,
    order: count,
    input: text,
    kind: words({ prompt: true, command: true }),
    head: optional(text),
  }),
  "step-started": members<EventPayloads["step-started"]>({
    model: text,
    content: listOf(part),
    finish: optional(text),
  }),
  "tool-started": members<EventPayloads["tool-started"]>({ callId: id<CallId>(), name: text }),
  "tool-done": members<EventPayloads["tool-done"]>({
    callId: id<CallId>(),
    name: text,
    outcome,
    text,
    data: optional(json),
  }),
  "step-done": members<EventPayloads["step-done"]>({ usage }),
  "turn-done": members<EventPayloads["turn-done"]>({
    ...turnEnd,
    ...exit,
    text: optional(text),
    steps: optional(count),
    usage: optional(usage),
    limit: optional(words<TurnLimit>({ steps: true, toolCalls: true })),
  }),
  "turn-failed": members<EventPayloads["turn-failed"]>({ ...turnEnd, code: text, message: text }),
  "turn-interrupted": members<EventPayloads["turn-interrupted"]>({ ...turnEnd, reason: text }),
  "workspace-checkpointed": members<EventPayloads["workspace-checkpointed"]>({
    ref,
    number: count,
    order: count,
    trigger,
    consistency: words({ quiescent: true, fuzzy: true }),
    completeness: words({ complete: true, partial: true }),
    derived: optional(flag),
    label: optional(text),
    files: count,
    changed: optional(count),
    omitted: mapOf(count),
  }),
  "checkpoint-failed": members<EventPayloads["checkpoint-failed"]>({ trigger, code: text }),
  "workspace-changed": variants<"kind", WindowRecord | PathsRecord>("kind", { window, paths }),
  "window-opened": members<EventPayloads["window-opened"]>({
    callId: id<CallId>(),
    from: optional(ref),
    opened: flag,
    order: count,
    code: optional(text),
  }),
  "window-closed": members<EventPayloads["window-closed"]>({ callId: id<CallId>() }),
  "workspace-restored": restore,
  "restore-noticed": restoreNotice,
  "gate-opened": members<EventPayloads["gate-opened"]>({
    gateId: id<GateId>(),
    callId: id<CallId>(),
    tool: text,
    input: json,
  }),
  "gate-resolved": members<EventPayloads["gate-resolved"]>({
    gateId: id<GateId>(),
    approved: flag,
    reason: optional(text),
  }),
  "process-started": members<EventPayloads["process-started"]>({
    callId: id<CallId>(),
    pid: integer,
    startTime: text,
    bootId: text,
    command: text,
    group: optional(flag),
  }),
  "process-exited": members<EventPayloads["process-exited"]>({ callId: id<CallId>(), ...exit }),
  "configuration-adopted": members<EventPayloads["configuration-adopted"]>({
    changes: listOf(members({ field: text, stored: json, live: json })),
  }),
};

export const eventType = words<EventType>(allWords(payloads));
