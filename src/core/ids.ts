/**
 * Branded identifiers: strings that must not be mixed up carry their meaning in the type.
 * We mint them or parse them; nothing else turns a `string` into one.
 */
import { randomUUID } from "node:crypto";
import { LooprigError } from "./errors.js";

declare const brand: unique symbol;
export type Brand<T, B extends string> = T & { readonly [brand]: B };

/** Lowercase UUID text, never nil (R6): safe as a directory name on every volume. */
export type SessionId = Brand<string, "SessionId">;
/** Names a loop of one session. */
export type LoopId = Brand<string, "LoopId">;
/** Names a turn: one input up to its final reply, or one command. */
export type TurnId = Brand<string, "TurnId">;
/** Names a step: one call of the model, and the tool calls it asks for. */
export type StepId = Brand<string, "StepId">;
/** Names an event. Unlike `seq` it is unique across sessions. */
export type EventId = Brand<string, "EventId">;
/** Names one call of a tool or command; ours, whatever ids a model makes up. */
export type CallId = Brand<string, "CallId">;
/** Names a restore plan, and is a part of the names of its temporary files (U9). */
export type PlanId = Brand<string, "PlanId">;
/** Names a question to the user that waits for its answer, also across a restart. */
export type GateId = Brand<string, "GateId">;

/** An absolute, lexically clean path with every symlink resolved (R1). Made by `canonicalPath` only. */
export type CanonicalRoot = Brand<string, "CanonicalRoot">;

/** Content address of a captured tree (G6): `v1:sha256:<64 lowercase hex>`. */
export type SnapshotRef = Brand<string, "SnapshotRef">;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const nil = "00000000-0000-0000-0000-000000000000";

export const mintSessionId = (): SessionId => randomUUID() as SessionId;
export const mintLoopId = (): LoopId => randomUUID() as LoopId;
export const mintTurnId = (): TurnId => randomUUID() as TurnId;
export const mintStepId = (): StepId => randomUUID() as StepId;
export const mintEventId = (): EventId => randomUUID() as EventId;
export const mintCallId = (): CallId => randomUUID() as CallId;
export const mintGateId = (): GateId => randomUUID() as GateId;
/** Short because it becomes part of file names (U9); unique per root is enough, and 48 random bits are far more. */
export const mintPlanId = (): PlanId => randomUUID().replaceAll("-", "").slice(0, 12) as PlanId;

/** Throws `session_id.invalid` unless `text` is a lowercase, non-nil UUID. */
export function parseSessionId(text: string): SessionId {
  if (!uuid.test(text) || text === nil) {
    throw new LooprigError(
      "session_id.invalid",
      `Cannot read ${JSON.stringify(text)} as a session id: wanted a lowercase UUID that is not nil; \`looprig sessions\` lists them`,
      { given: text },
    );
  }
  return text as SessionId;
}

const ref = /^v1:sha256:[0-9a-f]{64}$/;

/** The strict form of a snapshot reference. Throws `ref.invalid`; for what people type see `resolveRef`. */
export function parseRef(text: string): SnapshotRef {
  if (!ref.test(text)) {
    throw new LooprigError(
      "ref.invalid",
      `Cannot read ${JSON.stringify(text)} as a snapshot ref: wanted "v1:sha256:" and 64 lowercase hex digits`,
      { given: text },
    );
  }
  return text as SnapshotRef;
}
