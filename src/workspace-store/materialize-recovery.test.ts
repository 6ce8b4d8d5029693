import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import type { FileSystem, FileSystemCall, WorkspacePath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { Tree } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { readTree, temporaryDirectory } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let storage: Storage;
let dest: string;
beforeEach(() => {
  base = temporaryDirectory();
  storage = createMemoryStorage();
  dest = path.join(base.path, "dest");
});
afterEach(() => {
  base.dispose();
});

const store = (fileSystem?: FileSystem) => createWorkspaceStore(storage, { fileSystem });
const hooked = (before: (call: FileSystemCall) => void) => interceptFileSystem(nodeFileSystem, before);
const isCreate = ({ name, effect }: FileSystemCall) => name === "open" && effect;
const failure = (code: string) => Object.assign(new Error(code), { code });

async function kept(
  paths: readonly string[],
  bytes: (path: string) => Buffer = (path) => Buffer.from(path),
): Promise<Tree> {
  const files = paths.map((path) => ({ path: path as WorkspacePath, bytes: bytes(path), mode: 0o644 }));
  return store().open(await store().keep(files));
}
const many = (count: number) => Array.from({ length: count }, (_, i) => `d${i % 50}/e/f${i}`);

describe("a materialization that fails", () => {
  it("takes thousands of entries away again and lets others run meanwhile", async () => {
    const tree = await kept(many(1500));
    let creates = 0;
    const full = hooked((call) => {
      if (isCreate(call) && ++creates === 1490) throw failure("ENOSPC");
    });
    let turns = 0;
    const counting = setInterval(() => turns++);
    const writing = store(full).materialize(tree, dest);
    await expect(writing).rejects.toMatchObject({
      code: "snapshot.materialize_failed",
      details: { operation: "write" },
    });
    clearInterval(counting);
    expect(turns).toBeGreaterThan(1);
    expect(fs.existsSync(dest)).toBe(false);
  });

  it("leaves what others put between, and the directories that lead to it", async () => {
    const tree = await kept(many(100));
    let creates = 0;
    const failing = hooked((call) => {
      if (!isCreate(call)) return;
      if (++creates === 60) fs.writeFileSync(path.join(dest, "d7/e/mine"), "mine");
      if (creates === 90) throw failure("EIO");
    });
    await expect(store(failing).materialize(tree, dest)).rejects.toMatchObject({ code: "snapshot.materialize_failed" });
    expect(readTree(dest)).toMatchObject({ d7: { entries: { e: { entries: { mine: { bytes: "mine" } } } } } });
    expect(fs.readdirSync(dest, { recursive: true })).toHaveLength(3);
  });

  it("never goes through a link that takes the place of a directory (U10)", async () => {
    const tree = await kept(many(400));
    const outside = path.join(base.path, "outside");
    fs.mkdirSync(path.join(outside, "e"), { recursive: true });
    let creates = 0;
    const swapping = hooked((call) => {
      if (!isCreate(call) || ++creates !== 10) return;
      for (let i = 0; i < 50; i++) {
        fs.renameSync(path.join(dest, `d${i}`), path.join(base.path, `moved${i}`));
        fs.symlinkSync(outside, path.join(dest, `d${i}`));
      }
    });
    await store(swapping)
      .materialize(tree, dest)
      .catch((error: unknown) => {
        expect(error).toMatchObject({ code: "snapshot.materialize_failed" });
      });
    expect(creates).toBeGreaterThanOrEqual(10);
    expect(fs.readdirSync(outside, { recursive: true })).toEqual(["e"]);
  });

  it("says that another directory took the place of one of its own", async () => {
    // More directories than are held open: the first is opened again when its second file comes.
    const paths = [...Array.from({ length: 260 }, (_, i) => `d${i}/f`), "d0/g"];
    const tree = await kept(paths);
    let creates = 0;
    const swapping = hooked((call) => {
      if (!isCreate(call) || ++creates !== 20) return;
      for (let i = 0; i < 260; i++) {
        fs.renameSync(path.join(dest, `d${i}`), path.join(base.path, `moved${i}`));
        fs.mkdirSync(path.join(dest, `d${i}`));
      }
    });
    const writing = store(swapping).materialize(tree, dest);
    await expect(writing).rejects.toMatchObject({ code: "snapshot.materialize_failed" });
    // Theirs are empty, and are not ours to remove.
    expect(fs.readdirSync(dest, { recursive: true })).toHaveLength(260);
  });

  it("leaves nothing when an object on the way is damaged, and names its path", async () => {
    const tree = await kept(many(60), () => randomBytes(20_000));
    let key = "";
    for await (const blob of storage.blobs.list("packs/")) key = blob.key;
    const bytes = Buffer.from(await storage.blobs.get(key));
    const middle = bytes.length >> 1;
    bytes.fill(0x55, middle, middle + 64);
    await storage.blobs.delete(key);
    await storage.blobs.put(key, [bytes]);
    const writing = store().materialize(tree, dest);
    await expect(writing).rejects.toMatchObject({ code: "snapshot.object_damaged" });
    await expect(writing).rejects.toMatchObject({
      details: { path: expect.stringMatching(/^d\d+\/e\/f\d+$/) as string },
    });
    expect(fs.existsSync(dest)).toBe(false);
  });

  it("killed, leaves what the next one refuses to write into (G8)", async () => {
    const tree = await kept(many(40));
    let effects = 0;
    const killed = hooked(({ effect }) => {
      // From here on nothing happens any more, as after a kill.
      if (effect && ++effects > 80) throw failure("EIO");
    });
    await expect(store(killed).materialize(tree, dest)).rejects.toThrow();
    const left = fs.readdirSync(dest, { recursive: true });
    expect(left.length).toBeGreaterThan(20);
    await expect(store().materialize(tree, dest)).rejects.toMatchObject({ code: "snapshot.dest_not_empty" });
    expect(fs.readdirSync(dest, { recursive: true })).toEqual(left);
  });
});

describe("what is written", () => {
  it("is refused a second time in the same place", async () => {
    const tree = await kept(["a"]);
    await store().materialize(tree, dest);
    await expect(store().materialize(tree, dest)).rejects.toMatchObject({ code: "snapshot.dest_not_empty" });
    expect(readTree(dest)).toMatchObject({ a: { bytes: "a" } });
  });

  it("is synced only where asked: files first, directories after what is in them, the destination's own name last", async () => {
    const tree = await kept(["d/e/f", "d/g", "h"]);
    const synced: string[] = [];
    const watching = hooked(({ name, args }) => {
      if (name === "fsync" || name === "fsyncLater") {
        synced.push(path.relative(base.path, fs.readlinkSync(`/proc/self/fd/${args[0] as number}`)));
      }
    });
    await store(watching).materialize(tree, dest);
    expect(synced).toEqual([]);
    await store(watching).materialize(tree, `${dest}-2`, { durable: true });
    expect(synced.slice(0, 3).sort()).toEqual(["dest-2/d/e/f", "dest-2/d/g", "dest-2/h"]);
    expect(synced.slice(3)).toEqual(["dest-2/d/e", "dest-2/d", "dest-2", ""]);
  });

  it("is synced also where its mode hides it from its owner", async () => {
    const root = path.join(base.path, "root");
    fs.mkdirSync(root);
    fs.writeFileSync(path.join(root, "hidden"), "h");
    fs.chmodSync(path.join(root, "hidden"), 0o200);
    const { tree } = await store().capture({ root });
    const synced: string[] = [];
    const watching = hooked(({ name, args }) => {
      if (name === "fsyncLater") synced.push(path.basename(fs.readlinkSync(`/proc/self/fd/${args[0] as number}`)));
      // Whoever is not root could not open it again.
      if (name === "open" && String(args[0]).endsWith("/hidden") && (args[1] as number) % 4 === fs.constants.O_RDONLY) {
        throw failure("EACCES");
      }
    });
    await store(watching).materialize(tree, dest, { durable: true });
    expect(synced).toContain("hidden");
  });
});
