import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLooprigError, sha256Hex } from "../../core/index.js";
import type { CanonicalRoot, PlanId } from "../../core/index.js";
import { createMemoryStorage } from "../../storage/index.js";
import type { Storage } from "../../storage/index.js";
import { decodePlan, encodePlan, ownPathsOf, PlanFormatError, reversed } from "./plan-record.js";
import type { PlanRecord } from "./plan-record.js";
import { createPlanStore } from "./plan-store.js";
import type { PlanStore } from "./plan-store.js";
import { at, directory, entryOf, file, link } from "./testing/trees.js";
import type { PlannedEntry } from "./plan.js";

const root = "/place/tree" as CanonicalRoot;
const key = sha256Hex(root);
const entry = (node: Parameters<typeof entryOf>[0]): PlannedEntry => entryOf(node) as PlannedEntry;

const record = (planId = "0123456789ab"): PlanRecord => ({
  planId: planId as PlanId,
  root,
  purpose: { action: "undo", entry: "t4", nested: [1, null, "x"] },
  operations: [
    {
      path: at("a\nb"),
      expected: entry(file("old")),
      target: entry(file("new", 0o755)),
      staged: at(".looprig-x-0"),
      backup: at(".looprig-x-1"),
    },
    { path: at("bad\udcff"), expected: undefined, target: entry(link("to\udc80")), staged: at(".looprig-x-2") },
    { path: at("dir"), expected: entry(directory(0o500)), target: entry(directory(0o755)) },
    { path: at("gone"), expected: entry(file("")), target: undefined, backup: at(".looprig-x-3") },
  ],
  relaxed: [
    { path: at(""), mode: 0o500 },
    { path: at("tight"), mode: 0o555 },
  ],
});

const open = (storage: Storage): PlanStore => createPlanStore(storage, { root, rootKey: key });

async function blobsOf(storage: Storage): Promise<string[]> {
  const keys: string[] = [];
  for await (const blob of storage.blobs.list("plans/")) keys.push(blob.key);
  return keys;
}

describe("the plan of a root", () => {
  test("is read back as it was written, also through another store value", async () => {
    const storage = createMemoryStorage();
    await open(storage).create(record());
    expect(await open(storage).read()).toEqual({ phase: "staging", record: record(), skipped: [] });
  });

  test("is undefined when there is none", async () => {
    expect(await open(createMemoryStorage()).read()).toBeUndefined();
  });

  test("goes through its phases, keeps what was skipped, and leaves nothing behind", async () => {
    const storage = createMemoryStorage();
    const plans = open(storage);
    await plans.create(record());
    await plans.advance(record().planId, "committing");
    expect((await plans.read())?.phase).toBe("committing");
    await plans.advance(record().planId, "committed", [at("left\udcff"), at("x")]);
    expect(await plans.read()).toMatchObject({ phase: "committed", skipped: ["left\udcff", "x"] });
    await plans.remove(record().planId);
    expect(await plans.read()).toBeUndefined();
    expect(await blobsOf(storage)).toEqual([]);
    expect(await storage.kv.list("plans/")).toEqual([]);
  });

  test("refuses a second plan until the first is settled, and says which it is", async () => {
    const plans = open(createMemoryStorage());
    await plans.create(record());
    await expect(plans.create(record("ba9876543210"))).rejects.toMatchObject({
      code: "restore.unsettled",
      details: { root, planId: "0123456789ab" },
    });
    await plans.remove(record().planId);
    await plans.create(record("ba9876543210"));
    expect((await plans.read())?.record.planId).toBe("ba9876543210");
  });

  test("is not removed by the name of another plan", async () => {
    const plans = open(createMemoryStorage());
    await plans.create(record());
    await plans.remove("ba9876543210" as PlanId);
    expect(await plans.read()).toBeDefined();
  });

  test("sweeps blobs that a crash left without a pointer", async () => {
    const storage = createMemoryStorage();
    await storage.blobs.put(`plans/${key}/dead.00.0`, [Buffer.from("left over")]);
    const plans = open(storage);
    await plans.create(record());
    await plans.remove(record().planId);
    expect(await blobsOf(storage)).toEqual([]);
  });

  test("says that a record is damaged, or gone, instead of guessing", async () => {
    const expected = { code: "restore.plan_damaged", details: { root, planId: "0123456789ab" } };
    for (const damage of ["missing", "changed"] as const) {
      const storage = createMemoryStorage();
      const plans = open(storage);
      await plans.create(record());
      const [blob] = await blobsOf(storage);
      await storage.blobs.delete(blob as string);
      if (damage === "changed") await storage.blobs.put(blob as string, [Buffer.from("{}")]);
      await expect(plans.read()).rejects.toMatchObject(expected);
      await expect(plans.create(record("ba9876543210"))).rejects.toMatchObject({ code: "restore.unsettled" });
    }
  });

  test("holds more operations than one value or one part could", async () => {
    const plans = open(createMemoryStorage());
    const many = Array.from({ length: 60_000 }, (_, i) => ({
      path: at(`d/${String(i).padStart(6, "0")}`),
      expected: undefined,
      target: entry(file("x")),
      staged: at(`d/.looprig-0123456789ab-${i}${"-".repeat(120)}`),
    }));
    await plans.create({ ...record(), operations: many });
    expect((await plans.read())?.record.operations).toHaveLength(60_000);
  });
});

describe("a plan record", () => {
  test("names exactly its staged files and backups as ours (U9)", () => {
    expect([...ownPathsOf(record())].sort()).toEqual([0, 1, 2, 3].map((n) => `.looprig-x-${n}`));
  });

  test("reversed twice is itself", () => {
    for (const operation of record().operations) expect(reversed(reversed(operation))).toEqual(operation);
  });

  test("survives encoding, and no change of its text decodes to something that is not a record", async () => {
    const bytes = await encodePlan(record());
    expect(await decodePlan(bytes)).toEqual(record());
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 0, max: 255 }), async (position, value) => {
        const mutant = Buffer.from(bytes);
        mutant[position] = value;
        let decoded: PlanRecord;
        try {
          decoded = await decodePlan(mutant);
        } catch (error) {
          expect(error instanceof PlanFormatError || isLooprigError(error, "path.invalid")).toBe(true);
          return;
        }
        expect(await decodePlan(await encodePlan(decoded))).toEqual(decoded);
      }),
      { numRuns: 500 },
    );
  });

  test("that was cut off is none", async () => {
    const text = (await encodePlan(record())).toString("utf8");
    await expect(decodePlan(Buffer.from(text.slice(0, text.lastIndexOf("\n"))))).rejects.toThrow(PlanFormatError);
  });

  test.each([
    ["paths that leave the root", { path: "../x" }],
    ["an absolute path", { path: "/x" }],
    ["an omitted entry", { target: { kind: "omitted", class: "vcs" } }],
    ["set-id bits", { target: { kind: "file", mode: 0o4755, size: 0, id: "" } }],
  ])("does not hold %s", async (_, change) => {
    const lines = (await encodePlan(record())).toString("utf8").split("\n");
    lines[1] = JSON.stringify({ ...(JSON.parse(lines[1] ?? "") as object), ...change });
    await expect(decodePlan(Buffer.from(lines.join("\n")))).rejects.toThrow();
  });
});
