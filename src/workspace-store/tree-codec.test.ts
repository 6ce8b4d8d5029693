import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareNames, nameFromBytes } from "../core/index.js";
import { FormatError } from "./byte-codec.js";
import type { TreeEntry } from "./contracts.js";
import { decodePieces, decodeSnapshot, encodePieces, encodeSnapshot, pieceBytes } from "./object-ids.js";
import { decodeTree, encodeTree, omissionClasses } from "./tree-codec.js";
import type { NamedEntry } from "./tree-codec.js";

const digest = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
const mode = fc.integer({ min: 0, max: 0o777 });
const nameBytes = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .filter((bytes) => !bytes.includes(0) && !bytes.includes(0x2f) && !/^\.{1,2}$/.test(Buffer.from(bytes).toString()));
const name = nameBytes.map(nameFromBytes);
const entry: fc.Arbitrary<TreeEntry> = fc.oneof(
  fc.record({ kind: fc.constant("file"), mode, size: fc.maxSafeNat(), id: digest }) as fc.Arbitrary<TreeEntry>,
  fc.record({ kind: fc.constant("directory"), mode, id: digest }) as fc.Arbitrary<TreeEntry>,
  fc.record({ kind: fc.constant("symlink"), target: name }) as fc.Arbitrary<TreeEntry>,
  fc.record({ kind: fc.constant("omitted"), class: fc.constantFrom(...omissionClasses) }) as fc.Arbitrary<TreeEntry>,
);
const entries: fc.Arbitrary<readonly NamedEntry[]> = fc
  .uniqueArray(fc.tuple(name, entry), { selector: ([key]) => key, maxLength: 8 })
  .map((list) => list.sort(([a], [b]) => compareNames(a, b)));

describe("the encoding of a directory", () => {
  it("decodes to what was encoded", () => {
    fc.assert(
      fc.property(entries, (list) => {
        expect(decodeTree(encodeTree(list))).toEqual(list);
      }),
    );
  });

  it("is the only one: whatever else decodes at all encodes to itself", () => {
    fc.assert(
      fc.property(entries, fc.nat(), fc.integer({ min: 1, max: 255 }), (list, where, flip) => {
        const bytes = Buffer.from(encodeTree(list));
        const at = where % bytes.length;
        bytes[at] = (bytes[at] as number) ^ flip;
        let decoded: readonly NamedEntry[];
        try {
          decoded = decodeTree(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(FormatError);
          return;
        }
        expect(encodeTree(decoded)).toEqual(bytes);
      }),
    );
  });

  it("is refused when cut short or continued", () => {
    fc.assert(
      fc.property(entries, fc.nat(), (list, where) => {
        const bytes = encodeTree(list);
        expect(() => decodeTree(bytes.subarray(0, where % bytes.length))).toThrow(FormatError);
        expect(() => decodeTree(Buffer.concat([bytes, Buffer.of(0)]))).toThrow(FormatError);
      }),
    );
  });

  const omitted: TreeEntry = { kind: "omitted", class: "special" };
  it.each([
    ["out of order", ["b", "a"]],
    ["repeated", ["a", "a"]],
    ["a dot", ["."]],
    ["two dots", [".."]],
    ["with a slash", ["a/b"]],
    ["with a NUL", ["a\0b"]],
  ])("is refused when its names are %s", (_, names) => {
    expect(() => decodeTree(encodeTree(names.map((each) => [each, omitted] as const)))).toThrow(FormatError);
  });

  it("is refused when a mode has more than permission bits", () => {
    const id = "00".repeat(32) as never;
    expect(() => decodeTree(encodeTree([["a", { kind: "file", mode: 0o4755, size: 1, id }]]))).toThrow(FormatError);
  });
});

describe("a list of pieces", () => {
  const ids = ["11".repeat(32), "22".repeat(32)];

  it("decodes to what was encoded", () => {
    expect(decodePieces(encodePieces(pieceBytes + 1, ids))).toEqual({ size: pieceBytes + 1, ids });
  });

  it.each([
    ["of a file that needs none", pieceBytes, ids.slice(0, 1)],
    ["with a piece too few", pieceBytes * 2 + 1, ids],
    ["with a piece too many", pieceBytes + 1, [...ids, ...ids]],
  ])("is refused %s", (_, size, list) => {
    expect(() => decodePieces(encodePieces(size, list))).toThrow(FormatError);
  });
});

it("a snapshot decodes to its root and nothing after it", () => {
  const root = "ab".repeat(32) as never;
  expect(decodeSnapshot(encodeSnapshot(root))).toBe(root);
  expect(() => decodeSnapshot(Buffer.concat([encodeSnapshot(root), Buffer.of(0)]))).toThrow(FormatError);
});
