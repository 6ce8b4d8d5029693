/**
 * A collection that dies at any of its writes and deletions, whole or in the middle of one, costs nothing later: everything
 * pinned is whole, and the next collection brings the store to the size of one that nothing disturbed.
 *
 * Death is played in this process (nothing reaches the disk any more), and real by SIGKILL to a process of its own: here at
 * some of the effects, with `LOOPRIG_SOAK=1` at each one.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { mintSessionId, parseWorkspacePath } from "../../src/core/index.js";
import type { FileSystem, SnapshotRef } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { CollectReport } from "../../src/workspace-store/index.js";
import { PlayedDeath } from "../failures/played-death.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";
import { bytesIn, copyState, effectsOf } from "./state-copies.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const playStride = soak ? 1 : 7;
const killStride = soak ? 3 : 60;

interface Scene {
  readonly place: Playground;
  /** A store with packs of garbage, packs of some use, and more small ones than are let stand. */
  readonly pristine: string;
  readonly kept: readonly { readonly ref: SnapshotRef; readonly lines: readonly string[] }[];
  readonly effects: number;
  readonly undisturbed: number;
}

const claim = { sessionId: mintSessionId(), command: "test" };

async function collectIn(dir: string, fileSystem?: FileSystem): Promise<CollectReport> {
  await using storage = await openLocalStorage({ dir, fileSystem });
  return await createWorkspaceStore(storage, { fileSystem }).collect({ claim, graceMs: 0 });
}

async function prepare(): Promise<Scene> {
  const place = new Playground("root", { quick: true });
  const pristine = path.join(place.dir, "pristine");
  const kept: { ref: SnapshotRef; lines: readonly string[] }[] = [];
  {
    await using storage = await openLocalStorage({ dir: pristine });
    const store = createWorkspaceStore(storage);
    for (let i = 0; i < 30; i++) {
      place.write({
        [`often`]: bytesOf({ size: 20_000, seed: i, fill: "random" }),
        [`d${i % 4}/text`]: `${i} `.repeat(3000),
        [`d${i % 3}/now-and-then`]: bytesOf({ size: 9_000, seed: 100 + (i >> 2), fill: "random" }),
      });
      const { ref } = await store.capture({ root: place.root, pin: { owner: "o", id: `c${i}` } });
      if (i % 3 === 2) kept.push({ ref, lines: listing(place.root) });
      else await store.unpin({ owner: "o", id: `c${i}` });
    }
    // Two packs that nobody needs.
    for (const seed of [201, 202]) {
      const bytes = bytesOf({ size: 30_000, seed, fill: "random" });
      await store.keep([{ path: parseWorkspacePath("a"), bytes, mode: 0o644 }]);
    }
  }
  const twin = copyState(place, pristine, "twin");
  let report: CollectReport | undefined;
  const { length: effects } = await effectsOf(async (fileSystem) => (report = await collectIn(twin, fileSystem)));
  expect(report?.freed.packs).toBeGreaterThan(report?.repacked.packs ?? 0);
  expect(report?.repacked.packs).toBeGreaterThan(2);
  return { place, pristine, kept, effects, undisturbed: bytesBelow(twin) };
}

/** What lies in the store, and what was never published in it. */
const bytesBelow = (state: string): number => bytesIn(state, ["blobs", "tmp"]);

async function expectWhole({ place, kept }: Scene, state: string, told: string): Promise<void> {
  await using storage = await openLocalStorage({ dir: state });
  const store = createWorkspaceStore(storage);
  expect((await store.verify()).damaged, told).toEqual([]);
  expect((await store.pins()).length, told).toBe(kept.length);
  const dest = path.join(place.dir, "dest");
  for (const { ref, lines } of soak ? kept : kept.slice(-1)) {
    await store.materialize(await store.open(ref), dest);
    expect(listing(dest), told).toEqual(lines);
    fs.rmSync(dest, { recursive: true });
  }
}

/** Lets `effects` effects pass, half of the next one if that is a write and `torn` is set, and nothing after it. */
const dyingAfter = (effects: number, torn: boolean): FileSystem =>
  new PlayedDeath(effects + 1, { torn }).world.fileSystem;

it("dying at an effect, or in the middle of a write, costs nothing later", { timeout: 600_000 }, async () => {
  const scene = await prepare();
  await using place = scene.place;
  let died = 0;
  for (const torn of soak ? [false, true] : [false]) {
    for (let effects = 0; effects < scene.effects; effects += playStride) {
      const told = `death after effect ${effects} of ${scene.effects}${torn ? ", torn" : ""}`;
      const state = copyState(place, scene.pristine, "state");
      await collectIn(state, dyingAfter(effects, torn)).catch(() => died++);
      await expectWhole(scene, state, told);
      await collectIn(state);
      await expectWhole(scene, state, told);
      // The process whose writes these were lives, since it only played dead.
      for (const name of fs.readdirSync(path.join(state, "tmp"))) fs.rmSync(path.join(state, "tmp", name));
      expect(bytesBelow(state), told).toBeLessThan(scene.undisturbed * 1.1);
    }
  }
  expect(died).toBeGreaterThan((scene.effects / playStride) * 0.9);
});

it(
  "a process killed at an effect leaves nothing the next collection does not remove",
  { timeout: 600_000 },
  async () => {
    const scene = await prepare();
    await using place = scene.place;
    for (let last = 3; last <= scene.effects; last += killStride) {
      const told = `killed at effect ${last} of ${scene.effects}`;
      const state = copyState(place, scene.pristine, "state");
      const { signal } = await startProcess("tests/processes/killed-collection.ts", [state, String(last)]).ended;
      expect(signal, told).toBe("SIGKILL");
      await expectWhole(scene, state, told);
      await collectIn(state);
      await expectWhole(scene, state, told);
      expect(fs.readdirSync(path.join(state, "tmp")), told).toEqual([]);
      expect(bytesBelow(state), told).toBeLessThan(scene.undisturbed * 1.1);
    }
  },
);
