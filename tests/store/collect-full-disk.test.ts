/**
 * A volume without a byte left: captures fail once, with a typed error and before that while a reserve is left; the store
 * still opens, sessions can be let go of, and a collection frees what they kept, in the room of the reserve file alone.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { isLooprigError, mintSessionId } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";
import { Volume } from "./volume.js";

const claim = { sessionId: mintSessionId(), command: "test" };
const refusal = "this machine does not let the test mount a tmpfs";
const mebibyte = 1024 * 1024;
const random = (size: number, seed: number) => bytesOf({ size, seed, fill: "random" });
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no failure",
    (error: unknown) => error,
  );

it("below the reserve captures are refused, and what a restore is about to overwrite is still stored (U4)", async (context) => {
  using volume = Volume.mount(48);
  if (volume === undefined) return context.skip(refusal);
  await using place = new Playground("root", { quick: true });
  await using storage = await openLocalStorage({ dir: path.join(volume.path, "state"), reserveBytes: 8 * mebibyte });
  const store = createWorkspaceStore(storage);
  place.write({ a: random(mebibyte, 1) });
  const first = await store.capture({ root: place.root, pin: { owner: "o", id: "1" } });
  volume.leaveFree(8 * mebibyte);
  place.write({ b: random(mebibyte, 2) });
  const error = await failureOf(store.capture({ root: place.root, pin: { owner: "o", id: "2" } }));
  expect(isLooprigError(error, "storage.reserve") && error.details.wanted > error.details.free).toBe(true);
  expect((await store.pins()).map(({ id }) => id)).toEqual(["1"]);
  const protectedTree = await store.capture({ root: place.root, useReserve: true, pin: { owner: "o", id: "2" } });
  expect(await store.has(protectedTree.ref)).toBe(true);
  expect(await store.has(first.ref)).toBe(true);
});

it("with nothing left at all, letting go and collecting frees the disk (G2)", async (context) => {
  using volume = Volume.mount(48);
  if (volume === undefined) return context.skip(refusal);
  await using place = new Playground("root", { quick: true });
  const dir = path.join(volume.path, "state");
  let lines: readonly string[];
  {
    await using storage = await openLocalStorage({ dir });
    const store = createWorkspaceStore(storage);
    for (let i = 0; i < 6; i++) {
      place.write({ "shared/a": random(500_000, 0), [`only-${i}`]: random(mebibyte, 10 + i), "shared/i": String(i) });
      if (i > 0) fs.rmSync(place.at(`only-${i - 1}`));
      await store.capture({ root: place.root, pin: { owner: `s${i}`, id: "c1" } });
    }
    lines = listing(place.root);
  }
  volume.leaveFree(0);

  // Opened anew, as a command is: SQLite has no room for its log.
  await using storage = await openLocalStorage({ dir });
  const store = createWorkspaceStore(storage);
  place.write({ later: random(100_000, 99) });
  for (const useReserve of [false, true]) {
    volume.leaveFree(0);
    const error = await failureOf(store.capture({ root: place.root, useReserve }));
    expect(isLooprigError(error) ? error.code : error).toBe(useReserve ? "storage.full" : "storage.reserve");
  }
  expect((await store.verify()).damaged).toEqual([]);

  for (let i = 0; i < 5; i++) await store.unpin({ owner: `s${i}` });
  const dry = await store.collect({ claim, graceMs: 0, dryRun: true });
  const { freed } = await store.collect({ claim, graceMs: 0 });
  expect(freed.bytes).toBeGreaterThan(5 * mebibyte);
  expect(freed.bytes).toBeLessThanOrEqual(dry.freed.bytes);
  expect(volume.freeBytes()).toBeGreaterThan(3 * mebibyte);
  expect(fs.statSync(path.join(dir, "reserve")).size).toBeGreaterThan(mebibyte);
  const [left] = await store.pins();
  const dest = path.join(place.dir, "dest");
  fs.rmSync(place.at("later"));
  await store.materialize(await store.open(left?.refs[0] ?? expect.fail("nothing is pinned")), dest);
  expect(listing(dest)).toEqual(lines);
});
