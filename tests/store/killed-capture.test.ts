/**
 * A capture that dies at any of its writes, whole or in the middle of one, costs nothing later: what was captured before
 * still verifies, the next capture is right and uses what was stored, and the store is as large as if nothing had happened.
 *
 * Death is played in this process at every effect (nothing reaches the disk any more), and real at every thirtieth:
 * SIGKILL to a process of its own. `LOOPRIG_SOAK=1` kills at each one, and plays death in a tree of several packs.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { FileSystem, SnapshotRef } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { PlayedDeath } from "../failures/played-death.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";
import { bytesIn, copyState, effectsOf, turningPoints } from "./state-copies.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const killStride = soak ? 1 : 30;

interface Scene {
  readonly place: Playground;
  /** The state before the capture that dies: one capture of an older tree in it. */
  readonly pristine: string;
  readonly before: { readonly ref: SnapshotRef; readonly lines: readonly string[] };
  readonly after: { readonly ref: SnapshotRef; readonly lines: readonly string[] };
  /** What the capture does on the disk, by name. */
  readonly effects: readonly string[];
  /** Bytes of the store after a capture that nothing disturbed. */
  readonly undisturbed: number;
}

async function captureInto(state: string, root: string, id: string, fileSystem?: FileSystem): Promise<SnapshotRef> {
  await using storage = await openLocalStorage({ dir: state, fileSystem });
  return (await createWorkspaceStore(storage, { fileSystem }).capture({ root, pin: { owner: "killed", id } })).ref;
}

/** `several`: what is new fills several packs. */
async function prepare({ several = false } = {}): Promise<Scene> {
  const place = new Playground("root", { quick: true });
  place.write({ "a.txt": "first\n", "d/b.txt": "b\n".repeat(500), "d/e/c.bin": bytesOf(random(70_000, 1)) });
  const pristine = path.join(place.dir, "pristine");
  const before = { ref: await captureInto(pristine, place.root, "c0"), lines: listing(place.root) };
  place.write({ "a.txt": "second\n", "new/f": bytesOf(random(300_000, 2)), "d/e/c.bin": "small now\n" });
  fs.chmodSync(place.at("d/b.txt"), 0o700);
  if (several) for (let i = 0; i < 20; i++) place.write({ [`large/${i}`]: bytesOf(random(1024 * 1024, 10 + i)) });

  const twin = copyState(place, pristine, "twin");
  let ref: SnapshotRef | undefined;
  const effects = await effectsOf(async (fileSystem) => (ref = await captureInto(twin, place.root, "c1", fileSystem)));
  const after = { ref: ref as SnapshotRef, lines: listing(place.root) };
  expect(after.ref).not.toBe(before.ref);
  expect(effects.length).toBeGreaterThan(20);
  return { place, pristine, before, after, effects, undisturbed: bytesBelow(twin) };
}

const random = (size: number, seed: number) => ({ size, seed, fill: "random" }) as const;

/** What captures have written: packs, indexes, pins, and whatever was never published. */
const bytesBelow = (state: string): number => bytesIn(state, ["blobs", "tmp", "spool"]);

/** What the next ones find in a store whose capture died. */
async function expectSound({ place, before, after, undisturbed }: Scene, state: string, told: string): Promise<void> {
  {
    await using storage = await openLocalStorage({ dir: state });
    const store = createWorkspaceStore(storage);
    expect((await store.verify()).damaged, told).toEqual([]);
    expect(await store.has(before.ref), told).toBe(true);
    const captured = await store.capture({ root: place.root, pin: { owner: "killed", id: "c1" } });
    expect(captured.ref, told).toBe(after.ref);
  }
  // Files that were never published are swept a day later, when no writer can be at them any more.
  const longAgo = Date.now() / 1000 - 2 * 24 * 60 * 60;
  for (const name of fs.readdirSync(path.join(state, "tmp")))
    fs.utimesSync(path.join(state, "tmp", name), longAgo, longAgo);
  await using storage = await openLocalStorage({ dir: state });
  const store = createWorkspaceStore(storage);
  expect((await store.verify()).damaged, told).toEqual([]);
  for (const { ref, lines } of [before, after]) {
    const dest = path.join(place.dir, "dest");
    await store.materialize(await store.open(ref), dest);
    expect(listing(dest), told).toEqual(lines);
    fs.rmSync(dest, { recursive: true });
  }
  expect(bytesBelow(state), told).toBeLessThan(undisturbed * 1.1);
}

/** Lets `effects` effects pass, half of the next one if that is a write and `torn` is set, and nothing after it. */
const dyingAfter = (effects: number, torn: boolean): FileSystem =>
  new PlayedDeath(effects + 1, { torn }).world.fileSystem;

it("dying at any effect, or in the middle of any write, costs nothing later", { timeout: 600_000 }, async () => {
  const scene = await prepare();
  await using place = scene.place;
  let died = 0;
  for (const torn of [false, true]) {
    for (let effects = 0; effects < scene.effects.length; effects++) {
      const told = `death after effect ${effects} of ${scene.effects.length}${torn ? ", torn" : ""}`;
      const state = copyState(place, scene.pristine, "state");
      const capturing = captureInto(state, place.root, "c1", dyingAfter(effects, torn));
      // A stat index that cannot be written is no failure, and it is the last thing a capture does.
      await capturing.catch(() => died++);
      await expectSound(scene, state, told);
      if (torn && !soak) effects += 2;
    }
  }
  expect(died).toBeGreaterThan(scene.effects.length);
});

it.runIf(soak)(
  "dying where one kind of effect gives way to another, while several packs are written, costs nothing later",
  { timeout: 3_600_000 },
  async () => {
    const scene = await prepare({ several: true });
    await using place = scene.place;
    for (const effects of turningPoints(scene.effects)) {
      const state = copyState(place, scene.pristine, "state");
      await captureInto(state, place.root, "c1", dyingAfter(effects, true)).catch(() => undefined);
      await expectSound(scene, state, `death after effect ${effects} of ${scene.effects.length}`);
    }
  },
);

it("a process killed at an effect of its capture costs nothing later", { timeout: 600_000 }, async () => {
  const scene = await prepare();
  await using place = scene.place;
  for (let last = 1; last <= scene.effects.length; last += killStride) {
    const state = copyState(place, scene.pristine, "state");
    const { signal } = await startProcess("tests/processes/killed-capture.ts", [place.root, state, String(last)]).ended;
    expect(signal, `effect ${last} of ${scene.effects.length}`).toBe("SIGKILL");
    await expectSound(scene, state, `killed at effect ${last} of ${scene.effects.length}`);
  }
});

it("captures that are killed again and again leave no more than one that was not", { timeout: 600_000 }, async () => {
  const scene = await prepare();
  await using place = scene.place;
  // One store for all of them: each finds what those before it left.
  const state = copyState(place, scene.pristine, "state");
  for (let effects = 0; effects < scene.effects.length; effects += soak ? 1 : 3) {
    await captureInto(state, place.root, "c1", dyingAfter(effects, effects % 2 === 0)).catch(() => undefined);
  }
  await expectSound(scene, state, "after all of them");
});

it(
  "dying at any effect, with an edit before the next capture, makes nothing be stored twice",
  { timeout: 600_000 },
  async () => {
    const scene = await prepare();
    await using place = scene.place;
    const edit = (): void => place.write({ "d/b.txt": "b, edited while nobody looked\n" });
    const original = fs.readFileSync(place.at("d/b.txt"));
    for (let effects = 0; effects < scene.effects.length; effects += soak ? 1 : 4) {
      place.write({ "d/b.txt": original });
      const state = copyState(place, scene.pristine, "state");
      await captureInto(state, place.root, "c1", dyingAfter(effects, false)).catch(() => undefined);
      edit();
      await captureInto(state, place.root, "c1");
      // What was never published is swept when it is old; it is not what this looks at.
      fs.rmSync(path.join(state, "tmp"), { recursive: true });
      fs.mkdirSync(path.join(state, "tmp"));
      expect(bytesBelow(state), `death after effect ${effects} of ${scene.effects.length}`).toBeLessThan(
        scene.undisturbed * 1.1,
      );
    }
  },
);
