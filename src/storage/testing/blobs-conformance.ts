import { describe, expect, test } from "vitest";
import type { Blobs } from "../contracts.js";
import { blobBytesMax } from "../limits.js";
import { abortedEarly, awkwardKeys, badKeys, bench, bytes, collect, refused, text } from "./conformance.js";
import type { ConformanceOptions } from "./conformance.js";

/** What the contract says of `Blobs`, as tests. */
export function blobsConformance(name: string, options: ConformanceOptions): void {
  describe(`${name} blobs`, () => {
    const { open, offered } = bench(options);
    const blobsOf = async (): Promise<Blobs> => (await open()).blobs;
    const listed = async (blobs: Blobs, prefix: string): Promise<string[]> =>
      (await collect(blobs.list(prefix))).map(({ key }) => key);

    test("a blob that was never put is missing", async () => {
      const blobs = await blobsOf();
      await refused(blobs.get("b"), "blob.missing", { key: "b" });
      expect(await blobs.stat("b")).toBeUndefined();
      expect(await listed(blobs, "")).toEqual([]);
      await blobs.delete("b");
    });

    test("the chunks come back as one, whole or in part", async () => {
      const blobs = await blobsOf();
      expect(await blobs.put("b", [bytes("01234"), bytes(""), bytes("56789")])).toBe(true);
      expect(text(await blobs.get("b"))).toBe("0123456789");
      expect(await blobs.stat("b")).toEqual({ key: "b", size: 10 });
      expect(text(await blobs.get("b", { offset: 3 }))).toBe("3456789");
      expect(text(await blobs.get("b", { length: 4 }))).toBe("0123");
      expect(text(await blobs.get("b", { offset: 3, length: 4 }))).toBe("3456");
      expect(text(await blobs.get("b", { offset: 8, length: 100 }))).toBe("89");
      for (const offset of [10, 100]) expect(text(await blobs.get("b", { offset }))).toBe("");
      expect(text(await blobs.get("b", { length: 0 }))).toBe("");
    });

    test("a blob that exists is never changed", async () => {
      const blobs = await blobsOf();
      await blobs.put("b", [bytes("first")]);
      expect(await blobs.put("b", [bytes("second")])).toBe(false);
      expect(text(await blobs.get("b"))).toBe("first");
    });

    test("of those who put one key at the same moment exactly one creates it", async () => {
      const blobs = await blobsOf();
      const created = await Promise.all(Array.from({ length: 8 }, (_, i) => blobs.put("a/b", [bytes(`${i}`)])));
      const winner = created.indexOf(true);
      expect(created.filter(Boolean)).toHaveLength(1);
      expect(text(await blobs.get("a/b"))).toBe(`${winner}`);
    });

    test("empty and larger blobs come back, and nobody can change them afterwards", async () => {
      const blobs = await blobsOf();
      expect(await blobs.put("empty", [])).toBe(true);
      expect((await blobs.get("empty")).length).toBe(0);
      expect(await blobs.stat("empty")).toEqual({ key: "empty", size: 0 });
      const large = Buffer.alloc(5 * 1024 * 1024 + 7, "0123456789abcdef");
      const wanted = Buffer.from(large);
      await blobs.put("large", [large.subarray(0, 1000), large.subarray(1000)]);
      large.fill(0);
      const read = await blobs.get("large");
      expect(Buffer.compare(read, wanted)).toBe(0);
      read.fill(0);
      expect(Buffer.compare(await blobs.get("large", { offset: 4_000_000 }), wanted.subarray(4_000_000))).toBe(0);
    });

    test("a deleted blob is gone and can be put anew", async () => {
      const blobs = await blobsOf();
      await blobs.put("a/b", [bytes("1")]);
      await blobs.put("a/c", [bytes("2")]);
      await blobs.delete("a/b");
      await blobs.delete("a/b");
      expect(await listed(blobs, "")).toEqual(["a/c"]);
      await refused(blobs.get("a/b"), "blob.missing");
      expect(await blobs.put("a/b", [bytes("3")])).toBe(true);
      expect(text(await blobs.get("a/b"))).toBe("3");
    });

    test("keys do not mix, and are listed by prefix in their order", async () => {
      const blobs = await blobsOf();
      for (const key of [...awkwardKeys].reverse()) expect(await blobs.put(key, [bytes(`of ${key}`)])).toBe(true);
      expect(await listed(blobs, "")).toEqual(awkwardKeys);
      for (const key of awkwardKeys) expect(text(await blobs.get(key))).toBe(`of ${key}`);
      expect(await listed(blobs, "a/")).toEqual(["a/B", "a/b", "a/b/c"]);
      expect(await listed(blobs, "a/b")).toEqual(["a/b", "a/b/c"]);
      expect(await listed(blobs, "kkk")).toEqual(["k".repeat(512)]);
      expect(await listed(blobs, "zz")).toEqual([]);
      expect(await collect(blobs.list("a0"))).toEqual([{ key: "a0", size: 5 }]);
    });

    test("what breaks the limits is refused before anything happens", async () => {
      const blobs = await blobsOf();
      for (const key of badKeys) {
        await refused(blobs.put(key, [bytes("a")]), "storage.invalid_key");
        await refused(blobs.get(key), "storage.invalid_key");
        await refused(blobs.stat(key), "storage.invalid_key");
        await refused(blobs.delete(key), "storage.invalid_key");
      }
      const half = new Uint8Array(blobBytesMax / 2);
      await refused(blobs.put("b", [half, half, bytes("1")]), "storage.invalid_key");
      await blobs.put("b", [bytes("1")]);
      for (const wrong of [-1, 0.5, NaN]) {
        await refused(blobs.get("b", { offset: wrong }), "storage.invalid_key");
        await refused(blobs.get("b", { length: wrong }), "storage.invalid_key");
      }
      await refused(collect(blobs.list("a b")), "storage.invalid_key");
      expect(await listed(blobs, "")).toEqual(["b"]);
    });

    test("an aborted call rejects with the signal's reason and has changed nothing", async () => {
      const blobs = await blobsOf();
      await blobs.put("b", [bytes("a")]);
      await abortedEarly((signal) => blobs.put("c", [bytes("b")], { signal }));
      await abortedEarly((signal) => blobs.delete("b", { signal }));
      await abortedEarly((signal) => blobs.get("b", { signal }));
      await abortedEarly((signal) => blobs.stat("b", { signal }));
      await abortedEarly((signal) => collect(blobs.list("", { signal })));
      expect(await listed(blobs, "")).toEqual(["b"]);
    });

    offered("reopen", "blobs are there for whoever opens the data next, or has it open", async (reopen) => {
      const first = await open();
      const second = await reopen(first);
      await first.blobs.put("a/b", [bytes("1")]);
      expect(await second.blobs.put("a/b", [bytes("2")])).toBe(false);
      expect(text(await second.blobs.get("a/b"))).toBe("1");
      await first.close();
      const third = await reopen(first);
      expect(await collect(third.blobs.list(""))).toEqual([{ key: "a/b", size: 1 }]);
    });
  });
}
