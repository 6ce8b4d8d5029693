import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FormatError } from "./byte-codec.js";
import { objectIdOf } from "./object-ids.js";
import { codecs, decodeBlock, decodeIndex, encodeBlock, encodeIndex, encodePack, parsePack } from "./pack-codec.js";
import { UnsupportedVersionError } from "./pack-codec.js";
import type { PackRows } from "./pack-codec.js";

const blockOf = (objects: readonly Uint8Array[]) =>
  encodeBlock(
    Buffer.concat(objects),
    objects.map(objectIdOf),
    objects.map(({ length }) => length),
  );
const objectLists = fc.array(fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 6 }), {
  maxLength: 4,
});
const packOf = (lists: readonly (readonly Uint8Array[])[]) => {
  const { chunks, rows } = encodePack(lists.map(blockOf));
  return { bytes: Buffer.concat(chunks), rows };
};
/** A row of an index makes its ids when it is asked for them. */
const spelledOut = ({ blocks, ...pack }: PackRows) => ({
  ...pack,
  blocks: blocks.map(({ codec, offset, storedLength, rawLength, ids, lengths }) => ({
    ...{ codec, offset, storedLength, rawLength, ids },
    lengths: Array.from(lengths),
  })),
});

describe("a pack", () => {
  it("says without its index what its index says", async () => {
    await fc.assert(
      fc.asyncProperty(objectLists, async (lists) => {
        const { bytes, rows } = packOf(lists);
        expect(parsePack(bytes)).toEqual(rows);
        expect(spelledOut(decodeIndex(encodeIndex(rows)))).toEqual(rows);
      }),
    );
  });

  it("gives its objects back", async () => {
    await fc.assert(
      fc.asyncProperty(objectLists, async (lists) => {
        const { bytes, rows } = packOf(lists);
        for (const [i, { codec, offset, storedLength, rawLength }] of rows.blocks.entries()) {
          const raw = await decodeBlock(codec, bytes.subarray(offset, offset + storedLength), rawLength);
          expect(raw.equals(Buffer.concat(lists[i] ?? []))).toBe(true);
        }
      }),
    );
  });

  it("is refused when any byte of it or of its index is another, or missing", async () => {
    const { bytes, rows } = packOf([[Buffer.from("one"), Buffer.from("two")], [Buffer.alloc(500, "three")]]);
    const index = encodeIndex(rows);
    for (const [good, read] of [
      [bytes, parsePack],
      [index, decodeIndex],
    ] as const) {
      for (let at = 0; at < good.length; at++) {
        const bad = Buffer.from(good);
        bad[at] = (bad[at] as number) ^ 0x40;
        expect(() => read(bad)).toThrow(FormatError);
        expect(() => read(good.subarray(0, at))).toThrow(FormatError);
      }
    }
  });

  it("of a later version is told from a damaged one", async () => {
    const { rows } = packOf([[Buffer.from("one")]]);
    const later = Buffer.from(encodeIndex(rows));
    later.writeUInt32BE(7, 8);
    Buffer.from(objectIdOf(later.subarray(0, -32)), "hex").copy(later, later.length - 32);
    expect(() => decodeIndex(later)).toThrow(UnsupportedVersionError);
  });
});

describe("a block", () => {
  it("is compressed when that helps and raw when it does not", () => {
    expect(blockOf([Buffer.alloc(100_000, "text ")]).codec).toBe(codecs.brotli);
    expect(blockOf([randomBytes(100_000)]).codec).toBe(codecs.raw);
  });

  it("that would inflate beyond its stated length is refused", async () => {
    const { stored } = blockOf([Buffer.alloc(100_000)]);
    await expect(decodeBlock(codecs.brotli, stored, 10)).rejects.toBeInstanceOf(FormatError);
    await expect(decodeBlock(codecs.brotli, stored, 200_000)).rejects.toBeInstanceOf(FormatError);
  });
});
