import path from "node:path";
import { describe, expect, test } from "vitest";
import { blobsConformance } from "./blobs-conformance.js";
import { bench, bytes, claimOf, collect, refused } from "./conformance.js";
import type { ConformanceOptions } from "./conformance.js";
import { kvConformance } from "./kv-conformance.js";
import { leaserConformance } from "./leaser-conformance.js";
import { ledgerConformance } from "./ledger-conformance.js";

/** Every suite, and what the contract says of the bundle. */
export function storageConformance(name: string, options: ConformanceOptions): void {
  ledgerConformance(name, options);
  leaserConformance(name, options);
  kvConformance(name, options);
  blobsConformance(name, options);

  describe(`${name} storage`, () => {
    const { open } = bench(options);

    test("a closed storage refuses every call, and closing it again is fine", async () => {
      const storage = await open();
      const { ledger, leaser, kv, blobs } = storage;
      await blobs.put("b", [bytes("1")]);
      await ledger.append("l", [bytes("1"), bytes("2")], { expectedHead: 0, epoch: 1 });
      const reading = ledger.read("l")[Symbol.asyncIterator]();
      await reading.next();
      await Promise.all([storage.close(), storage.close()]);
      await storage[Symbol.asyncDispose]();
      const calls: readonly (() => Promise<unknown>)[] = [
        () => ledger.append("l", [bytes("3")], { expectedHead: 2, epoch: 1 }),
        () => ledger.fence("l", 2),
        () => ledger.head("l"),
        () => ledger.list(""),
        () => ledger.delete("l"),
        () => collect(ledger.read("l")),
        () => reading.next(),
        () => leaser.acquire("n", claimOf("late")),
        () => leaser.inspect("n"),
        () => leaser.list(""),
        () => kv.get("k"),
        () => kv.set("k", bytes("1"), { revision: 0 }),
        () => kv.delete("k", { revision: 1 }),
        () => kv.list(""),
        () => blobs.put("c", [bytes("1")]),
        () => blobs.get("b"),
        () => blobs.stat("b"),
        () => blobs.delete("b"),
        () => collect(blobs.list("")),
      ];
      for (const call of calls) await refused(call(), "storage.closed");
    });

    test("a lease that is being acquired while the storage closes is not left behind", async () => {
      const storage = await open();
      const acquiring = storage.leaser.acquire("n", claimOf("late"));
      await storage.close();
      const lease = await acquiring.catch(() => undefined);
      expect(lease === undefined || lease.lost.aborted).toBe(true);
    });

    test("the paths it writes below are absolute, and the spool lies below one of them", async () => {
      const storage = await open();
      const paths = storage.persistencePaths();
      expect(paths.every((dir) => path.isAbsolute(dir))).toBe(true);
      const { spoolDir } = storage;
      if (spoolDir !== undefined) expect(paths.some((dir) => spoolDir.startsWith(`${dir}${path.sep}`))).toBe(true);
    });
  });
}
