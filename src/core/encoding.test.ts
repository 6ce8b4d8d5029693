import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, sha256Hex } from "./encoding.js";

const shuffled = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shuffled);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, shuffled(member)]),
  );
};

describe("canonical JSON", () => {
  test("is read back as the value by any reader of JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("does not depend on the order in which members were set", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
      }),
    );
  });

  test("is another for every other value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        expect(canonicalJson(a) === canonicalJson(b)).toBe(
          JSON.stringify(shuffled(sorted(a))) === JSON.stringify(shuffled(sorted(b))),
        );
      }),
    );
  });

  test("is this, byte for byte", () => {
    expect(
      canonicalJson({ b: [1, -0, 1e21, 0.1], a: { "\u00e9": null, Z: true, z: "\u2028\ud800" }, gone: undefined }),
    ).toBe('{"a":{"Z":true,"z":"\u2028\\ud800","\u00e9":null},"b":[1,0,1e+21,0.1]}');
  });

  test.each([[NaN], [Infinity], [{ a: -Infinity }], [[undefined]], [1n], [() => 1], [Symbol("s")]])(
    "refuses what JSON cannot say (%#)",
    (value) => {
      expect(() => canonicalJson(value)).toThrow(TypeError);
    },
  );
});

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]): [string, unknown] => [key, sorted(member)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
};

test("sha256 of text is that of its UTF-8, in lowercase hex", () => {
  expect(sha256Hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(sha256Hex(Buffer.from("\u00e9"))).toBe(sha256Hex("\u00e9"));
});
