/** The store under damage, loss and neighbours: what is there is found, what is gone is made good or named. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseRef, parseWorkspacePath, StorageError } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Blobs, Storage } from "../storage/index.js";
import { openLocalStorage } from "../storage-local/index.js";
import type { CaptureResult, WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, readTree, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
let storage: Storage;
const open = (over: Storage = storage): WorkspaceStore =>
  createWorkspaceStore(over, { spoolDir: path.join(base.path, "spool"), now: () => Date.now() + 60_000 });

async function keys(prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of storage.blobs.list(prefix)) found.push(key);
  return found;
}
async function replaceBlob(key: string, change: (bytes: Buffer) => Uint8Array): Promise<void> {
  const bytes = Buffer.from(await storage.blobs.get(key));
  await storage.blobs.delete(key);
  await storage.blobs.put(key, [change(bytes)]);
}
/** So much that its pack has an index of its own. */
const worthAnIndex = (): Buffer => randomBytes(80_000);
const flip = (at: number) => (bytes: Buffer) => {
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] as number) ^ 0xff;
  return bytes;
};
let restores = 0;
async function expectRestores(store: WorkspaceStore, { ref }: CaptureResult, tree = readTree(root)): Promise<void> {
  const dest = path.join(base.path, `out-${restores++}`);
  await store.materialize(await store.open(ref), dest);
  expect(readTree(dest)).toEqual(tree);
}

beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  writeTree(root, {
    a: file("aaa"),
    d: directory({ b: file("bbb".repeat(1000)), big: file(Buffer.alloc(1_500_000, "big ")) }),
  });
});
afterEach(async () => {
  await storage.close();
  base.dispose();
});

describe.each([
  ["memory", async () => createMemoryStorage()],
  ["local", () => openLocalStorage({ dir: path.join(base.path, "state") })],
])("over %s storage", (_, openStorage) => {
  beforeEach(async () => {
    storage = await openStorage();
  });

  it.each([
    ["the same store value", (store: WorkspaceStore) => store],
    ["another one", () => open()],
  ])("a capture by %s reads again what a vanished pack held", async (__, next) => {
    const store = open();
    const first = await store.capture({ root });
    for (const key of [...(await keys("packs/")), ...(await keys("index/"))]) await storage.blobs.delete(key);
    const second = await next(store).capture({ root });
    expect(second.ref).toBe(first.ref);
    expect(second.bytesRead).toBeGreaterThan(1_500_000);
    await expectRestores(open(), second);
  });

  it("a pack that vanishes while a capture runs is made good before the ref is returned (G3)", async () => {
    const first = await open().capture({ root });
    const packs = await keys("packs/");
    fs.writeFileSync(path.join(root, "new"), "new");
    let lost = false;
    const losing: Blobs = {
      ...storage.blobs,
      put: async (key, chunks, options) => {
        if (!lost && key.startsWith("packs/")) {
          lost = true;
          for (const pack of packs) await storage.blobs.delete(pack);
        }
        return storage.blobs.put(key, chunks, options);
      },
    };
    const second = await open({ ...storage, blobs: losing }).capture({ root });
    expect(lost).toBe(true);
    expect(second.ref).not.toBe(first.ref);
    await expectRestores(open(), second);
  });

  it("a capture of a few changes publishes one blob beside its pin, which every reader takes in", async () => {
    const first = await open().capture({ root, pin: { owner: "o", id: "1" } });
    fs.writeFileSync(path.join(root, "a"), "edited");
    const second = await open().capture({ root, pin: { owner: "o", id: "2" } });
    expect(await keys("packs/")).toHaveLength(2);
    expect(await keys("index/")).toEqual([]);
    const other = open();
    expect(await other.has(first.ref)).toBe(true);
    expect(await other.capture({ root })).toMatchObject({ ref: second.ref, bytesStored: 0 });
    await expectRestores(other, second);
  });

  it.each([
    ["zeroed", (bytes: Buffer) => Buffer.alloc(bytes.length)],
    ["cut short", (bytes: Buffer) => bytes.subarray(0, 50)],
    ["emptied", () => Buffer.alloc(0)],
    ["deleted", undefined],
  ])("an index that was %s is made anew from its pack, once", async (__, damage) => {
    const results: CaptureResult[] = [];
    for (let i = 0; i < 20; i++) {
      fs.writeFileSync(path.join(root, "a"), worthAnIndex());
      results.push(await open().capture({ root }));
    }
    const before = await keys("index/");
    expect(before).toHaveLength(20);
    for (const key of before) {
      if (damage) await replaceBlob(key, damage);
      else await storage.blobs.delete(key);
    }
    const after = await open().capture({ root });
    expect(after).toMatchObject({ ref: results[19]?.ref, bytesRead: 0, bytesStored: 0 });
    expect(await keys("index/")).toEqual(before);
    for (const { ref } of results) expect(await open().has(ref)).toBe(true);
    const oldest = await open().open((results[0] as CaptureResult).ref);
    const entry = await oldest.lookup(parseWorkspacePath("a"));
    expect(entry).toMatchObject({ kind: "file", size: 80_000 });
    expect((await open().verify({ refs: results.map(({ ref }) => ref) })).damaged).toEqual([]);
  });

  it("damaged content is named with its path, never given out, and stored anew by the next capture that reads it (G8)", async () => {
    fs.rmSync(path.join(root, "d"), { recursive: true });
    const store = open();
    const first = await store.capture({ root });
    const [pack] = await keys("packs/");
    const bytes = Buffer.from(await storage.blobs.get(pack as string));
    await replaceBlob(pack as string, flip(bytes.indexOf("aaa")));

    const report = await store.verify({ refs: [first.ref] });
    expect(report.damaged).toMatchObject([{ path: "a", problem: "damaged" }]);
    const entry = await first.tree.lookup(parseWorkspacePath("a"));
    if (entry?.kind !== "file") throw new Error("a is a file");
    const reading = async () => {
      for await (const piece of open().read(entry, { path: parseWorkspacePath("a") })) expect(piece).toBe("nothing");
    };
    await expect(reading()).rejects.toMatchObject({ code: "snapshot.object_damaged", details: { path: "a" } });
    const dest = path.join(base.path, "never");
    await expect(open().materialize(first.tree, dest)).rejects.toMatchObject({ code: "snapshot.object_damaged" });
    expect(fs.existsSync(dest)).toBe(false);

    const second = await store.capture({ root });
    expect(second.ref).toBe(first.ref);
    await expectRestores(open(), second);
  });

  it("an index of a later version stops the work and is left alone", async () => {
    fs.writeFileSync(path.join(root, "a"), worthAnIndex());
    await open().capture({ root });
    const { objectIdOf } = await import("./object-ids.js");
    const [key] = await keys("index/");
    await replaceBlob(key as string, (bytes) => {
      bytes.writeUInt32BE(9, 8);
      Buffer.from(objectIdOf(bytes.subarray(0, -32)), "hex").copy(bytes, bytes.length - 32);
      return bytes;
    });
    await expect(open().capture({ root })).rejects.toMatchObject({
      code: "storage.unsupported_version",
      details: { found: 9 },
    });
    expect(await keys("index/")).toEqual([key]);
  });

  it("pins are found by owner and id, add up, and are removed singly or all at once (G2)", async () => {
    const store = open();
    const ref = (digit: string) => parseRef(`v1:sha256:${digit.repeat(64)}`);
    await store.pin({ owner: "s1", id: "c1" }, [ref("1")]);
    await store.pin({ owner: "s1", id: "c1" }, [ref("1")]);
    await store.pin({ owner: "s1", id: "c1" }, [ref("2")]);
    await store.pin({ owner: "s1", id: "c2" }, [ref("3")]);
    await store.pin({ owner: "s10", id: "c1" }, [ref("4")]);
    const sorted = async () =>
      (await open().pins()).map(({ owner, id, refs }) => [owner, id, [...refs].sort()] as const);
    expect(await sorted()).toEqual([
      ["s1", "c1", [ref("1"), ref("2")]],
      ["s1", "c2", [ref("3")]],
      ["s10", "c1", [ref("4")]],
    ]);
    await store.unpin({ owner: "s1", id: "c1" });
    expect(await sorted()).toHaveLength(2);
    await store.unpin({ owner: "s1" });
    expect(await sorted()).toEqual([["s10", "c1", [ref("4")]]]);
    await expect(store.pin({ owner: "a/b", id: "c" }, [ref("1")])).rejects.toMatchObject({
      code: "storage.invalid_key",
    });
    await expect(store.unpin({ owner: ".." })).rejects.toMatchObject({ code: "storage.invalid_key" });
  });

  it("a damaged pin is an error and not an absent one", async () => {
    const store = open();
    await store.capture({ root, pin: { owner: "o", id: "i" } });
    const [key] = await keys("roots/");
    await replaceBlob(key as string, flip(-1));
    await expect(open().pins()).rejects.toMatchObject({
      code: "snapshot.pin_damaged",
      details: { owner: "o", id: "i" },
    });
    await expect(open().verify()).rejects.toMatchObject({ code: "snapshot.pin_damaged" });
  });

  it("a pinned capture is verified by default, with every object counted once", async () => {
    const store = open();
    await store.capture({ root, pin: { owner: "o", id: "1" } });
    await store.capture({ root, pin: { owner: "o", id: "2" } });
    // A snapshot, two directories, two small files, a list and its two pieces.
    expect(await open().verify()).toMatchObject({ objects: 8, damaged: [] });
  });

  it("is read without its index where no index can be written", async () => {
    fs.writeFileSync(path.join(root, "a"), worthAnIndex());
    const captured = await open().capture({ root, pin: { owner: "o", id: "i" } });
    expect(await keys("index/")).not.toEqual([]);
    for (const key of await keys("index/")) await storage.blobs.delete(key);
    const full = new StorageError("storage.full", "no room", { operation: "put", file: "index", reserve: 0 } as never);
    const blobs: Blobs = { ...storage.blobs, put: () => Promise.reject(full) };
    const store = open({ ...storage, blobs });
    await expectRestores(store, captured);
    expect((await store.verify()).damaged).toEqual([]);
    // Relied on it is not: a capture would have to write.
    await expect(store.capture({ root })).rejects.toMatchObject({ code: "storage.full" });
  });

  it("an unknown ref is said to be unknown, and a malformed one refused", async () => {
    const ref = parseRef(`v1:sha256:${"0".repeat(64)}`);
    await expect(open().open(ref)).rejects.toMatchObject({ code: "snapshot.unknown", details: { ref } });
    expect(await open().has(ref)).toBe(false);
    await expect(open().open("v1:sha256:xyz" as never)).rejects.toMatchObject({ code: "ref.invalid" });
  });

  it("a scan stores nothing, and what it learnt never stands in for what is stored (G3)", async () => {
    const scanned = await open().scan({ root });
    expect(await keys("")).toEqual([]);
    await expect(open().open(scanned.ref)).rejects.toMatchObject({ code: "snapshot.unknown" });
    const result = await open().capture({ root });
    expect(result.ref).toBe(scanned.ref);
    expect(result.bytesRead).toBeGreaterThan(0);
    await expectRestores(open(), result);
  });

  it("a store value sees what another one stored after it looked", async () => {
    const [mine, other] = [open(), open()];
    await mine.capture({ root });
    fs.writeFileSync(path.join(root, "a"), "by the other");
    const theirs = await other.capture({ root });
    await expectRestores(mine, theirs);
  });

  it("captures go on when the stat index was zeroed, cut or deleted", async () => {
    const first = await open().capture({ root });
    const dir = path.join(base.path, "spool", "stat-index");
    const stat = path.join(dir, fs.readdirSync(dir)[0] as string);
    for (const damage of [
      () => fs.writeFileSync(stat, Buffer.alloc(fs.statSync(stat).size)),
      () => fs.truncateSync(stat, 40),
      () => fs.rmSync(dir, { recursive: true }),
    ]) {
      damage();
      expect(await open().capture({ root })).toMatchObject({ ref: first.ref, bytesStored: 0 });
      expect(await open().capture({ root })).toMatchObject({ ref: first.ref, bytesRead: 0 });
    }
  });
});

it("a capture into a full store fails with the storage's error, pins nothing, and the next one succeeds", async () => {
  storage = createMemoryStorage();
  const { StorageError } = await import("../core/index.js");
  const full: Blobs = {
    ...storage.blobs,
    put: async () => {
      throw new StorageError("storage.full", "full", { path: "/" });
    },
  };
  const capture = open({ ...storage, blobs: full }).capture({ root, pin: { owner: "o", id: "i" } });
  await expect(capture).rejects.toMatchObject({ code: "storage.full" });
  expect(await keys("")).toEqual([]);
  await expectRestores(open(), await open().capture({ root, pin: { owner: "o", id: "i" } }));
});
