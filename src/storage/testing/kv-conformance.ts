import { describe, expect, test } from "vitest";
import type { Kv } from "../contracts.js";
import { kvValueBytesMax } from "../limits.js";
import { abortedEarly, awkwardKeys, badKeys, bench, bytes, refused, text } from "./conformance.js";
import type { ConformanceOptions } from "./conformance.js";

/** What the contract says of `Kv`, as tests. */
export function kvConformance(name: string, options: ConformanceOptions): void {
  describe(`${name} kv`, () => {
    const { open, offered } = bench(options);
    const kvOf = async (): Promise<Kv> => (await open()).kv;
    const shown = async (kv: Kv, key: string): Promise<string | undefined> => {
      const entry = await kv.get(key);
      return entry === undefined ? undefined : `${entry.revision} ${text(entry.value)}`;
    };

    test("a key that was never set is absent", async () => {
      const kv = await kvOf();
      expect(await kv.get("k")).toBeUndefined();
      expect(await kv.list("")).toEqual([]);
    });

    test("a value changes only for whoever names its present revision", async () => {
      const kv = await kvOf();
      const first = await kv.set("k", bytes("a"), { revision: 0 });
      expect(first).toBe(1);
      expect(await shown(kv, "k")).toBe("1 a");
      await refused(kv.set("k", bytes("b"), { revision: 0 }), "kv.conflict", { key: "k", expected: 0, actual: 1 });
      await refused(kv.set("k", bytes("b"), { revision: 2 }), "kv.conflict", { expected: 2, actual: 1 });
      expect(await shown(kv, "k")).toBe("1 a");
      const second = await kv.set("k", bytes("b"), { revision: first });
      expect(second).toBeGreaterThan(first);
      expect(await shown(kv, "k")).toBe(`${second} b`);
    });

    test("a deleted key is absent, and no revision of it is ever given again", async () => {
      const kv = await kvOf();
      const first = await kv.set("k", bytes("a"), { revision: 0 });
      await refused(kv.delete("k", { revision: first + 1 }), "kv.conflict", { actual: first });
      await refused(kv.delete("k", { revision: 0 }), "kv.conflict");
      await kv.delete("k", { revision: first });
      expect(await kv.get("k")).toBeUndefined();
      expect(await kv.list("")).toEqual([]);
      for (const revision of [0, first]) await refused(kv.delete("k", { revision }), "kv.conflict", { actual: 0 });
      await refused(kv.set("k", bytes("b"), { revision: first }), "kv.conflict", { actual: 0 });
      const again = await kv.set("k", bytes("b"), { revision: 0 });
      expect(again).toBeGreaterThan(first);
      expect(await shown(kv, "k")).toBe(`${again} b`);
    });

    test("of changes to one revision exactly one wins", async () => {
      const kv = await kvOf();
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) => kv.set("k", bytes(`${i}`), { revision: 0 })),
      );
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });

    test("empty and largest values come back, and nobody can change them afterwards", async () => {
      const kv = await kvOf();
      await kv.set("empty", bytes(""), { revision: 0 });
      expect((await kv.get("empty"))?.value.length).toBe(0);
      expect((await kv.list("")).map((entry) => entry.key)).toEqual(["empty"]);
      const value = Buffer.alloc(kvValueBytesMax, "x");
      const wanted = Buffer.from(value);
      await kv.set("large", value, { revision: 0 });
      value.fill("y");
      const read = await kv.get("large");
      expect(Buffer.compare(read?.value ?? bytes(""), wanted)).toBe(0);
      read?.value.fill(0);
      expect(Buffer.compare((await kv.get("large"))?.value ?? bytes(""), wanted)).toBe(0);
    });

    test("keys do not mix, and are listed by prefix in their order", async () => {
      const kv = await kvOf();
      for (const key of [...awkwardKeys].reverse()) await kv.set(key, bytes(`of ${key}`), { revision: 0 });
      const all = await kv.list("");
      expect(all.map(({ key }) => key)).toEqual(awkwardKeys);
      expect(all.map(({ value }) => text(value))).toEqual(awkwardKeys.map((key) => `of ${key}`));
      expect((await kv.list("a/")).map(({ key }) => key)).toEqual(["a/B", "a/b", "a/b/c"]);
      expect(await kv.list("zz")).toEqual([]);
    });

    test("a long list is complete", async () => {
      const kv = await kvOf();
      const keys = Array.from({ length: 200 }, (_, i) => `n/${String(i).padStart(3, "0")}`);
      for (const key of keys) await kv.set(key, bytes(key), { revision: 0 });
      expect((await kv.list("n/")).map(({ key }) => key)).toEqual(keys);
    });

    test("what breaks the limits is refused before anything happens", async () => {
      const kv = await kvOf();
      for (const key of badKeys) {
        await refused(kv.set(key, bytes("a"), { revision: 0 }), "storage.invalid_key");
        await refused(kv.get(key), "storage.invalid_key");
        await refused(kv.delete(key, { revision: 1 }), "storage.invalid_key");
      }
      await refused(kv.set("k", new Uint8Array(kvValueBytesMax + 1), { revision: 0 }), "storage.invalid_key");
      for (const revision of [-1, 0.5, NaN]) {
        await refused(kv.set("k", bytes("a"), { revision }), "storage.invalid_key");
        await refused(kv.delete("k", { revision }), "storage.invalid_key");
      }
      await refused(kv.list("a b"), "storage.invalid_key");
      expect(await kv.list("")).toEqual([]);
    });

    test("an aborted call rejects with the signal's reason and has changed nothing", async () => {
      const kv = await kvOf();
      await kv.set("k", bytes("a"), { revision: 0 });
      await abortedEarly((signal) => kv.set("k", bytes("b"), { revision: 1, signal }));
      await abortedEarly((signal) => kv.delete("k", { revision: 1, signal }));
      await abortedEarly((signal) => kv.get("k", { signal }));
      await abortedEarly((signal) => kv.list("", { signal }));
      expect(await shown(kv, "k")).toBe("1 a");
    });

    offered("reopen", "values and revisions are there for whoever opens the data next", async (reopen) => {
      const storage = await open();
      const kept = await storage.kv.set("kept", bytes("a"), { revision: 0 });
      const gone = await storage.kv.set("gone", bytes("b"), { revision: 0 });
      await storage.kv.delete("gone", { revision: gone });
      await storage.close();
      const { kv } = await reopen(storage);
      expect(await shown(kv, "kept")).toBe(`${kept} a`);
      expect(await kv.get("gone")).toBeUndefined();
      expect(await kv.set("gone", bytes("c"), { revision: 0 })).toBeGreaterThan(gone);
    });

    offered("reopen", "two openings of the data cannot both change one revision", async (reopen) => {
      const first = await open();
      const second = await reopen(first);
      await first.kv.set("k", bytes("a"), { revision: 0 });
      await second.kv.set("k", bytes("b"), { revision: 1 });
      await refused(first.kv.set("k", bytes("c"), { revision: 1 }), "kv.conflict");
      expect(await shown(first.kv, "k")).toBe("2 b");
    });
  });
}
