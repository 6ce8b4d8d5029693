/** Events of every type, biased to the awkward: lone surrogates, names that objects have already, absent members. */
import fc from "fast-check";
import type {
  CallId,
  EventId,
  GateId,
  Json,
  LoopId,
  SessionId,
  SnapshotRef,
  StepId,
  TurnId,
} from "../../core/index.js";
import type { EventPayloads, EventType, NewEvent, PathsRecord, UndoEntryName, WindowRecord } from "../events.js";
import type { AssistantPart, CustomPart, ReasoningPart, TextPart, TokenUsage, ToolCallPart } from "../messages.js";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom("", "\ud800", "a\udfff/b", "__proto__", "\u0000", "\ufeff", "src/\u{1f600}.ts", '"\\\n'),
);
const id = <T extends string>() => fc.uuid() as unknown as fc.Arbitrary<T>;
const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
const ref = hex.map((digits) => `v1:sha256:${digits}` as SnapshotRef);
const count = fc.maxSafeNat();
const number = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String);
const content = fc.option(text, { nil: null });
const entry = fc.tuple(fc.constantFrom("t", "c"), fc.nat()).map(([kind, n]) => `${kind}${n}` as UndoEntryName);
// Negative zero is 0 in JSON, so it is 0 from the first append on.
const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as Json);
const trigger = fc.constantFrom(
  ...(["seed", "baseline", "manual", "idle", "turn-done", "step-done", "interrupt", "resume"] as const),
  ...(["window", "interval", "pre-restore", "post-restore"] as const),
);

/** Absent with probability one half; never present and undefined. */
const record = <T extends object, K extends keyof T = never>(
  required: { readonly [P in Exclude<keyof T, K>]: fc.Arbitrary<T[P]> },
  optional?: { readonly [P in K]-?: fc.Arbitrary<Exclude<T[P], undefined>> },
): fc.Arbitrary<T> =>
  fc.record({ ...required, ...optional } as unknown as { [P in keyof T]: fc.Arbitrary<T[P]> }, {
    requiredKeys: Object.keys(required) as never[],
  }) as fc.Arbitrary<T>;

const metadata = fc.dictionary(text, json, { maxKeys: 2, noNullPrototype: true });
const part: fc.Arbitrary<AssistantPart> = fc.oneof(
  record<TextPart, "metadata">({ type: fc.constant("text"), text }, { metadata }),
  record<ReasoningPart, "metadata">({ type: fc.constant("reasoning"), text }, { metadata }),
  record<ToolCallPart, "modelCallId" | "cut" | "metadata">(
    { type: fc.constant("tool-call"), callId: id<CallId>(), name: text, input: text },
    { modelCallId: text, cut: fc.boolean(), metadata },
  ),
  record<CustomPart, "metadata">({ type: fc.constant("custom"), kind: text }, { metadata }),
);
const usage = record<TokenUsage, keyof TokenUsage>(
  {},
  { inputTokens: count, outputTokens: count, cachedInputTokens: count, reasoningTokens: count },
);

const exit = { exitCode: fc.integer(), signal: text };

const payloads: { readonly [T in EventType]: fc.Arbitrary<EventPayloads[T]> } = {
  "session-started": record<EventPayloads["session-started"], "root" | "identity" | "fingerprint" | "manifest">(
    { placement: fc.constantFrom("exclusive", "session", "shared", "none"), command: text },
    {
      root: text,
      identity: fc.record({ dev: number, ino: number, birthtimeNs: number, mode: count }),
      fingerprint: hex,
      manifest: json,
    },
  ),
  "session-active": fc.record({ doing: text }),
  "session-idle": fc.record({}),
  "session-faulted": fc.record({ code: text }),
  "session-recovered": fc.record({}),
  "session-closed": fc.record({}),
  "loop-started": fc.record({ name: text }),
  "active-loop-changed": fc.record({ name: text }),
  "turn-started": record<EventPayloads["turn-started"], "head">(
    { number: count, order: count, input: text, kind: fc.constantFrom("prompt", "command") },
    { head: text },
  ),
  "step-started": record<EventPayloads["step-started"], "finish">(
    { model: text, content: fc.array(part, { maxLength: 4 }) },
    { finish: text },
  ),
  "tool-started": fc.record({ callId: id<CallId>(), name: text }),
  "tool-done": record<EventPayloads["tool-done"], "data">(
    { callId: id<CallId>(), name: text, outcome: fc.constantFrom("ok", "error", "refused", "unknown"), text },
    { data: json },
  ),
  "step-done": fc.record({ usage }),
  "turn-done": record<
    EventPayloads["turn-done"],
    "head" | "exitCode" | "signal" | "text" | "steps" | "usage" | "limit"
  >(
    { order: count, changed: count },
    { head: text, ...exit, text, steps: count, usage, limit: fc.constantFrom("steps", "toolCalls") },
  ),
  "turn-failed": record<EventPayloads["turn-failed"], "head">(
    { order: count, changed: count, code: text, message: text },
    { head: text },
  ),
  "turn-interrupted": record<EventPayloads["turn-interrupted"], "head">(
    { order: count, changed: count, reason: text },
    { head: text },
  ),
  "workspace-checkpointed": record<EventPayloads["workspace-checkpointed"], "label" | "changed" | "derived">(
    {
      ref,
      number: count,
      order: count,
      trigger,
      consistency: fc.constantFrom("quiescent", "fuzzy"),
      completeness: fc.constantFrom("complete", "partial"),
      files: count,
      omitted: fc.dictionary(text, count, { noNullPrototype: true }),
    },
    { label: text, changed: count, derived: fc.boolean() },
  ),
  "checkpoint-failed": fc.record({ trigger, code: text }),
  "workspace-changed": fc.oneof(
    record<WindowRecord, "settled">(
      {
        kind: fc.constant("window"),
        callId: id<CallId>(),
        from: ref,
        to: ref,
        opened: fc.boolean(),
        openOrder: count,
        closeOrder: count,
      },
      { settled: fc.boolean() },
    ),
    record<PathsRecord, "kept" | "staged" | "replaced">(
      {
        kind: fc.constant("paths" as const),
        callId: id<CallId>(),
        order: count,
        changes: fc.array(fc.record({ path: text, before: content, after: content }), { maxLength: 4 }),
      },
      { kept: ref, staged: fc.array(text, { maxLength: 2 }), replaced: text },
    ),
  ),
  "window-opened": record<EventPayloads["window-opened"], "from" | "code">(
    { callId: id<CallId>(), opened: fc.boolean(), order: count },
    { from: ref, code: text },
  ),
  "window-closed": fc.record({ callId: id<CallId>() }),
  "workspace-restored": record<EventPayloads["workspace-restored"], "target">(
    {
      action: fc.constantFrom("undo", "redo", "restore"),
      entry,
      from: ref,
      ref,
      order: count,
      planId: text,
      result: fc.constantFrom("done", "partly"),
      written: fc.array(text, { maxLength: 4 }),
      deleted: fc.array(text, { maxLength: 4 }),
      kept: fc.array(fc.record({ path: text, reason: text }), { maxLength: 4 }),
      conflicts: fc.array(fc.record({ path: text }), { maxLength: 4 }),
    },
    { target: ref },
  ),
  "restore-noticed": fc.record({
    by: id<SessionId>(),
    planId: text,
    action: fc.constantFrom("undo", "redo", "restore"),
    entry,
    order: count,
    written: fc.array(text, { maxLength: 4 }),
    deleted: fc.array(text, { maxLength: 4 }),
    more: count,
  }),
  "gate-opened": fc.record({ gateId: id<GateId>(), callId: id<CallId>(), tool: text, input: json }),
  "gate-resolved": record<EventPayloads["gate-resolved"], "reason">(
    { gateId: id<GateId>(), approved: fc.boolean() },
    { reason: text },
  ),
  "process-started": record<EventPayloads["process-started"], "group">(
    { callId: id<CallId>(), pid: count, startTime: text, bootId: text, command: text },
    { group: fc.boolean() },
  ),
  "process-exited": record<EventPayloads["process-exited"], "exitCode" | "signal">({ callId: id<CallId>() }, exit),
  "configuration-adopted": fc.record({
    changes: fc.array(fc.record({ field: text, stored: json, live: json }), { maxLength: 3 }),
  }),
};

const scope = fc.record(
  { loopId: id<LoopId>(), turnId: id<TurnId>(), stepId: id<StepId>(), cause: id<EventId>() },
  { requiredKeys: [] },
);

export const eventTypes = Object.keys(payloads) as EventType[];

export const arbitraryEvent = (type: EventType): fc.Arbitrary<NewEvent> =>
  fc.tuple(scope, payloads[type]).map(([around, payload]) => ({ type, ...around, ...payload }) as NewEvent);

/** What one session may have done: it starts, and then anything. */
export const arbitraryHistory: fc.Arbitrary<readonly NewEvent[]> = fc
  .tuple(arbitraryEvent("session-started"), fc.array(fc.oneof(...eventTypes.map(arbitraryEvent)), { maxLength: 12 }))
  .map(([first, rest]) => [first, ...rest]);
