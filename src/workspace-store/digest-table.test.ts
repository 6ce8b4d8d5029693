import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { DigestTable } from "./digest-table.js";

const digestOf = (n: number): Buffer => createHash("sha256").update(String(n)).digest();

it("a digest has one number, as text and wherever its bytes lie", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(40), fc.boolean(), fc.nat(7))), (steps) => {
      const table = new DigestTable();
      const model = new Map<number, number>();
      for (const [n, asText, shift] of steps) {
        const digest = digestOf(n);
        const bytes = Buffer.concat([Buffer.alloc(shift), digest]);
        expect(table.find(digest.toString("hex"))).toBe(model.get(n) ?? -1);
        expect(table.findAt(bytes, shift)).toBe(model.get(n) ?? -1);
        const number = asText ? table.add(digest.toString("hex")) : table.addAt(bytes, shift);
        expect(number).toBe(model.get(n) ?? model.size);
        model.set(n, number);
        expect(table.hex(number)).toBe(digest.toString("hex"));
      }
      expect(table.size).toBe(model.size);
      expect(table.bytes).toEqual(Buffer.concat([...model.keys()].map(digestOf)));
    }),
  );
});

it("keeps thousands of digests apart while it grows", () => {
  const table = new DigestTable();
  const all = Buffer.concat(Array.from({ length: 5000 }, (_, n) => digestOf(n)));
  for (let n = 0; n < 5000; n++) expect(table.addAt(all, n * 32)).toBe(n);
  for (let n = 0; n < 5000; n++) expect(table.findAt(all, n * 32)).toBe(n);
  expect(table.bytes.equals(all)).toBe(true);
  expect(table.findAt(digestOf(5000), 0)).toBe(-1);
});
