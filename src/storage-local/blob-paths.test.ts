import fc from "fast-check";
import { expect, test } from "vitest";
import { blobPath, keyOf, keyPrefixOf } from "./blob-paths.js";

const characters = Array.from("abzABZ019._-");
const part = fc
  .oneof(
    fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength: 6 }),
    // Around the length at which a component is cut.
    fc.string({ unit: fc.constantFrom(...characters), minLength: 195, maxLength: 205 }),
  )
  .filter((text) => text !== "." && text !== "..");
const key = fc
  .array(part, { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join("/"))
  .filter((text) => text.length <= 512);

test("lower-case keys of usual length are found under their own names", () => {
  expect(blobPath("packs/ab/abcdef.pack")).toEqual(["packs", "ab", "@abcdef.pack"]);
});

test("a path tells its key again, and its directories where keys begin", () => {
  fc.assert(
    fc.property(key, (text) => {
      const path = blobPath(text);
      expect(keyOf(path.slice(0, -1), path.at(-1) ?? "")).toBe(text);
      for (let i = 0; i < path.length; i++) expect(text.startsWith(keyPrefixOf(path.slice(0, i)))).toBe(true);
    }),
  );
});

test("two keys never want one name, nor one a file where the other wants a directory, on a volume that folds case", () => {
  fc.assert(
    fc.property(key, key, (a, b) => {
      fc.pre(a !== b);
      const [x, y] = [blobPath(a), blobPath(b)].map((path) => path.map((name) => name.toLowerCase())) as [
        string[],
        string[],
      ];
      expect(x.join("/")).not.toBe(y.join("/"));
      expect(x.slice(0, y.length).join("/") === y.join("/")).toBe(false);
      expect(y.slice(0, x.length).join("/") === x.join("/")).toBe(false);
    }),
  );
});

test("every name fits the 255 bytes of a directory entry", () => {
  fc.assert(
    fc.property(key, (text) => {
      for (const name of blobPath(text)) expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    }),
  );
  expect(Math.max(...blobPath("A".repeat(512)).map((name) => name.length))).toBeLessThanOrEqual(255);
});
