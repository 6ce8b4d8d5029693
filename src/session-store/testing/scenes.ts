/** What the tests of this feature start from. */
import { mintSessionId } from "../../core/index.js";
import type { SessionId, SnapshotRef } from "../../core/index.js";
import type { Journal, SessionStore } from "../contracts.js";
import type { NewEvent, SessionEvent } from "../events.js";
import { createSessionStore } from "../store.js";
import type { SessionStorage } from "../store.js";

export const claim = { command: "a test" };

export const started = (root = "/w"): NewEvent => ({
  type: "session-started",
  placement: "exclusive",
  root,
  command: "a test",
});
export const turnStarted = (number: number, input = "do it"): NewEvent => ({
  type: "turn-started",
  number,
  order: number * 10,
  input,
  kind: "prompt",
});
export const turnDone = (number: number): NewEvent => ({ type: "turn-done", order: number * 10 + 1, changed: 0 });
export const closed: NewEvent = { type: "session-closed" };
export const idle: NewEvent = { type: "session-idle" };
export const someRef = `v1:sha256:${"a".repeat(64)}` as SnapshotRef;
export const checkpointed = (number: number): NewEvent => ({
  type: "workspace-checkpointed",
  ref: someRef,
  number,
  order: number,
  trigger: "manual",
  consistency: "quiescent",
  completeness: "complete",
  files: 1,
  omitted: {},
});

/** One second per look, so that no two events share a time. */
export function tickingClock(): () => Date {
  let at = Date.UTC(2026, 6, 30);
  return () => new Date((at += 1000));
}

export const storeOn = (storage: SessionStorage): SessionStore =>
  createSessionStore(storage, { clock: tickingClock() });

/** A session with these events, its journal still open. */
export async function begin(store: SessionStore, ...events: readonly NewEvent[]): Promise<Journal> {
  const journal = await store.create(mintSessionId(), claim);
  await journal.append([started(), ...events]);
  return journal;
}

/** A session with these events whose writer is gone. */
export async function past(store: SessionStore, ...events: readonly NewEvent[]): Promise<SessionId> {
  const journal = await begin(store, ...events);
  await journal.close();
  return journal.sessionId;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** What can be read, and what ended it. */
export async function readAll(store: SessionStore, id: SessionId): Promise<{ events: SessionEvent[]; error: unknown }> {
  const events: SessionEvent[] = [];
  try {
    for await (const event of store.read(id)) events.push(event);
    return { events, error: undefined };
  } catch (error) {
    return { events, error };
  }
}

export const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;

export const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
