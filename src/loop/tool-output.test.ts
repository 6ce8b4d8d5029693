import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LooprigError } from "../core/index.js";
import { parseInput } from "./tool-input.js";
import { boundedData, boundedText, dataCharsMax, errorText, resultCharsMax } from "./tool-output.js";

const inputOf = (input: string) => parseInput({ type: "tool-call", callId: "c" as never, name: "t", input });

describe("the output of a tool", () => {
  it("of 10 MB is cut in the middle, and says so", () => {
    const text = boundedText(`head ${"x".repeat(10_000_000)} tail`);
    expect(text.length).toBeLessThan(resultCharsMax + 100);
    expect(text).toMatch(/^head x+\n\[9950010 of 10000010 characters are left out here\]\nx+ tail$/);
  });

  it("is itself when it is short, and never longer than its bound by more than the note", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), fc.nat(40), (text, max) => {
        const bounded = boundedText(text, max);
        expect(Buffer.from(bounded, "utf8").toString("utf8")).toBe(bounded);
        if (text.length <= max) expect(bounded.length).toBe(text.length);
        else expect(bounded).toMatch(/\[\d+ of \d+ characters are left out here\]/);
        expect(bounded.length).toBeLessThanOrEqual(Math.max(text.length, max + 60));
      }),
    );
  });

  it("has data only if that is small and shallow enough to be kept", () => {
    const deep = JSON.parse("[".repeat(100) + "]".repeat(100)) as never;
    expect(boundedData({ lines: 61 })).toEqual({ lines: 61 });
    expect([boundedData("x".repeat(dataCharsMax)), boundedData(deep), boundedData(undefined)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it("of an error is its message, with what to do", () => {
    const error = new LooprigError(
      "option.invalid",
      "Cannot do it",
      { field: "a", given: "b", wanted: "c" },
      { hint: "Try d" },
    );
    expect(errorText(error)).toBe("Cannot do it\nTry d");
    expect(errorText(new TypeError(""))).toBe("TypeError");
    expect(errorText("plain")).toBe("plain");
    expect(errorText(undefined)).toBe("The tool threw what is no error.");
  });

  it("of an error is text, whatever was thrown", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (thrown) => {
        expect(errorText(thrown)).toMatch(/./s);
      }),
    );
  });
});

describe("the input of a call", () => {
  it("is JSON, and nothing at all stands for an empty object", () => {
    expect(inputOf('{"a":[1]}')).toEqual({ ok: true, input: { a: [1] } });
    expect(inputOf(" \n")).toEqual({ ok: true, input: {} });
    expect(inputOf("null")).toEqual({ ok: true, input: null });
  });

  it.each(['{"a":', "{'a': 1}", "[".repeat(200_000), "[".repeat(100) + "]".repeat(100)])(
    "that cannot be used is described shortly (%#)",
    (input) => {
      const parsed = inputOf(input);
      expect(parsed.ok).toBe(false);
      expect(parsed.ok ? "" : parsed.problem).toMatch(/^the input is .{10,600}$/s);
    },
  );

  it.each(["1e999", '{"a":[{"b":-1e400}]}'])("with a number that JSON cannot say again is refused: %s", (input) => {
    expect(inputOf(input)).toMatchObject({ ok: false, problem: expect.stringContaining("number") as string });
  });

  it("keeps a member called __proto__ a member", () => {
    const parsed = inputOf('{"__proto__":{"a":1}}');
    expect(parsed.ok && Object.getPrototypeOf(parsed.input) === Object.prototype).toBe(true);
  });
});
