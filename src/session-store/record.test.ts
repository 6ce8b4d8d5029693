import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantError, mintEventId, mintSessionId } from "../core/index.js";
import type { EventId, Json } from "../core/index.js";
import type { NewEvent } from "./events.js";
import { encodeEvent, parseRecord, sealEvent } from "./record.js";
import { Misfit } from "./shape.js";
import { arbitraryEvent, eventTypes } from "./testing/arbitrary-events.js";

const place = { sessionId: mintSessionId(), seq: 7 };
const id = "11111111-2222-4333-8444-555555555555" as EventId;
const at = new Date("2026-07-30T09:15:00.000Z");

const recordOf = (members: { readonly [name: string]: Json | undefined }): Uint8Array =>
  Buffer.from(JSON.stringify({ v: 0, id, at: at.toISOString(), type: "session-active", doing: "exec", ...members }));

function misfit(body: Uint8Array): string {
  try {
    parseRecord(body, place);
  } catch (error) {
    if (error instanceof Misfit) return error.verdict;
    throw error;
  }
  return "fits";
}

describe.each(eventTypes)("a record of type %s", (type) => {
  it("is read as the event that was written, and written again as the same bytes", () => {
    fc.assert(
      fc.property(arbitraryEvent(type), (given) => {
        const event = sealEvent(given, place, id, at);
        expect(event).toEqual({ ...given, ...place, id, at });
        const bytes = encodeEvent(event);
        const read = parseRecord(bytes, place);
        expect(read).toEqual({ inline: true, event });
        if (read.inline) expect(encodeEvent(read.event)).toEqual(bytes);
      }),
      { numRuns: 40 },
    );
  });
});

describe("the bytes of a record", () => {
  it("are canonical JSON without the sequence and the session", () => {
    const event = sealEvent({ type: "session-active", doing: "exec" }, place, id, at);
    expect(Buffer.from(encodeEvent(event)).toString("utf8")).toBe(
      `{"at":"2026-07-30T09:15:00.000Z","doing":"exec","id":"${id}","type":"session-active","v":0}`,
    );
  });

  it("carry half a surrogate pair as an escape", () => {
    const event = sealEvent({ type: "session-active", doing: "\ud800" }, place, id, at);
    expect(Buffer.from(encodeEvent(event)).toString("utf8")).toContain('"\\ud800"');
    expect(parseRecord(encodeEvent(event), place)).toEqual({ inline: true, event });
  });

  it("never repeat what an old event handed back carries of another journal", () => {
    const old = { ...sealEvent({ type: "session-idle" }, place, mintEventId(), new Date(0)) };
    const event = sealEvent(old, { ...place, seq: 9 }, id, at);
    expect(event).toEqual({ type: "session-idle", ...place, seq: 9, id, at });
  });
});

describe("strictness", () => {
  it("leaves out members it does not know", () => {
    const read = parseRecord(recordOf({ later: [1, 2] }), place);
    expect(read).toEqual({ inline: true, event: { type: "session-active", doing: "exec", ...place, id, at } });
  });

  it.each([
    ["a later version of the record, whatever else it holds", recordOf({ v: 1, id: 5, type: 9 })],
    ["a type it does not know", recordOf({ type: "session-teleported" })],
    ["a word it does not know", recordOf({ type: "checkpoint-failed", trigger: "full-moon", code: "x" })],
  ])("calls %s newer", (_, body) => {
    expect(misfit(body)).toBe("newer");
  });

  it.each([
    ["no JSON", Buffer.from('{"v":0')],
    ["no object", Buffer.from("[]")],
    ["bytes that are not UTF-8", Buffer.concat([Buffer.from('{"v":0,"x":"'), Buffer.from([0xff]), Buffer.from('"}')])],
    ["a byte order mark", Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), recordOf({})])],
    ["no version", recordOf({ v: undefined })],
    ["a negative version", recordOf({ v: -1 })],
    ["no id", recordOf({ id: "" })],
    ["a time in another form", recordOf({ at: "2026-07-30T09:15:00Z" })],
    ["a time that is none", recordOf({ at: "yesterday" })],
    ["a missing member", recordOf({ doing: undefined })],
    ["null for a missing member", recordOf({ doing: null })],
    ["a member of another kind", recordOf({ doing: 5 })],
    ["an optional member of another kind", recordOf({ turnId: 5 })],
    ["a type that is no text", recordOf({ type: 5 })],
    ["a ref that is none", recordOf({ type: "workspace-changed", kind: "window", callId: "c", from: "HEAD" })],
    ["a stub without digest", recordOf({ out: { blob: "b", bytes: 1, parts: 1 } })],
  ])("calls %s damaged", (_, body) => {
    expect(misfit(body)).toBe("damaged");
  });

  it("does not take names from the prototype for types", () => {
    expect(misfit(recordOf({ type: "constructor" }))).toBe("newer");
  });

  it("says nothing of the content in a misfit", () => {
    const secret = recordOf({ type: "turn-started", input: "the secret", number: "the secret" });
    expect(() => parseRecord(secret, place)).toThrow(/^the record.number is not an integer$/);
    expect(() => parseRecord(Buffer.from('{"the secret'), place)).toThrow(/^the record is not JSON in UTF-8$/);
  });

  it("refuses to write what it could not read", () => {
    const wrong = { type: "turn-done", order: -1, changed: 0 } as const;
    expect(() => sealEvent(wrong, place, id, at)).toThrow(InvariantError);
    expect(() => sealEvent({ type: "session-idle", out: 1 } as NewEvent, place, id, at)).toThrow(InvariantError);
  });
});
