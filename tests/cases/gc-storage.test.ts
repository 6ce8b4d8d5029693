/** What the store takes follows what it keeps: it grows with what changed, gives back what is let go, and a full disk is no trap. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, isLooprigError, mintSessionId, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem, SnapshotRef } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { WorkspaceStore } from "../../src/workspace-store/index.js";
import { openWorkspace, readWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { bytesOf } from "../store/awkward-trees.js";
import { Volume } from "../store/volume.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const claim = { sessionId: mintSessionId(), command: "test" };
const KiB = 1024;
const random = (size: number, seed: number): Buffer => bytesOf({ size, seed, fill: "random" });

/** Bytes of the files below some directories. */
function bytesBelow(...dirs: readonly string[]): number {
  return dirs
    .flatMap((dir) => fs.readdirSync(dir, { recursive: true, encoding: "utf8" }).map((name) => path.join(dir, name)))
    .map((file) => fs.statSync(file))
    .reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
}
const blobsOf = (state: string): string => path.join(state, "blobs");

async function restored(
  store: WorkspaceStore,
  ref: SnapshotRef,
  place: Playground,
): Promise<ReturnType<typeof listTree>> {
  const dest = fs.mkdtempSync(path.join(place.dir, "out-"));
  await store.materialize(await store.open(ref), dest);
  return listTree(dest);
}

describe("C060 captures and maintenance that are killed over and over", () => {
  /** Lets so many effects pass, and nothing after them, as a process that is killed. */
  function dyingAfter(effects: number): FileSystem {
    let count = 0;
    return interceptFileSystem(nodeFileSystem, ({ name, effect }) => {
      if (name === "close" || count < effects) {
        if (effect) count++;
        return;
      }
      if (effect) count = Infinity;
      if (count === Infinity) throw new Error("played death");
    });
  }

  it("leave, once one of them finishes, a store as large as one that nothing disturbed, and every capture whole", async () => {
    await using place = new Playground("root", { quick: true });
    const twin = path.join(place.dir, "twin");
    const state = path.join(place.dir, "state");
    const kept: { readonly ref: SnapshotRef; readonly tree: ReturnType<typeof listTree> }[] = [];
    const rounds = soak ? 50 : 12;
    const capture = async (dir: string, id: string, fileSystem?: FileSystem): Promise<SnapshotRef> => {
      await using storage = await openLocalStorage({ dir, fileSystem });
      return (
        await createWorkspaceStore(storage, { fileSystem }).capture({ root: place.root, pin: { owner: "s", id } })
      ).ref;
    };
    const maintain = async (dir: string, fileSystem?: FileSystem): Promise<void> => {
      await using storage = await openLocalStorage({ dir, fileSystem });
      await createWorkspaceStore(storage, { fileSystem }).collect({ claim, graceMs: 0 });
    };
    const drop = async (dir: string, id: string): Promise<void> => {
      await using storage = await openLocalStorage({ dir });
      await createWorkspaceStore(storage).unpin({ owner: "s", id });
    };
    let died = 0;
    for (let round = 0; round < rounds; round++) {
      place.write({ [`f${round % 5}`]: random(60_000, round), steady: random(40_000, 999) });
      const id = `c${round}`;
      // Other points of the work in each round; the numbers are spread and the same in every run.
      for (const point of [7, 19, 31].map((step) => 3 + ((round * step + step) % 40))) {
        await capture(state, id, dyingAfter(point)).catch(() => died++);
        await maintain(state, dyingAfter(point)).catch(() => died++);
      }
      const ref = await capture(state, id);
      expect(await capture(twin, id)).toBe(ref);
      if (round % 3 === 1) {
        // Half of the trees are let go again.
        await drop(state, id);
        await drop(twin, id);
      } else kept.push({ ref, tree: place.tree() });
    }
    expect(died).toBeGreaterThan(rounds * 2);
    await maintain(state);
    await maintain(twin);
    // What was never published lies elsewhere, and is swept once its writer's process is gone, which here it is not.
    expect(bytesBelow(blobsOf(state))).toBeLessThan(bytesBelow(blobsOf(twin)) * 1.1);
    await using storage = await openLocalStorage({ dir: state });
    const store = createWorkspaceStore(storage);
    expect((await store.verify()).damaged).toEqual([]);
    for (const { ref, tree } of kept) expect(await restored(store, ref, place)).toEqual(tree);
  });
});

describe("C062 maintenance on a disk that has hardly any room", () => {
  it("takes no more than its bound beside the store, frees what is garbage, and everything kept restores", async (context) => {
    using volume = Volume.mount(24);
    if (volume === undefined) return context.skip("this machine does not let the test mount a tmpfs");
    await using place = new Playground("root", { quick: true });
    const state = path.join(volume.path, "state");
    let least = Infinity;
    // Looked at before every call, so that no use of space between two of them is missed.
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
      if (effect) least = Math.min(least, volume.freeBytes());
    });
    await using storage = await openLocalStorage({ dir: state, fileSystem, reserveBytes: 0 });
    const store = createWorkspaceStore(storage);
    for (let i = 0; i < 20; i++) place.write({ [`f${i}`]: random(400 * KiB, i) });
    await store.capture({ root: place.root, pin: { owner: "old", id: "c1" } });
    // Every second file stays in use, so each pack is half garbage.
    for (let i = 0; i < 20; i += 2) fs.rmSync(place.at(`f${i}`));
    const { ref } = await store.capture({ root: place.root, pin: { owner: "kept", id: "c1" } });
    await store.unpin({ owner: "old" });
    const bytes = bytesBelow(blobsOf(state));
    const maxExtraBytes = 1024 * KiB;
    volume.leaveFree(Math.floor(bytes * 0.2));
    const free = volume.freeBytes();
    least = free;
    const report = await store.collect({ claim, graceMs: 0, maxExtraBytes });
    expect(free - least).toBeLessThanOrEqual(maxExtraBytes + 64 * KiB);
    expect(report.extraBytes).toBeLessThanOrEqual(maxExtraBytes);
    expect(await restored(store, ref, place)).toEqual(place.tree());
    expect(await store.verify()).toMatchObject({ damaged: [] });
    // With the default bound, or given room, all of it comes back.
    volume.release();
    await store.collect({ claim, graceMs: 0 });
    expect(bytesBelow(blobsOf(state))).toBeLessThan(bytes * 0.65);
    expect(await restored(createWorkspaceStore(storage), ref, place)).toEqual(place.tree());
  });
});

describe("C066 ten sessions that share nine tenths of their content", () => {
  it("nine of them let go give their space back, as a dry run and a listing by session said they would", async () => {
    await using place = new Playground("root", { quick: true });
    const storage = await place.storage();
    const store = createWorkspaceStore(storage);
    place.write({ "shared/a": random(900 * KiB, 1) });
    const refs: SnapshotRef[] = [];
    for (let i = 0; i < 10; i++) {
      place.write({ own: random(100 * KiB, 100 + i) });
      refs.push((await store.capture({ root: place.root, pin: { owner: `session-${i}`, id: "c1" } })).ref);
    }
    const tenth = place.tree();
    const { owners, bytes } = await store.stats();
    expect(owners.map(({ owner }) => owner)).toEqual(Array.from({ length: 10 }, (_, i) => `session-${i}`));
    for (const each of owners) {
      expect(each.bytes).toBeGreaterThan(1000 * KiB);
      expect(each.ownBytes).toBeGreaterThan(100 * KiB);
      expect(each.ownBytes).toBeLessThan(110 * KiB);
    }
    const before = bytesBelow(blobsOf(place.stateDir));
    expect(bytes.total).toBeGreaterThan(before * 0.9);
    expect(bytes.garbage).toBe(0);

    for (let i = 0; i < 9; i++) await store.unpin({ owner: `session-${i}` });
    const foreseen = await store.collect({ claim, graceMs: 0, dryRun: true });
    expect(bytesBelow(blobsOf(place.stateDir))).toBeGreaterThan(before * 0.9);
    const done = await store.collect({ claim, graceMs: 0 });
    const after = bytesBelow(blobsOf(place.stateDir));
    // Never more than it said, and about that.
    expect(done.freed.bytes).toBeLessThanOrEqual(foreseen.freed.bytes);
    expect(before - after).toBeGreaterThan(done.freed.bytes * 0.9);
    // What the tenth needs and a tenth of that, and the directories, indexes and pins beside the content.
    expect(after).toBeLessThan(1000 * KiB * 1.1 + 16 * KiB);
    expect(await restored(createWorkspaceStore(storage), refs[9] as SnapshotRef, place)).toEqual(tenth);
  });
});

describe("C068 a hundred turns that each change a kilobyte", () => {
  it("grow the store by what they changed and the directories above it; turns without a change add nothing", async () => {
    await using place = new Playground("root", { quick: true });
    for (let i = 0; i < 400; i++) place.write({ [`src/d${i % 20}/f${i}`]: random(4 * KiB, i) });
    const store = createWorkspaceStore(await place.storage());
    const size = (): number => bytesBelow(blobsOf(place.stateDir));
    const capture = async (turn: number) => store.capture({ root: place.root, pin: { owner: "s", id: `c${turn}` } });
    await capture(0);
    const first = size();
    for (let turn = 1; turn <= 100; turn++) {
      const file = place.at(`src/d${turn % 20}/f${turn}`);
      const bytes = fs.readFileSync(file);
      random(KiB, 1000 + turn).copy(bytes);
      fs.writeFileSync(file, bytes);
      await capture(turn);
    }
    // The file, three directories of at most 60 bytes an entry, the frame of a pack and its index, and the pin.
    expect(size() - first).toBeLessThan(100 * (4 * KiB + 42 * 60 + 2 * KiB));
    const grown = size();
    for (let turn = 0; turn < 20; turn++) {
      expect(await store.capture({ root: place.root })).toMatchObject({ bytesStored: 0 });
    }
    expect(size()).toBe(grown);
  });

  it("of a log that is appended to cost its last piece, and not the log", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ log: random(5 * 1024 * KiB + 100, 7) });
    const store = createWorkspaceStore(await place.storage());
    await store.capture({ root: place.root });
    for (let turn = 0; turn < 5; turn++) {
      fs.appendFileSync(place.at("log"), random(KiB, turn));
      const { bytesStored } = await store.capture({ root: place.root });
      // One piece of at most a mebibyte, which is all but empty here, and the list of pieces.
      expect(bytesStored).toBeLessThan(10 * KiB);
    }
  });
});

describe("C069 a disk without a byte left", () => {
  it("fails a checkpoint, a command and a restore once each, and loses neither the tree nor anything that was captured", async (context) => {
    using volume = Volume.mount(32);
    if (volume === undefined) return context.skip("this machine does not let the test mount a tmpfs");
    await using place = new Playground("root", { quick: true });
    place.write({ "a.txt": "first\n", "data.bin": random(200 * KiB, 1) });
    let effects = 0;
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
      if (effect) effects++;
    });
    const dir = path.join(volume.path, "state");
    await using storage = await openLocalStorage({ dir, fileSystem });
    const workspace = await openWorkspace(
      { root: place.root, storage, baseline: false, command: "test" },
      { fileSystem },
    );
    const first = await workspace.checkpoint();
    const firstTree = place.tree();
    place.write({ "a.txt": "second\n", "data.bin": random(200 * KiB, 2), "more.bin": random(300 * KiB, 3) });
    const present = place.tree();
    volume.leaveFree(0);

    for (const attempt of [
      () => workspace.checkpoint(),
      () => workspace.checkpoint(),
      () => workspace.restore(first.ref, { exact: true }),
    ]) {
      effects = 0;
      const error: unknown = await attempt().catch((caught: unknown) => caught);
      expect(isLooprigError(error) ? error.code : error).toMatch(/^storage\.(full|reserve)$|^restore\.unprotected$/);
      // Some dozens of calls, not a loop of them.
      expect(effects).toBeLessThan(300);
      expect(place.tree()).toEqual(present);
    }

    await using view = await readWorkspace({ root: place.root, storage });
    const history = await view.history();
    expect(history.damaged).toEqual([]);
    expect(history.checkpoints.map(({ ref }) => ref)).toEqual([first.ref]);
    expect((await createWorkspaceStore(storage).verify()).damaged).toEqual([]);

    volume.release();
    const second = await workspace.checkpoint();
    await workspace.restore(first.ref, { exact: true });
    expect(place.tree()).toEqual(firstTree);
    await workspace.restore(second.ref, { exact: true });
    expect(place.tree()).toEqual(present);
    await workspace.close();
  });
});
