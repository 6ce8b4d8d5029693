/** Objects stored by what differs from an earlier version: small, safe to collect around, and never a step from being lost. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mintSessionId } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { CaptureResult, WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { codecs, parsePack } from "./pack-codec.js";
import type { PackRows } from "./pack-codec.js";
import { directory, file, readTree, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";

let dir: ReturnType<typeof temporaryDirectory>;
let root: string;
let storage: Storage;
let store: WorkspaceStore;
beforeEach(() => {
  dir = temporaryDirectory();
  root = path.join(dir.path, "tree");
  fs.mkdirSync(root);
  storage = createMemoryStorage();
  store = createWorkspaceStore(storage);
});
afterEach(() => {
  dir.dispose();
});

/** Text that compresses only a little, so that what a delta saves is seen. */
const text = (bytes: number): string => randomBytes(bytes / 2).toString("hex");
const claim = { sessionId: mintSessionId(), command: "test" };
let pins = 0;
const capture = (): Promise<CaptureResult> => store.capture({ root, pin: { owner: "o", id: `p${pins++}` } });

async function packs(): Promise<readonly PackRows[]> {
  const found: PackRows[] = [];
  for await (const { key } of storage.blobs.list("packs/")) found.push(parsePack(await storage.blobs.get(key)));
  return found;
}
const blocks = async () => (await packs()).flatMap((pack) => pack.blocks);
const deltas = async () => (await blocks()).filter(({ codec }) => codec === codecs.patch);

async function expectWhole(ref: SnapshotRef, tree: ReturnType<typeof readTree>): Promise<void> {
  const fresh = createWorkspaceStore(storage);
  expect((await fresh.verify({ refs: [ref] })).damaged).toEqual([]);
  const dest = path.join(dir.path, `out-${randomBytes(4).toString("hex")}`);
  await fresh.materialize(await fresh.open(ref), dest);
  expect(readTree(dest)).toEqual(tree);
}

describe("an edited file", () => {
  it("adds about what was changed, however it was written", async () => {
    writeTree(root, { a: file(text(20_000)), b: file(text(20_000)) });
    await capture();
    fs.appendFileSync(path.join(root, "a"), "one more line\n");
    fs.writeFileSync(path.join(root, "b.new"), `${fs.readFileSync(path.join(root, "b"), "utf8")}and here\n`);
    fs.renameSync(path.join(root, "b.new"), path.join(root, "b"));
    const { bytesStored, ref } = await capture();
    expect(bytesStored).toBeLessThan(2_000);
    expect((await deltas()).flatMap(({ ids }) => ids)).toHaveLength(2);
    await expectWhole(ref, readTree(root));
  });

  it("is one step from whole bytes after any number of edits", async () => {
    writeTree(root, { a: file(text(8_000)) });
    const seen: (readonly [SnapshotRef, ReturnType<typeof readTree>])[] = [];
    for (let i = 0; i < 12; i++) {
      fs.appendFileSync(path.join(root, "a"), `edit ${i}\n`);
      seen.push([(await capture()).ref, readTree(root)]);
    }
    const all = await blocks();
    const whole = new Set(all.filter(({ bases }) => bases === undefined).flatMap(({ ids }) => ids));
    const bases = (await deltas()).flatMap((block) => block.bases ?? []);
    expect(bases.length).toBeGreaterThan(10);
    expect(bases.every((base) => whole.has(base))).toBe(true);
    for (const [ref, tree] of seen) await expectWhole(ref, tree);
  });

  it("of which little is left is stored whole", async () => {
    writeTree(root, { a: file(text(8_000)) });
    await capture();
    fs.writeFileSync(path.join(root, "a"), text(8_000));
    await capture();
    expect(await deltas()).toEqual([]);
  });
});

describe("a directory of many names", () => {
  it("adds little when one of them changes", async () => {
    writeTree(root, {
      wide: directory(Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`f${i}`, file(`${i}`)]))),
    });
    await capture();
    fs.writeFileSync(path.join(root, "wide", "f200"), "edited");
    const { bytesStored, ref } = await capture();
    expect(bytesStored).toBeLessThan(2_000);
    await expectWhole(ref, readTree(root));
  });
});

describe("when a base is lost or damaged", () => {
  const edited = async () => {
    writeTree(root, { a: file(text(8_000)) });
    await capture();
    fs.appendFileSync(path.join(root, "a"), "edit\n");
    const { ref } = await capture();
    const [first] = (await packs()).filter(({ blocks: own }) => own.every(({ bases }) => bases === undefined));
    return { ref, pack: `packs/${first?.packId ?? ""}` as never };
  };

  it("what needs it is named and never restored", async () => {
    const { ref, pack } = await edited();
    await storage.blobs.delete(pack);
    const fresh = createWorkspaceStore(storage);
    const { damaged } = await fresh.verify({ refs: [ref] });
    expect(damaged.map(({ path: at }) => at)).toContain("a");
    await expect(fresh.materialize(await fresh.open(ref), path.join(dir.path, "out"))).rejects.toMatchObject({
      code: expect.stringMatching(/^snapshot\.object_(missing|damaged)$/) as string,
    });
    expect(fs.existsSync(path.join(dir.path, "out"))).toBe(false);
  });

  it("the next capture of the same bytes stores them anew", async () => {
    const { ref, pack } = await edited();
    await storage.blobs.delete(pack);
    const again = await store.capture({ root });
    expect(again.ref).toBe(ref);
    await expectWhole(ref, readTree(root));
  });
});

describe("a collection", () => {
  it("keeps the base of what is pinned, and gives it back afterwards", async () => {
    writeTree(root, { a: file(text(20_000)), b: file(text(3_000)) });
    await store.capture({ root, pin: { owner: "old", id: "p" } });
    fs.appendFileSync(path.join(root, "a"), "edit\n");
    const tree = readTree(root);
    const { ref } = await store.capture({ root, pin: { owner: "new", id: "p" } });
    expect(await deltas()).not.toEqual([]);
    await store.unpin({ owner: "old" });
    await store.collect({ claim, graceMs: 0 });
    await store.collect({ claim, graceMs: 0, fill: 1 });
    await expectWhole(ref, tree);
    await store.unpin({ owner: "new" });
    await store.collect({ claim, graceMs: 0 });
    expect(await packs()).toEqual([]);
  });

  it("among random edits, pins and unpins leaves all that is pinned whole, and no garbage", async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant("edit" as const), name: fc.nat(5), at: fc.nat(2_000) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("rewrite" as const), name: fc.nat(5) }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant("capture" as const) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("unpin" as const), which: fc.nat(50) }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("collect" as const), fill: fc.constantFrom(0.3, 0.6, 1) }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen" as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async (steps) => {
        const here = fs.mkdtempSync(path.join(dir.path, "run-"));
        const own = createMemoryStorage();
        let engine = createWorkspaceStore(own);
        for (let i = 0; i < 6; i++) fs.writeFileSync(path.join(here, `f${i}`), text(1_000 + i * 500));
        const pinned = new Map<string, SnapshotRef>();
        let count = 0;
        for (const each of steps) {
          switch (each.kind) {
            case "edit": {
              const at = path.join(here, `f${each.name}`);
              const now = fs.readFileSync(at, "utf8");
              fs.writeFileSync(at, `${now.slice(0, each.at)}+${now.slice(each.at)}`);
              break;
            }
            case "rewrite":
              fs.writeFileSync(path.join(here, `f${each.name}`), text(2_000));
              break;
            case "capture": {
              const id = `p${count++}`;
              pinned.set(id, (await engine.capture({ root: here, pin: { owner: "o", id } })).ref);
              break;
            }
            case "unpin": {
              const id = [...pinned.keys()][each.which % Math.max(1, pinned.size)];
              if (id === undefined) break;
              await engine.unpin({ owner: "o", id });
              pinned.delete(id);
              break;
            }
            case "collect":
              await engine.collect({ claim, graceMs: 0, fill: each.fill });
              break;
            case "reopen":
              engine = createWorkspaceStore(own);
          }
        }
        const fresh = createWorkspaceStore(own);
        expect((await fresh.verify({ refs: [...pinned.values()] })).damaged).toEqual([]);
        await fresh.collect({ claim, graceMs: 0 });
        expect((await createWorkspaceStore(own).verify()).damaged).toEqual([]);
        for (const id of pinned.keys()) await fresh.unpin({ owner: "o", id });
        await fresh.collect({ claim, graceMs: 0 });
        expect((await fresh.stats()).packs).toBe(0);
      }),
      { numRuns: process.env["LOOPRIG_SOAK"] === "1" ? 1_000 : 25 },
    );
  });
});
