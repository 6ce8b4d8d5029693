import { describe, expect, test } from "vitest";
import type { Ledger } from "../contracts.js";
import { appendRecordsMax, recordBytesMax } from "../limits.js";
import { abortedEarly, awkwardKeys, badKeys, bench, bytes, collect, refused, text } from "./conformance.js";
import type { ConformanceOptions } from "./conformance.js";

/** What the contract says of `Ledger`, as tests. */
export function ledgerConformance(name: string, options: ConformanceOptions): void {
  describe(`${name} ledger`, () => {
    const { open, offered } = bench(options);
    const ledgerOf = async (): Promise<Ledger> => (await open()).ledger;
    const texts = async (ledger: Ledger, key: string, from?: number): Promise<string[]> =>
      (await collect(ledger.read(key, from === undefined ? {} : { from }))).map(
        ({ seq, body }) => `${seq} ${text(body)}`,
      );

    test("a ledger that was never written has head 0, no records and no place in the list", async () => {
      const ledger = await ledgerOf();
      expect(await ledger.head("l")).toBe(0);
      expect(await texts(ledger, "l")).toEqual([]);
      expect(await ledger.list("")).toEqual([]);
    });

    test("records are read in the order they were appended, numbered from 1", async () => {
      const ledger = await ledgerOf();
      expect(await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 1 })).toBe(1);
      expect(await ledger.append("l", [bytes("b"), bytes("c")], { expectedHead: 1, epoch: 1 })).toBe(3);
      expect(await ledger.head("l")).toBe(3);
      expect(await texts(ledger, "l")).toEqual(["1 a", "2 b", "3 c"]);
      expect(await texts(ledger, "l", 2)).toEqual(["2 b", "3 c"]);
      expect(await texts(ledger, "l", 4)).toEqual([]);
    });

    test("every byte comes back, and nobody can change a record afterwards", async () => {
      const ledger = await ledgerOf();
      // A Buffer, whose `slice` is a view.
      const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      await ledger.append("l", [body], { expectedHead: 0, epoch: 1 });
      const wanted = new Uint8Array(body);
      body.fill(0);
      const [first] = await collect(ledger.read("l"));
      expect(new Uint8Array(first?.body ?? [])).toEqual(wanted);
      first?.body.fill(0);
      const [again] = await collect(ledger.read("l"));
      expect(new Uint8Array(again?.body ?? [])).toEqual(wanted);
    });

    test("the largest append is taken whole", async () => {
      const ledger = await ledgerOf();
      const many = Array.from({ length: appendRecordsMax }, (_, i) => bytes(`${i}`));
      expect(await ledger.append("many", many, { expectedHead: 0, epoch: 1 })).toBe(appendRecordsMax);
      const read = await collect(ledger.read("many"));
      expect(read.map(({ body }) => text(body))).toEqual(many.map(text));
      const large = Buffer.alloc(recordBytesMax, "x");
      await ledger.append("large", [large], { expectedHead: 0, epoch: 1 });
      expect(Buffer.compare((await collect(ledger.read("large")))[0]?.body ?? bytes(""), large)).toBe(0);
    });

    test("an append at another head is a conflict and adds nothing", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 1 });
      for (const expectedHead of [0, 2]) {
        await refused(ledger.append("l", [bytes("b"), bytes("c")], { expectedHead, epoch: 1 }), "ledger.conflict", {
          ledger: "l",
          expected: expectedHead,
          head: 1,
        });
      }
      expect(await texts(ledger, "l")).toEqual(["1 a"]);
    });

    test("of appends at one head exactly one wins", async () => {
      const ledger = await ledgerOf();
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) => ledger.append("l", [bytes(`${i}`)], { expectedHead: 0, epoch: 1 })),
      );
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(await ledger.head("l")).toBe(1);
    });

    test("an append by a higher epoch shuts out the lower ones, also where they name the right head", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 2 });
      await refused(ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 1 }), "ledger.fenced", {
        ledger: "l",
        epoch: 1,
        current: 2,
      });
      await refused(ledger.append("l", [bytes("b")], { expectedHead: 0, epoch: 1 }), "ledger.fenced");
      expect(await ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 2 })).toBe(2);
    });

    test("a fence shuts out lower epochs at once, on an empty ledger too, and lets its own append", async () => {
      const ledger = await ledgerOf();
      await ledger.fence("l", 3);
      expect(await ledger.head("l")).toBe(0);
      expect(await ledger.list("")).toEqual([]);
      await refused(ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 2 }), "ledger.fenced", { current: 3 });
      expect(await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 3 })).toBe(1);
      await ledger.fence("l", 3);
      await refused(ledger.fence("l", 2), "ledger.fenced", { epoch: 2, current: 3 });
    });

    test("a refused append does not raise the epoch", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 1 });
      await refused(ledger.append("l", [bytes("b")], { expectedHead: 0, epoch: 9 }), "ledger.conflict");
      expect(await ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 1 })).toBe(2);
    });

    test("reading ends at the head of its first step", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a"), bytes("b")], { expectedHead: 0, epoch: 1 });
      const seen: number[] = [];
      for await (const { seq } of ledger.read("l")) {
        seen.push(seq);
        await ledger.append("l", [bytes("later")], { expectedHead: 1 + seq, epoch: 1 });
      }
      expect(seen).toEqual([1, 2]);
      expect(await ledger.head("l")).toBe(4);
    });

    test("ledgers do not mix, and are listed by prefix in the order of their names", async () => {
      const ledger = await ledgerOf();
      for (const key of [...awkwardKeys].reverse()) {
        await ledger.append(key, [bytes(`of ${key}`)], { expectedHead: 0, epoch: 1 });
      }
      expect(await ledger.list("")).toEqual(awkwardKeys);
      expect(await ledger.list("a/")).toEqual(["a/B", "a/b", "a/b/c"]);
      expect(await ledger.list("zz")).toEqual([]);
      for (const key of awkwardKeys) expect(await texts(ledger, key)).toEqual([`1 of ${key}`]);
    });

    test("a deleted ledger begins anew, its epoch forgotten; deleting what is not there is fine", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a"), bytes("b")], { expectedHead: 0, epoch: 7 });
      await ledger.append("other", [bytes("o")], { expectedHead: 0, epoch: 1 });
      await ledger.delete("l");
      await ledger.delete("l");
      expect(await ledger.head("l")).toBe(0);
      expect(await ledger.list("")).toEqual(["other"]);
      expect(await ledger.append("l", [bytes("c")], { expectedHead: 0, epoch: 1 })).toBe(1);
      expect(await texts(ledger, "l")).toEqual(["1 c"]);
      expect(await texts(ledger, "other")).toEqual(["1 o"]);
    });

    test("what breaks the limits is refused before anything happens", async () => {
      const ledger = await ledgerOf();
      const at = { expectedHead: 0, epoch: 1 };
      for (const key of badKeys) await refused(ledger.append(key, [bytes("a")], at), "storage.invalid_key");
      for (const bodies of [
        [],
        [bytes("")],
        [bytes("a"), bytes("")],
        [new Uint8Array(recordBytesMax + 1)],
        Array.from({ length: appendRecordsMax + 1 }, () => bytes("a")),
      ]) {
        await refused(ledger.append("l", bodies, at), "storage.invalid_key");
      }
      for (const wrong of [-1, 0.5, NaN, 2 ** 53]) {
        await refused(ledger.append("l", [bytes("a")], { ...at, expectedHead: wrong }), "storage.invalid_key");
        await refused(ledger.append("l", [bytes("a")], { ...at, epoch: wrong }), "storage.invalid_key");
      }
      await refused(collect(ledger.read("l", { from: 0 })), "storage.invalid_key");
      await refused(ledger.list("a b"), "storage.invalid_key");
      expect(await ledger.list("")).toEqual([]);
    });

    test("an aborted call rejects with the signal's reason and has changed nothing", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 1 });
      await abortedEarly((signal) => ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 2, signal }));
      await abortedEarly((signal) => ledger.fence("l", 2, { signal }));
      await abortedEarly((signal) => ledger.delete("l", { signal }));
      await abortedEarly((signal) => ledger.head("l", { signal }));
      await abortedEarly((signal) => ledger.list("", { signal }));
      await abortedEarly((signal) => collect(ledger.read("l", { signal })));
      expect(await ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 1 })).toBe(2);
    });

    test("an abort ends a reading that has begun", async () => {
      const ledger = await ledgerOf();
      await ledger.append("l", [bytes("a"), bytes("b")], { expectedHead: 0, epoch: 1 });
      const controller = new AbortController();
      const seen: number[] = [];
      const reason = new Error("enough");
      const reading = (async () => {
        for await (const { seq } of ledger.read("l", { signal: controller.signal })) {
          seen.push(seq);
          controller.abort(reason);
        }
      })();
      await expect(reading).rejects.toBe(reason);
      expect(seen).toEqual([1]);
    });

    offered("reopen", "records and fences are there for whoever opens the data next", async (reopen) => {
      const storage = await open();
      await storage.ledger.append("l", [bytes("a")], { expectedHead: 0, epoch: 4 });
      await storage.ledger.fence("fenced", 5);
      await storage.close();
      const { ledger } = await reopen(storage);
      expect(await texts(ledger, "l")).toEqual(["1 a"]);
      await refused(ledger.append("l", [bytes("b")], { expectedHead: 1, epoch: 3 }), "ledger.fenced", { current: 4 });
      await refused(ledger.append("fenced", [bytes("b")], { expectedHead: 0, epoch: 4 }), "ledger.fenced");
    });

    offered("reopen", "two openings of the data see each other's appends at once", async (reopen) => {
      const first = await open();
      const second = await reopen(first);
      for (let head = 0; head < 10; head++) {
        const { ledger } = head % 2 === 0 ? first : second;
        expect(await ledger.append("l", [bytes(`${head}`)], { expectedHead: head, epoch: 1 })).toBe(head + 1);
      }
      expect(await texts(second.ledger, "l")).toEqual(await texts(first.ledger, "l"));
    });

    offered(
      "damageRecord",
      "a damaged record ends the reading with its number, after all before it",
      async (damage) => {
        const storage = await open();
        const { ledger } = storage;
        const bodies = Array.from({ length: 70 }, (_, i) => bytes(`body ${i + 1}`));
        await ledger.append("l", bodies, { expectedHead: 0, epoch: 1 });
        await ledger.append("whole", bodies, { expectedHead: 0, epoch: 1 });
        await damage(storage, "l", 50);
        const seen: number[] = [];
        const reading = (async () => {
          for await (const { seq } of ledger.read("l")) seen.push(seq);
        })();
        await refused(reading, "ledger.damaged", { ledger: "l", seq: 50 });
        expect(seen).toEqual(Array.from({ length: 49 }, (_, i) => i + 1));
        expect(await collect(ledger.read("l", { from: 51 }))).toHaveLength(20);
        expect(await collect(ledger.read("whole"))).toHaveLength(70);
      },
    );
  });
}
