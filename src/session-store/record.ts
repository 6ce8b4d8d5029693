/**
 * The bytes of a record (docs/formats/journal.md): canonical JSON out, strict parsing in. Pure; where large records lie
 * is the business of `out-of-line.ts`, and what a misfit means for a journal that of `replay.ts`.
 */
import { canonicalJson, invariant } from "../core/index.js";
import type { EventId, Json, SessionId } from "../core/index.js";
import { eventId, eventType, payloads, scope } from "./event-shapes.js";
import type { EventEnvelope, EventPayloads, EventType, NewEvent, SessionEvent } from "./events.js";
import { Misfit, count, matching, members, text, time } from "./shape.js";

export const recordVersion = 0;

/** Names that the record itself uses: a payload with one of them would be overwritten, or read as something else. */
type Reserved = keyof EventEnvelope | "type" | "v" | "out";
type MembersOf<T> = T extends unknown ? keyof T : never;
type Clash = { [T in EventType]: Extract<MembersOf<EventPayloads[T]>, Reserved> }[EventType];
true satisfies [Clash] extends [never] ? true : never;

/** What the ledger, and not the record, says of an event. */
export interface RecordPlace {
  readonly sessionId: SessionId;
  readonly seq: number;
}

/** Names a record that lies in blobs: `parts` of them, `<blob>.0` and so on. */
export interface OutOfLine {
  readonly blob: string;
  readonly bytes: number;
  readonly parts: number;
  readonly sha256: string;
}

const outOfLine = members<OutOfLine>({
  blob: text,
  bytes: count,
  parts: count,
  sha256: matching(/^[0-9a-f]{64}$/, "a digest"),
});

interface RecordHead {
  readonly id: EventId;
  readonly at: Date;
  readonly type: EventType;
}
const head = members<RecordHead>({ id: eventId, at: time, type: eventType });
const envelope = (value: unknown): unknown => members<{ v: number }>({ v: version })(value, "the record");

/** First of all: nothing else of a newer record may be judged. */
const version = (value: unknown, where: string): number => {
  if (count(value, where) > recordVersion) throw new Misfit("newer", where, `at most ${recordVersion}`);
  return value as number;
};

/** The event itself is elsewhere; `head` is what the ledger says of it. */
export interface LargeRecord {
  readonly inline: false;
  readonly head: RecordHead;
  readonly out: OutOfLine;
}
export type ParsedRecord = { readonly inline: true; readonly event: SessionEvent } | LargeRecord;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Throws a `Misfit`. */
export function parseRecord(body: Uint8Array, place: RecordPlace): ParsedRecord {
  const value = parseJson(body);
  envelope(value);
  const found = head(value, "the record");
  const { out } = value as { readonly out?: unknown };
  if (out !== undefined) return { inline: false, head: found, out: outOfLine(out, "the record.out") };
  return { inline: true, event: toEvent(value, found, place) };
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    // Parser messages quote what they met, which may be anybody's content.
    throw new Misfit("damaged", "the record", "JSON in UTF-8");
  }
}

function toEvent(value: unknown, { id, at, type }: RecordHead, { sessionId, seq }: RecordPlace): SessionEvent {
  const payload = payloads[type](value, "the record");
  // The type chose the payload's shape, which the compiler cannot follow through the table.
  return { seq, id, at, sessionId, ...scope(value, "the record"), type, ...payload } as SessionEvent;
}

/** The record of an event. */
export function encodeEvent(event: SessionEvent): Uint8Array {
  const record = { ...event, v: recordVersion, at: event.at.toISOString(), seq: undefined, sessionId: undefined };
  return Buffer.from(canonicalJson(record as unknown as Json), "utf8");
}

/** The record in the ledger of an event whose own record lies in blobs. */
export function encodeStub(event: SessionEvent, out: OutOfLine): Uint8Array {
  const { id, at, type } = event;
  return Buffer.from(canonicalJson({ v: recordVersion, id, at: at.toISOString(), type, out: { ...out } }), "utf8");
}

/** The event as any reader will see it. What does not fit its shape is a defect of the caller. */
export function sealEvent(event: NewEvent, place: RecordPlace, id: EventId, at: Date): SessionEvent {
  const given = canonicalJson({ ...event, v: recordVersion, id, at: at.toISOString() });
  try {
    const parsed = parseRecord(Buffer.from(given, "utf8"), place);
    invariant(parsed.inline, `BUG: a new event of type "${event.type}" has a member "out"`);
    return parsed.event;
  } catch (error) {
    invariant(
      !(error instanceof Misfit),
      `BUG: an event of type "${event.type}" cannot be journaled: ${String(error)}`,
    );
    throw error;
  }
}
