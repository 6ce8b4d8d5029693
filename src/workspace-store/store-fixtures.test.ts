/**
 * Stores of every version are read for ever. The files in `fixtures/` were written by `scripts/store-fixture.mjs` of the
 * code whose format they are named for, and are never made again; a change that breaks one is a change of the format.
 */
import { hash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mintSessionId, parseRef } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import { createWorkspaceStore } from "./store.js";
import { temporaryDirectory } from "./testing/tree-on-disk.js";

interface Fixture {
  /** `files`: path in hex, then permission bits and the SHA-256 of the bytes, or "link" and its target. */
  readonly pins: readonly {
    readonly owner: string;
    readonly id: string;
    readonly ref: string;
    readonly files: readonly (readonly [string, string, string])[];
  }[];
  readonly blobs: Readonly<Record<string, string>>;
}

const day = 24 * 60 * 60 * 1000;
const claim = { sessionId: mintSessionId(), command: "test" };
let base: ReturnType<typeof temporaryDirectory>;
let storage: Storage;
beforeEach(() => {
  base = temporaryDirectory();
  storage = createMemoryStorage();
});
afterEach(async () => {
  await storage.close();
  base.dispose();
});

async function load(version: string): Promise<Fixture> {
  const file = new URL(`fixtures/store-${version}.json`, import.meta.url);
  const fixture = JSON.parse(fs.readFileSync(file, "utf8")) as Fixture;
  for (const [key, bytes] of Object.entries(fixture.blobs))
    await storage.blobs.put(key, [Buffer.from(bytes, "base64")]);
  return fixture;
}

function listing(root: string): readonly (readonly [string, string, string])[] {
  const found: [string, string, string][] = [];
  const visit = (dir: Buffer, below: string): void => {
    for (const name of fs.readdirSync(dir, { encoding: "buffer" }).sort((a, b) => Buffer.compare(a, b))) {
      const full = Buffer.concat([dir, Buffer.from("/"), name]);
      const shown = below + name.toString("hex");
      const stats = fs.lstatSync(full);
      if (stats.isDirectory()) visit(full, `${shown}/`);
      else if (stats.isSymbolicLink()) found.push([shown, "link", fs.readlinkSync(full)]);
      else found.push([shown, (stats.mode & 0o777).toString(8), hash("sha256", fs.readFileSync(full))]);
    }
  };
  visit(Buffer.from(root), "");
  return found;
}

// "v1-patches" is version 1 as the releases write it; before them deltas had another codec, and small packs had indexes.
describe.each(["v0", "v1", "v1-patches"])("a store of %s", (version) => {
  it("opens, verifies, restores every tree, and is the same tree to a capture", async () => {
    const { pins } = await load(version);
    const store = createWorkspaceStore(storage);
    expect(await store.pins()).toEqual(pins.map(({ owner, id, ref }) => ({ owner, id, refs: [ref] })));
    expect((await store.verify()).damaged).toEqual([]);
    for (const { id, ref, files } of pins) {
      const dest = path.join(base.path, id);
      const tree = await store.open(parseRef(ref));
      await store.materialize(tree, dest);
      expect(listing(dest)).toEqual(files);
      // What was left out is part of the tree; with it, a capture of what was restored has nothing to store.
      fs.writeFileSync(path.join(dest, "build"), "left out again");
      const again = await store.capture({ root: dest, rules: { exclude: ["/build"] } });
      expect({ ref: again.ref, bytesStored: again.bytesStored }).toEqual({ ref, bytesStored: 0 });
    }
  });

  it("is collected like one of today", async () => {
    const { pins } = await load(version);
    const store = createWorkspaceStore(storage, { now: () => Date.now() + 100_000 * day });
    await store.unpin({ owner: "session-a" });
    const { freed } = await store.collect({ claim, graceMs: 0, fill: 1 });
    expect(freed.bytes).toBeGreaterThan(0);
    expect((await store.stats()).objects.garbage).toBe(0);
    const [, left] = pins;
    const dest = path.join(base.path, "left");
    await store.materialize(await store.open(parseRef(left?.ref ?? "")), dest);
    expect(listing(dest)).toEqual(left?.files);
  });
});

it("what a collection of version 1 condemned is condemned, and freed when its time has come", async () => {
  const { blobs } = await load("v1");
  const [list] = Object.keys(blobs).filter((key) => key.startsWith("condemned/"));
  const markedAt = Number(/^condemned\/(\d{15})-/.exec(list ?? "")?.[1]);
  const store = createWorkspaceStore(storage, { now: () => markedAt + day });
  const dry = await store.collect({ claim, dryRun: true, fill: 1 });
  expect(dry.freed.objects).toBeGreaterThan(0);
  expect({ ...(await store.collect({ claim, fill: 1 })), dryRun: true }).toEqual(dry);
  expect((await store.verify()).damaged).toEqual([]);
});

it.each(["packs/", "index/", "roots/", "condemned/"])(
  "a later version of %s is refused and left as it is",
  async (prefix) => {
    const { blobs } = await load("v1");
    const [key = ""] = Object.keys(blobs).filter((each) => each.startsWith(prefix));
    const later = Buffer.from(blobs[key] ?? "", "base64");
    later[11] = 2;
    Buffer.from(hash("sha256", later.subarray(0, -32)), "hex").copy(later, later.length - 32);
    if (prefix === "packs/") {
      // Without its index the pack itself is looked at.
      await storage.blobs.delete(key.replace("packs/", "index/"));
      const renamed = `packs/${later.subarray(-32).toString("hex")}`;
      await storage.blobs.delete(key);
      await storage.blobs.put(renamed, [later]);
    } else {
      await storage.blobs.delete(key);
      await storage.blobs.put(key, [later]);
    }
    const store = createWorkspaceStore(storage);
    const before = await keys();
    const code = prefix === "condemned/" ? "snapshot.condemned_unreadable" : "storage.unsupported_version";
    await expect(store.collect({ claim, graceMs: 0 })).rejects.toMatchObject({ code });
    expect(await keys()).toEqual(before);
  },
);

async function keys(): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { key } of storage.blobs.list("")) found.push(key);
  return found;
}
