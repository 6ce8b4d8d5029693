/** Collection gives back what no pin reaches, and nothing else (G2). */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mintSessionId, parseWorkspacePath } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { CollectOptions, CollectReport, WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { readTree, temporaryDirectory } from "./testing/tree-on-disk.js";

const claim = { sessionId: mintSessionId(), command: "test" };
const day = 24 * 60 * 60 * 1000;

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
let storage: Storage;
let clock: number;
beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  storage = createMemoryStorage();
  clock = Date.now() + 60_000;
});
afterEach(async () => {
  await storage.close();
  base.dispose();
});

const open = (): WorkspaceStore =>
  createWorkspaceStore(storage, { spoolDir: path.join(base.path, "spool"), now: () => clock });
const write = (name: string, bytes: string | Uint8Array): void => {
  fs.writeFileSync(path.join(root, name), bytes);
};
async function bytesIn(prefix: string): Promise<number> {
  let bytes = 0;
  for await (const { size } of storage.blobs.list(prefix)) bytes += size;
  return bytes;
}
async function keys(prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of storage.blobs.list(prefix)) found.push(key);
  return found;
}
const storeBytes = async (): Promise<number> => (await bytesIn("packs/")) + (await bytesIn("index/"));
let restores = 0;
async function restored(store: WorkspaceStore, ref: SnapshotRef): Promise<unknown> {
  const dest = path.join(base.path, `out-${restores++}`);
  await store.materialize(await store.open(ref), dest);
  return readTree(dest);
}
const collect = (store: WorkspaceStore, options: Partial<CollectOptions> = {}): Promise<CollectReport> =>
  store.collect({ claim, ...options });

describe("a store with garbage", () => {
  async function twoCaptures(store: WorkspaceStore): Promise<{ kept: SnapshotRef; tree: unknown }> {
    write("shared", randomBytes(300_000));
    write("old", randomBytes(400_000));
    await store.capture({ root, pin: { owner: "a", id: "1" } });
    fs.rmSync(path.join(root, "old"));
    write("new", randomBytes(10_000));
    const { ref } = await store.capture({ root, pin: { owner: "a", id: "2" } });
    await store.unpin({ owner: "a", id: "1" });
    return { kept: ref, tree: readTree(root) };
  }

  it("is given back a grace period after it was condemned, and not before", async () => {
    const store = open();
    const { kept, tree } = await twoCaptures(store);
    const before = await storeBytes();
    const first = await collect(store);
    expect(first.freed.bytes).toBe(0);
    expect(first.waiting.bytes).toBeGreaterThan(400_000);
    expect(first.waiting.until).toEqual(new Date(clock + day));
    clock += day - 1;
    expect((await collect(store)).freed.bytes).toBe(0);
    clock += 1;
    const { freed } = await collect(store);
    expect(freed.bytes).toBeGreaterThan(400_000);
    expect(await storeBytes()).toBe(before - freed.bytes);
    expect(await keys("condemned/")).toEqual([]);
    expect((await store.verify()).damaged).toEqual([]);
    expect(await restored(open(), kept)).toEqual(tree);
  });

  it("is given back at once without a grace, as a dry run says to the byte", async () => {
    const store = open();
    const { kept, tree } = await twoCaptures(store);
    const before = await storeBytes();
    const dry = await collect(store, { graceMs: 0, dryRun: true });
    expect(await storeBytes()).toBe(before);
    expect(await keys("condemned/")).toEqual([]);
    const done = await collect(store, { graceMs: 0 });
    expect({ ...done, dryRun: true }).toEqual(dry);
    expect(done.freed.bytes).toBeGreaterThan(400_000);
    expect(await storeBytes()).toBe(before - done.freed.bytes);
    expect(await restored(open(), kept)).toEqual(tree);
    expect((await collect(store, { graceMs: 0 })).freed).toEqual({ objects: 0, bytes: 0, packs: 0 });
  });

  it("that is captured again while it is condemned is stored anew and stays", async () => {
    const store = open();
    write("a", randomBytes(200_000));
    const tree = readTree(root);
    await store.capture({ root, pin: { owner: "a", id: "1" } });
    await store.unpin({ owner: "a" });
    await collect(store);
    const again = await open().capture({ root, pin: { owner: "a", id: "2" } });
    expect(again.bytesStored).toBeGreaterThan(200_000);
    expect((await open().capture({ root })).bytesStored).toBe(0);
    clock += day;
    expect((await collect(store)).freed.bytes).toBeGreaterThan(200_000);
    expect(await restored(open(), again.ref)).toEqual(tree);
    expect((await store.verify()).damaged).toEqual([]);
  });
});

it("what nine of ten sessions kept is given back but for a tenth, and stats say beforehand how much each keeps", async () => {
  const store = open();
  let last: SnapshotRef | undefined;
  for (let i = 0; i < 10; i++) {
    for (let f = 0; f < 40; f++) if (i === 0 || f % 10 === i) write(`f${f}`, randomBytes(10_000));
    ({ ref: last } = await store.capture({ root, pin: { owner: `s${i}`, id: "c" } }));
  }
  const { owners } = await store.stats();
  expect(owners.map(({ owner }) => owner)).toEqual(Array.from({ length: 10 }, (_, i) => `s${i}`));
  for (let i = 0; i < 9; i++) await store.unpin({ owner: `s${i}` });
  const before = await storeBytes();
  const { freed } = await collect(store, { graceMs: 0 });
  expect(await storeBytes()).toBe(before - freed.bytes);
  expect(freed.bytes).toBeGreaterThan(owners.slice(0, 9).reduce((sum, { ownBytes }) => sum + ownBytes, 0));

  const after = await storeBytes();
  const [left] = (await store.stats()).owners;
  expect(left?.ownBytes).toBe(left?.bytes);
  storage = createMemoryStorage();
  expect((await open().capture({ root })).ref).toBe(last);
  expect(after).toBeLessThan((await storeBytes()) * 1.1);
});

it("the packs of many small captures become one, with little room beside them, and the next runs leave it alone", async () => {
  const store = open();
  const refs: SnapshotRef[] = [];
  for (let i = 0; i < 40; i++) {
    write("log", randomBytes(3_000));
    refs.push((await store.capture({ root, pin: { owner: "a", id: String(i) } })).ref);
  }
  expect(await keys("packs/")).toHaveLength(40);
  const { repacked, extraBytes } = await collect(store, { maxExtraBytes: 60_000 });
  expect(repacked.packs).toBe(40);
  expect(extraBytes).toBeLessThanOrEqual(60_000);
  expect((await keys("packs/")).length).toBeLessThan(5);
  expect((await collect(store)).repacked.packs).toBe(0);
  const report = await store.verify({ refs });
  expect(report.damaged).toEqual([]);
  // A reader that knew the old packs finds the new ones.
  for (const ref of refs) expect(await open().has(ref)).toBe(true);
});

it("without room to write anew, whole packs still go, and the rest is left for another time", async () => {
  const store = open();
  write("a", randomBytes(50_000));
  write("b", randomBytes(100_000));
  await store.capture({ root, pin: { owner: "a", id: "1" } });
  fs.rmSync(path.join(root, "b"));
  await store.capture({ root, pin: { owner: "a", id: "2" } });
  await store.keep([{ path: parseWorkspacePath("c"), bytes: randomBytes(30_000), mode: 0o644 }]);
  await store.unpin({ owner: "a", id: "1" });
  const little = await collect(store, { graceMs: 0, maxExtraBytes: 1000 });
  expect(little).toMatchObject({ stopped: "full", repacked: { packs: 0 }, freed: { packs: 1 } });
  expect((await store.verify()).damaged).toEqual([]);
  expect((await collect(store, { graceMs: 0 })).freed.bytes).toBeGreaterThan(100_000);
  expect((await store.verify()).damaged).toEqual([]);
});

describe("damage", () => {
  const damage = async (prefix: string, find: (bytes: Buffer) => number): Promise<void> => {
    for (const key of await keys(prefix)) {
      const bytes = Buffer.from(await storage.blobs.get(key));
      const at = find(bytes);
      if (at < 0) continue;
      bytes[at] = (bytes[at] as number) ^ 1;
      await storage.blobs.delete(key);
      await storage.blobs.put(key, [bytes]);
    }
  };

  it("of a directory that is pinned refuses collection, and a dry run names it", async () => {
    const store = open();
    write("name-of-a-file", randomBytes(10));
    await store.capture({ root, pin: { owner: "a", id: "1" } });
    await damage("packs/", (bytes) => bytes.indexOf("name-of-a-file"));
    const before = await keys("");
    const problem = { problem: "damaged", owner: "a", id: "1" };
    expect((await collect(open(), { dryRun: true, graceMs: 0 })).damaged).toMatchObject([problem]);
    await expect(collect(open(), { graceMs: 0 })).rejects.toMatchObject({ code: "snapshot.not_collected" });
    expect(await keys("")).toEqual(before);
  });

  it("of the table of a pack without an index, which hides a pinned directory, refuses collection until it is undone", async () => {
    fs.mkdirSync(path.join(root, "sub"));
    write("sub/kept", randomBytes(100_000));
    write("sub/edited", "before");
    await open().capture({ root, pin: { owner: "a", id: "1" } });
    write("sub/edited", "after");
    const { tree, ref } = await open().capture({ root, pin: { owner: "a", id: "2" } });
    await open().unpin({ owner: "a", id: "1" });
    const sub = await tree.lookup(parseWorkspacePath("sub"));
    const id = Buffer.from(sub?.kind === "directory" ? sub.id : "", "hex");
    const flipped = Buffer.from(id);
    flipped[0] = (flipped[0] as number) ^ 1;
    await damage("packs/", (bytes) => bytes.indexOf(id));
    await expect(collect(open(), { graceMs: 0, fill: 1 })).rejects.toMatchObject({ code: "snapshot.not_collected" });
    await damage("packs/", (bytes) => bytes.indexOf(flipped));
    expect((await open().verify()).damaged).toEqual([]);
    expect(await restored(open(), ref)).toEqual(readTree(root));
  });

  it("of the table of a pack without an index, which hides what pinned content is stored against, refuses it as well", async () => {
    const body = Buffer.from(randomBytes(50_000));
    write("a", body);
    write("b", randomBytes(90_000));
    const first = await open().capture({ root, pin: { owner: "a", id: "1" } });
    body[3] = (body[3] as number) ^ 1;
    write("a", body);
    const { ref } = await open().capture({ root, pin: { owner: "a", id: "2" } });
    await open().unpin({ owner: "a", id: "1" });
    const old = await first.tree.lookup(parseWorkspacePath("a"));
    const id = Buffer.from(old?.kind === "file" ? old.id : "", "hex");
    const flipped = Buffer.from(id);
    flipped[0] = (flipped[0] as number) ^ 1;
    const flip = (what: Buffer) => damage("packs/", (bytes) => (bytes.length < 10_000 ? bytes.indexOf(what) : -1));
    await flip(id);
    const dry = await collect(open(), { graceMs: 0, fill: 1, dryRun: true });
    expect([dry.freed.packs, dry.damaged.length]).toEqual([0, 1]);
    await expect(collect(open(), { graceMs: 0, fill: 1 })).rejects.toMatchObject({ code: "snapshot.not_collected" });
    await flip(flipped);
    expect((await open().verify()).damaged).toEqual([]);
    expect(await restored(open(), ref)).toEqual(readTree(root));
  });

  it("of content leaves its pack alone, and of two copies the sound one is kept", async () => {
    const content = randomBytes(40_000);
    write("a", content);
    write("b", randomBytes(90_000));
    await open().capture({ root, pin: { owner: "a", id: "1" } });
    await damage("packs/", (bytes) => bytes.indexOf(content.subarray(0, 100)));
    fs.rmSync(path.join(root, "b"));
    const store = open();
    // Whoever meets the damage stores a second copy.
    await store.verify();
    const { ref } = await store.capture({ root, pin: { owner: "a", id: "2" } });
    await store.unpin({ owner: "a", id: "1" });
    for (let i = 0; i < 3; i++) await collect(open(), { graceMs: 0, fill: 1 });
    expect((await open().verify()).damaged).toEqual([]);
    expect(await restored(open(), ref)).toEqual(readTree(root));
  });

  it("of the copy that would be kept keeps the sound one, though its pack holds nothing else of use", async () => {
    const content = randomBytes(40_000);
    write("a", content);
    const { ref } = await open().capture({ root, pin: { owner: "a", id: "1" } });
    const tree = readTree(root);
    await damage("packs/", (bytes) => bytes.indexOf(content.subarray(0, 100)));
    const store = open();
    await store.verify();
    write("b", randomBytes(200_000));
    // Its pack has the sound copy, and all else in it is garbage a moment later.
    await store.capture({ root, pin: { owner: "b", id: "1" } });
    await store.unpin({ owner: "b" });
    const { damaged } = await collect(open(), { graceMs: 0, fill: 1 });
    expect(damaged).toMatchObject([{ problem: "damaged" }]);
    expect((await open().verify()).damaged).toEqual([]);
    expect(await restored(open(), ref)).toEqual(tree);
  });

  it("of a list of condemned objects stops captures until the next collection removes it", async () => {
    const store = open();
    write("a", randomBytes(1000));
    const { ref } = await store.capture({ root, pin: { owner: "a", id: "1" } });
    await storage.blobs.put("condemned/000000000000001-00000000000000000000000000000000", [Buffer.from("damaged")]);
    await expect(open().capture({ root })).rejects.toMatchObject({ code: "snapshot.condemned_unreadable" });
    expect(await restored(open(), ref)).toEqual(readTree(root));
    await collect(store);
    expect((await open().capture({ root })).ref).toBe(ref);
  });
});

it("any captures, pins, unpins and collections leave everything pinned whole and nothing else", async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("write" as const),
        name: fc.nat(5),
        size: fc.nat(90_000),
        seed: fc.nat(9),
      }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant("capture" as const), id: fc.nat(4), fresh: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("unpin" as const), id: fc.nat(4) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("collect" as const),
        hours: fc.constantFrom(0, 5, 24),
        now: fc.boolean(),
      }),
    },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      storage = createMemoryStorage();
      let store = open();
      const pinned = new Map<number, Map<SnapshotRef, unknown>>();
      for (const each of steps) {
        clock += 1000;
        switch (each.do) {
          case "write":
            write(String(each.name), Buffer.alloc(each.size, `${each.seed} ${each.size % 7} `));
            break;
          case "capture": {
            if (each.fresh) store = open();
            const { ref } = await store.capture({ root, pin: { owner: "o", id: String(each.id) } });
            pinned.set(each.id, (pinned.get(each.id) ?? new Map<SnapshotRef, unknown>()).set(ref, readTree(root)));
            break;
          }
          case "leave":
            // What a cancelled or killed capture leaves.
            await store.capture({ root });
            break;
          case "unpin":
            await store.unpin({ owner: "o", id: String(each.id) });
            pinned.delete(each.id);
            break;
          case "collect": {
            clock += each.hours * 3_600_000;
            const options = each.now ? { graceMs: 0, fill: 1 } : { fill: 1 };
            const dry = await collect(store, { ...options, dryRun: true });
            expect({ ...(await collect(store, options)), dryRun: true }).toEqual(dry);
            if (each.now) {
              expect((await store.stats()).objects.garbage).toBe(0);
            }
          }
        }
      }
      expect((await open().verify()).damaged).toEqual([]);
      for (const trees of pinned.values()) {
        for (const [ref, tree] of trees) expect(await restored(store, ref)).toEqual(tree);
      }
      fs.rmSync(root, { recursive: true });
      fs.mkdirSync(root);
    }),
    { numRuns: 40 },
  );
});
