import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareNames, displayName, isEscapedName, nameFromBytes, nameToBytes, toFsPath } from "./names.js";

/** Bytes biased to the borders of UTF-8: lead and continuation bytes, truncated, overlong and surrogate sequences. */
const bytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 4 }),
      fc.string({ unit: "grapheme", maxLength: 3 }).map((text) => new Uint8Array(Buffer.from(text))),
      fc.constantFrom(
        Uint8Array.of(0xed, 0xa0, 0x80),
        Uint8Array.of(0xed, 0xb2, 0x80),
        Uint8Array.of(0xc0, 0xaf),
        Uint8Array.of(0xf0, 0x9f, 0x92),
        Uint8Array.of(0xf4, 0x90, 0x80, 0x80),
        Uint8Array.of(0xef, 0xbf, 0xbd),
        Uint8Array.of(0x80),
        Uint8Array.of(0xff),
      ),
    ),
    { maxLength: 5 },
  )
  .map((parts) => Buffer.concat(parts));

describe("the string of a name", () => {
  test("leads back to its bytes, whatever they are", () => {
    fc.assert(fc.property(bytes, (name) => nameToBytes(nameFromBytes(name)).equals(name)));
  });

  test("survives JSON", () => {
    fc.assert(
      fc.property(bytes, (name) => {
        const text = nameFromBytes(name);
        expect(JSON.parse(JSON.stringify(text))).toBe(text);
      }),
    );
  });

  test("is the text itself where the bytes are UTF-8, and is marked where they are not", () => {
    fc.assert(
      fc.property(bytes, (name) => {
        const text = nameFromBytes(name);
        const valid = Buffer.from(name.toString("utf8")).equals(name);
        expect(text === name.toString("utf8")).toBe(valid);
        expect(isEscapedName(text)).toBe(!valid);
        expect(typeof toFsPath(text)).toBe(valid ? "string" : "object");
      }),
    );
  });
});

test("names are ordered as their bytes are", () => {
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      expect(Math.sign(compareNames(nameFromBytes(a), nameFromBytes(b)))).toBe(Buffer.compare(a, b));
    }),
  );
  // Where the order of UTF-16 is not that of UTF-8.
  expect(compareNames("\uffff", "\u{10000}")).toBeLessThan(0);
});

describe("the spelling for people", () => {
  test("holds nothing a terminal would obey or hide", () => {
    fc.assert(
      fc.property(bytes, (name) => {
        expect(displayName(nameFromBytes(name))).not.toMatch(
          /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\ud800-\udfff]/u,
        );
      }),
    );
  });

  test("is another for every other name", () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        fc.pre(!a.equals(b));
        expect(displayName(nameFromBytes(a))).not.toBe(displayName(nameFromBytes(b)));
      }),
    );
  });

  test.each([
    ["plain.txt", "plain.txt"],
    ["with space", "with space"],
    ["größe 💾", "größe 💾"],
    [" leading", '" leading"'],
    ["new\nline", '"new\\nline"'],
    ['quo"te', '"quo\\"te"'],
    ["back\\slash", '"back\\\\slash"'],
    ["\u001b[31mred", '"\\u001b[31mred"'],
    ["gpj.\u202eexe", '"gpj.\\u202eexe"'],
    ["bad\udcff", '"bad\\xff"'],
  ])("of %j is %s", (name, shown) => {
    expect(displayName(name)).toBe(shown);
  });
});
