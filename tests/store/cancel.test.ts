/**
 * A capture that is cancelled at any moment ends soon, gives no ref, and leaves nothing but content that the next
 * one uses (K5); and one that runs lets everybody else in its process run too.
 */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, isLooprigError, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { CaptureProgress, CaptureResult } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const pin = { owner: "o", id: "i" };

const busyFor = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

const filesBelow = (dir: string): string[] =>
  fs
    .readdirSync(dir, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(dir, name))
    .filter((file) => fs.statSync(file).isFile());
const bytesBelow = (dir: string): number => filesBelow(dir).reduce((sum, file) => sum + fs.statSync(file).size, 0);

describe("an abort at any of the calls of a capture", () => {
  it("gives no ref, and all that it leaves is used by the next (K5)", { timeout: 300_000 }, async () => {
    await using place = new Playground("root", { quick: true });
    for (let i = 0; i < 12; i++)
      place.write({ [`d${i % 3}/f${i}`]: bytesOf({ size: 20_000, seed: i, fill: "random" }) });
    place.write({ large: bytesOf({ size: 1_100_000, seed: 99, fill: "random" }) });

    let calls = 0;
    let abortAt = Infinity;
    let controller = new AbortController();
    const reason = new Error("enough");
    const fileSystem = interceptFileSystem(nodeFileSystem, () => {
      if (++calls !== abortAt) return;
      controller.abort(reason);
      // Ends the slice of work the capture is in, so that it looks at its signal at the next opportunity.
      busyFor(15);
    });
    const capture = async (state: string, signal?: AbortSignal): Promise<CaptureResult> => {
      await using storage = await openLocalStorage({ dir: state, fileSystem });
      calls = 0;
      return await createWorkspaceStore(storage, { fileSystem }).capture({ root: place.root, pin, signal });
    };

    const twin = path.join(place.dir, "twin");
    const { ref } = await capture(twin);
    const callsOfOne = calls;
    const undisturbed = bytesBelow(path.join(twin, "blobs"));
    expect(callsOfOne).toBeGreaterThan(60);

    let canceled = 0;
    const step = soak ? 1 : Math.ceil(callsOfOne / 10);
    for (let at = 1; at <= callsOfOne; at += step) {
      const told = `aborted at call ${at} of ${callsOfOne}`;
      const state = path.join(place.dir, `state-${at}`);
      controller = new AbortController();
      abortAt = at;
      const outcome = await capture(state, controller.signal).catch((error: unknown) => error);
      abortAt = Infinity;
      // Were each of them as slow as 5 ms, it would still answer within a second.
      expect(calls - at, told).toBeLessThan(200);
      await using storage = await openLocalStorage({ dir: state });
      const store = createWorkspaceStore(storage);
      if (!isLooprigError(outcome)) {
        // It had what it needed before it looked at the signal again.
        expect((outcome as CaptureResult).ref, told).toBe(ref);
      } else {
        canceled++;
        expect(outcome, told).toMatchObject({ code: "capture.canceled", cause: reason, retryable: true });
        // It may have been at its very last look: what it pinned by then is whole, and what the next one pins again.
        for (const { refs } of await store.pins()) expect(refs, told).toEqual([ref]);
        expect((await store.verify()).damaged, told).toEqual([]);
        expect(fs.readdirSync(path.join(state, "tmp")), told).toEqual([]);
      }
      const next = await store.capture({ root: place.root, pin });
      expect(next.ref, told).toBe(ref);
      expect((await store.verify()).damaged, told).toEqual([]);
      // What was stored is not stored again: all there is comes to what one capture stores.
      expect(bytesBelow(path.join(state, "blobs")), told).toBeLessThan(undisturbed * 1.1);
      fs.rmSync(state, { recursive: true });
    }
    expect(canceled).toBeGreaterThan(3);
    expect(listing(place.root)).toHaveLength(16);
  });

  it("again and again goes on from where it was: each attempt needs less, and one gets through", async () => {
    await using place = new Playground("root", { quick: true });
    for (let i = 0; i < 40; i++) place.write({ [`f${i}`]: bytesOf({ size: 30_000, seed: i, fill: "random" }) });
    const later = (): number => Date.now() + 60_000;
    const storage = await place.storage();
    let reads = 0;
    let controller = new AbortController();
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name === "read" && ++reads === 20) controller.abort();
      if (reads >= 20) busyFor(15);
    });
    const read: number[] = [];
    for (;;) {
      controller = new AbortController();
      reads = 0;
      const store = createWorkspaceStore(storage, { fileSystem, now: later });
      const outcome = await store
        .capture({ root: place.root, signal: controller.signal })
        .catch((error: unknown) => error);
      read.push(reads);
      if (!isLooprigError(outcome, "capture.canceled")) {
        expect(outcome).toMatchObject({ completeness: "complete", files: 40 });
        break;
      }
      expect(read.length, `reads: ${read.join(", ")}`).toBeLessThan(10);
    }
    expect(read.length).toBeGreaterThan(1);
  });
});

describe("while a capture runs", () => {
  it("nobody in its process waits for more than 50 ms of its calls", async () => {
    await using place = new Playground("root", { quick: true });
    for (let i = 0; i < 120; i++) place.write({ [`d${i % 20}/f${i}`]: `${i} `.repeat(100) });
    place.write({ large: bytesOf({ size: 2_000_000, seed: 1, fill: "random" }) });
    // Each call is made to last as long; then calls between two turns of the loop are a measure of time.
    const callMs = 0.4;
    let sinceTurn = 0;
    let longest = 0;
    const fileSystem = interceptFileSystem(nodeFileSystem, () => {
      busyFor(callMs);
      longest = Math.max(longest, ++sinceTurn);
    });
    let running = true;
    let turns = 0;
    const turn = (): void => {
      sinceTurn = 0;
      turns++;
      if (running) setImmediate(turn);
    };
    setImmediate(turn);
    await createWorkspaceStore(await place.storage(), { fileSystem }).capture({ root: place.root });
    running = false;
    expect(turns).toBeGreaterThan(10);
    expect(longest * callMs).toBeLessThan(50);
  });

  it("its progress is told, and only grows", async () => {
    await using place = new Playground("root", { quick: true });
    for (let i = 0; i < 100; i++) place.write({ [`d${i % 20}/f${i}`]: `${i} `.repeat(500) });
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name === "read" || name === "lstat") busyFor(3);
    });
    const told: CaptureProgress[] = [];
    const { bytesRead, bytesStored } = await createWorkspaceStore(await place.storage(), { fileSystem }).capture({
      root: place.root,
      onProgress: (progress) => told.push(progress),
    });
    expect(told.length).toBeGreaterThan(2);
    for (const [i, { filesSeen, bytesRead: read, bytesStored: stored }] of told.entries()) {
      const before = told[i - 1] ?? { filesSeen: 0, bytesRead: 0, bytesStored: 0 };
      expect(filesSeen).toBeGreaterThanOrEqual(before.filesSeen);
      expect(read).toBeGreaterThanOrEqual(before.bytesRead);
      expect(stored).toBeGreaterThanOrEqual(before.bytesStored);
      // Directories may count, each once.
      expect(filesSeen).toBeLessThanOrEqual(121);
      expect(read).toBeLessThanOrEqual(bytesRead);
      expect(stored).toBeLessThanOrEqual(bytesStored);
    }
  });
});
