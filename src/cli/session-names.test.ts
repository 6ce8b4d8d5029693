import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionId } from "../core/index.js";
import { findSession, sessionNames } from "./session-names.js";

const ids = (...texts: string[]): SessionId[] => texts as SessionId[];

describe("sessions by the beginnings of their ids", () => {
  test("four characters where they tell them apart, more where they do not", () => {
    const [a, b, c] = ids("3f9a1111", "3f9a2222", "b71c0000") as [SessionId, SessionId, SessionId];
    const name = sessionNames([a, b, c]);
    expect([name(a), name(b), name(c)]).toEqual(["3f9a1", "3f9a2", "b71c"]);
  });

  test("every printed name finds its own session again", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 30 }), (texts) => {
        const all = ids(...texts);
        const name = sessionNames(all);
        for (const id of all) expect(findSession(name(id), all)).toBe(id);
      }),
    );
  });

  test("too short, unknown and ambiguous beginnings are refused", () => {
    const all = ids("3f9a1111", "3f9a2222");
    expect(() => findSession("3f9", all)).toThrow(/wanted 4 or more characters/);
    expect(() => findSession("b71c", all)).toThrow(/no session here/);
    expect(() => findSession("3f9a", all)).toThrow(/2 begin like that/);
  });
});
