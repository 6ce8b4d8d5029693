/**
 * Decoders on bytes nobody encoded: each gives a value that encodes to those very bytes, or says that they are damaged. No
 * other failure, and no memory for counts that the bytes do not bear out.
 */
import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FormatError } from "./byte-codec.js";
import { decodeCondemned, encodeCondemned } from "./condemned.js";
import type { TreeId } from "./contracts.js";
import { decodePieces, decodeSnapshot, encodePieces, encodeSnapshot, objectIdOf, pieceBytes } from "./object-ids.js";
import { decodeIndex, encodeBlock, encodeIndex, encodePack, parsePack, UnsupportedVersionError } from "./pack-codec.js";
import { decodeTree, encodeTree } from "./tree-codec.js";

const id = (text: string): string => objectIdOf(Buffer.from(text));
const tree = encodeTree([
  ["a", { kind: "file", mode: 0o644, size: 3, id: id("a") as never }],
  ["b", { kind: "symlink", target: "../a" }],
  ["c", { kind: "omitted", class: "special" }],
  ["d", { kind: "directory", mode: 0o755, id: id("d") as TreeId }],
]);
const words = ["one", "three"].map((word) => Buffer.from(word.repeat(30)));
const block = encodeBlock(
  Buffer.concat(words),
  words.map(objectIdOf),
  words.map(({ length }) => length),
);
const { chunks, rows } = encodePack([block]);
const condemned = {
  markedAt: 1_700_000_000_000,
  copies: new Map([[id("pack"), new Set([id("x"), id("y")])]]),
};

/** Containers end with the digest of what stands before it; sealed anew, what was changed has to be told by itself. */
const seal = (bytes: Buffer): Buffer => {
  const body = bytes.subarray(0, -32);
  return Buffer.concat([body, hash("sha256", body, "buffer")]);
};
const keep = (bytes: Buffer): Buffer => bytes;

describe.each<{
  name: string;
  good: Buffer;
  again: (bytes: Buffer) => Buffer | undefined;
  seal: (bytes: Buffer) => Buffer;
}>([
  { name: "a directory", good: tree, again: (bytes) => encodeTree(decodeTree(bytes)), seal: keep },
  {
    name: "a list of pieces",
    good: encodePieces(2 * pieceBytes, [id("p"), id("q")]),
    again: (bytes) => {
      const { size, ids } = decodePieces(bytes);
      return encodePieces(size, ids);
    },
    seal: keep,
  },
  {
    name: "a snapshot",
    good: encodeSnapshot(id("root") as TreeId),
    again: (bytes) => encodeSnapshot(decodeSnapshot(bytes)),
    seal: keep,
  },
  { name: "an index", good: encodeIndex(rows), again: (bytes) => encodeIndex(decodeIndex(bytes)), seal },
  {
    name: "a pack",
    good: Buffer.concat(chunks),
    // What it says of itself; its blocks are decoded by whoever reads an object.
    again: (bytes) => void parsePack(bytes),
    seal,
  },
  {
    name: "a list of condemned objects",
    good: encodeCondemned(condemned),
    again: (bytes) => encodeCondemned(decodeCondemned(bytes)),
    seal,
  },
])("$name", ({ good, again, seal: sealed }) => {
  function expectTold(bytes: Buffer): void {
    let encoded: Buffer | undefined;
    try {
      encoded = again(bytes);
    } catch (error) {
      if (error instanceof UnsupportedVersionError) return;
      expect(error).toBeInstanceOf(FormatError);
      return;
    }
    if (encoded === undefined) return;
    // An older version that is still read is written as the present one.
    const present = Buffer.from(bytes);
    if (sealed !== keep) good.copy(present, 8, 8, 12);
    expect(encoded.equals(sealed(present))).toBe(true);
  }

  it("is itself when nothing was changed", () => {
    expect(again(good)?.equals(good) ?? true).toBe(true);
    expect(sealed(good).equals(good)).toBe(true);
  });

  it("with any byte another, under its digest or a new one, is refused or is another value entirely", () => {
    for (let at = 0; at < good.length; at++) {
      for (const mask of [0x01, 0x10, 0x80, 0xff]) {
        const bad = Buffer.from(good);
        bad[at] = (bad[at] as number) ^ mask;
        expectTold(bad);
        expectTold(sealed(bad));
      }
    }
  });

  it("cut at any length, doubled, with bytes doubled or left out, is refused", () => {
    for (let at = 0; at < good.length; at++) {
      for (const bad of [
        good.subarray(0, at),
        Buffer.concat([good.subarray(0, at), good.subarray(at + 1)]),
        Buffer.concat([good.subarray(0, at + 1), good.subarray(at)]),
      ]) {
        expectTold(bad);
        if (bad.length >= 32) expectTold(sealed(bad));
      }
    }
    expect(() => again(Buffer.concat([good, good]))).toThrow(FormatError);
  });

  it("with any number in it as large as can be, claims no memory for it", () => {
    for (let at = 0; at + 4 <= good.length; at++) {
      const bad = Buffer.from(good);
      bad.writeUInt32BE(0xffffffff, at);
      expectTold(sealed(bad));
    }
  });

  it("is not found in bytes of chance, however they begin", () => {
    fc.assert(
      fc.property(fc.nat(good.length), fc.uint8Array({ maxLength: 300 }), (kept, rest) => {
        expectTold(Buffer.concat([good.subarray(0, kept), rest]));
        expectTold(sealed(Buffer.concat([good.subarray(0, kept), rest, Buffer.alloc(32)])));
      }),
    );
  });
});
