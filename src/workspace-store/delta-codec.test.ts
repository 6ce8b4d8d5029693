/** Blocks of differences as bytes: what they say, and that nothing but the right bases gives their objects back. */
import { hash, randomBytes } from "node:crypto";
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { FormatError } from "./byte-codec.js";
import { decodeDelta, encodePatches, sharedEnds } from "./delta-codec.js";
import type { Patched } from "./delta-codec.js";
import { objectIdOf } from "./object-ids.js";
import { codecs, decodeIndex, encodeBlock, encodeIndex, encodePack, parsePack } from "./pack-codec.js";

const patched = (bytes: Buffer, base: Buffer): Patched => ({
  id: objectIdOf(bytes),
  bytes,
  base: { id: objectIdOf(base), bytes: base },
});
const base = Buffer.from(Array.from({ length: 60 }, (_, i) => hash("sha256", `${i}`)).join(""));
const edited = Buffer.concat([base.subarray(0, 100), Buffer.from("!"), base.subarray(100)]);
const longer = Buffer.concat([base, base.subarray(0, 10)]);
const block = () => encodePatches([patched(edited, base), patched(longer, base)]);

it("a block of patches says in its pack what its index says, beside other blocks", () => {
  const { chunks, rows } = encodePack([encodeBlock(base, [objectIdOf(base)], [base.length]), block()]);
  expect(parsePack(Buffer.concat(chunks))).toEqual(rows);
  const read = decodeIndex(encodeIndex(rows));
  expect(encodeIndex(read)).toEqual(encodeIndex(rows));
  expect(read.blocks[1]?.bases).toEqual([objectIdOf(base), objectIdOf(base)]);
});

it("a block of patches takes little more than the edits, however large the objects", () => {
  const large = randomBytes(300_000);
  const once = Buffer.concat([large, Buffer.from("and a line more")]);
  expect(encodePatches([patched(once, large)]).stored.length).toBeLessThan(50);
});

it("a directory that names what lies in the same block does not say its id again", () => {
  const file = randomBytes(100);
  const before = Buffer.concat([base, randomBytes(32), base]);
  const after = Buffer.concat([base, Buffer.from(objectIdOf(file), "hex"), base]);
  const alone = encodePatches([patched(after, before)]).stored.length;
  const both = encodePatches([patched(after, before), patched(Buffer.concat([file, file]), file)]).stored.length;
  const named = encodePatches([patched(after, before), patched(file, Buffer.concat([file, file]))]).stored.length;
  expect(alone).toBeGreaterThan(32);
  expect(named).toBeLessThan(both - 60);
});

it("any objects come back from any bases, end to end", () => {
  const bytes = fc.uint8Array({ maxLength: 300 }).map((all) => Buffer.from(all));
  const edit = fc
    .tuple(bytes, fc.nat(300), fc.nat(40), fc.uint8Array({ maxLength: 40 }))
    .map(([from, at, cut, put]) => {
      const to = Buffer.concat([from.subarray(0, at), put, from.subarray(at + cut)]);
      return patched(to, from);
    });
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          edit,
          fc.tuple(bytes, bytes).map(([a, b]) => patched(a, b)),
        ),
        { minLength: 1 },
      ),
      (all) => {
        const encoded = encodePatches(all);
        const decoded = decodeDelta(
          encoded,
          encoded.stored,
          all.map(({ base: { bytes: from } }) => from),
        );
        expect(decoded.equals(Buffer.concat(all.map(({ bytes: to }) => to)))).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});

it("what objects share is counted to the byte, whatever their lengths", () => {
  const long = fc.uint8Array({ minLength: 0, maxLength: 3_000 });
  fc.assert(
    fc.property(long, long, long, long, (start, end, a, b) => {
      const [one, other] = [Buffer.concat([start, a, end]), Buffer.concat([start, b, end])];
      const { prefix, suffix } = sharedEnds(one, other);
      const most = Math.min(one.length, other.length);
      expect(prefix).toBeGreaterThanOrEqual(start.length);
      expect(one.subarray(0, prefix).equals(other.subarray(0, prefix))).toBe(true);
      expect(prefix === most || one[prefix] !== other[prefix]).toBe(true);
      const [endOfOne, endOfOther] = [one.length - suffix, other.length - suffix];
      expect(one.subarray(endOfOne).equals(other.subarray(endOfOther))).toBe(true);
      expect(prefix + suffix === most || one[endOfOne - 1] !== other[endOfOther - 1]).toBe(true);
    }),
  );
});

/** What decoding gives, or undefined where it says that it cannot. */
function attempt(...args: Parameters<typeof decodeDelta>): Buffer | undefined {
  try {
    return decodeDelta(...args);
  } catch (error) {
    expect(error).toBeInstanceOf(FormatError);
    return undefined;
  }
}

it("other bases, and bytes that were flipped or cut off, never give the objects", () => {
  const encoded = block();
  const right = Buffer.concat([edited, longer]);
  expect(attempt(encoded, encoded.stored, [base, base])).toEqual(right);
  for (const wrong of [[randomBytes(base.length), base], [base], [base.subarray(1), base], [Buffer.alloc(0), base]])
    expect(attempt(encoded, encoded.stored, wrong)?.equals(right) ?? false).toBe(false);
  for (let at = 0; at < encoded.stored.length; at++) {
    for (const bit of [1, 128]) {
      const flipped = Buffer.from(encoded.stored);
      flipped[at] = (flipped[at] as number) ^ bit;
      const got = attempt(encoded, flipped, [base, base]);
      // A bit of the padding at the end of deflate says nothing.
      if (at < encoded.stored.length - 1) expect(got?.equals(right) ?? false).toBe(false);
    }
    expect(attempt(encoded, encoded.stored.subarray(0, at), [base, base])).toBeUndefined();
  }
});

it("numbers that say more than there is are damage", () => {
  const encoded = block();
  const numbers = [
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    [0xff, 0xff, 0x7f, 0, 0, 0],
    [0xff, 0xff, 0xff],
  ];
  for (const bytes of numbers) expect(attempt(encoded, Buffer.from(bytes), [base, base])).toBeUndefined();
});

it("a block of whole objects against bases, as earlier releases wrote, is read", () => {
  const stored = deflateRawSync(Buffer.concat([edited, longer]), { dictionary: Buffer.concat([base, base]) });
  const lengths = [edited.length, longer.length];
  const old = {
    codec: codecs.delta,
    rawLength: edited.length + longer.length,
    lengths,
    ids: [edited, longer].map(objectIdOf),
  };
  expect(decodeDelta(old, stored, [base, base])).toEqual(Buffer.concat([edited, longer]));
  expect(attempt(old, stored.subarray(1), [base, base])?.equals(Buffer.concat([edited, longer])) ?? false).toBe(false);
});
