/** Verification names what is damaged, where it stands, and in which snapshots. */
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { VerifyProgress } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
let storage: Storage;
const open = () => createWorkspaceStore(storage, { now: () => Date.now() + 60_000 });

/** Flips a byte of the first pack that holds `text`: contents of that size are stored raw. */
async function spoil(text: string): Promise<void> {
  for await (const { key } of storage.blobs.list("packs/")) {
    const bytes = Buffer.from(await storage.blobs.get(key));
    const at = bytes.indexOf(text);
    if (at === -1) continue;
    bytes[at] = (bytes[at] as number) ^ 0xff;
    await storage.blobs.delete(key);
    await storage.blobs.put(key, [bytes]);
    return;
  }
  throw new Error(`no pack holds ${text}`);
}

beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  storage = createMemoryStorage();
});
afterEach(() => base.dispose());

it("damage is named at every path, with the snapshots that hold it there and no others", async () => {
  writeTree(root, { keep: file("k"), d: directory({ one: file("Zq7-only") }) });
  const store = open();
  const first = await store.capture({ root });
  writeTree(root, { copy: file("Zq7-only") });
  const second = await store.capture({ root });
  fs.rmSync(path.join(root, "copy"));
  fs.rmSync(path.join(root, "d"), { recursive: true });
  const third = await store.capture({ root });
  await spoil("Zq7-only");

  const { damaged } = await open().verify({ refs: [first.ref, second.ref, third.ref] });
  expect(damaged.map(({ path, problem, refs }) => ({ path, problem, refs }))).toEqual([
    { path: "d/one", problem: "damaged", refs: [first.ref, second.ref] },
    { path: "copy", problem: "damaged", refs: [second.ref] },
  ]);
  expect((await open().verify({ refs: [third.ref] })).damaged).toEqual([]);
});

it("a damaged piece is damage of its file, and a snapshot that is gone has no path", async () => {
  const big = Buffer.alloc(2_500_000);
  for (let i = 0; i < big.length; i += 4) big.writeUInt32LE((Math.imul(i, 2_654_435_761) ^ (i >>> 3)) >>> 0, i);
  big.write("Zq7-inside", 1_300_000);
  writeTree(root, { big: file(big) });
  const { ref } = await open().capture({ root });
  await spoil("Zq7-inside");
  const gone = `v1:sha256:${"0".repeat(64)}` as typeof ref;
  const { damaged } = await open().verify({ refs: [ref, gone] });
  expect(damaged.map(({ path, problem, refs }) => ({ path, problem, refs }))).toEqual([
    { path: "big", problem: "damaged", refs: [ref] },
    { path: undefined, problem: "missing", refs: [gone] },
  ]);
});

it("progress tells what is read of what there is", async () => {
  writeTree(root, Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, file(`content ${i}`)])));
  const { ref } = await open().capture({ root });
  const told: VerifyProgress[] = [];
  const report = await open().verify({ refs: [ref], onProgress: (progress) => told.push(progress) });
  // The first object is told at once, and everything else came within the same moment.
  expect(told.length).toBeGreaterThan(0);
  for (const { objects, bytes } of told) {
    expect(objects).toBeLessThanOrEqual(report.objects);
    expect(bytes).toBeLessThanOrEqual(report.bytes);
  }
});
