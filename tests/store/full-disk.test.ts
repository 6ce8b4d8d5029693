/**
 * A store on a volume that is full to the brim, page by page: from no room at all, over room for the pack but not for its
 * index, to room for everything. A capture that fails is one typed error, leaves no ref, no pin and no litter, and costs what
 * was captured before nothing; the same store goes on once there is room.
 */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import type { SnapshotRef } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { CaptureResult, WorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { bytesOf } from "./awkward-trees.js";
import { listing } from "./listing.js";
import { Volume } from "./volume.js";

const page = 4096;
const step = process.env["LOOPRIG_SOAK"] === "1" ? page : 3 * page;

describe("on a full volume", () => {
  it("a capture fails with a typed error wherever the space ends, and the store goes on once there is some", async (context) => {
    using volume = Volume.mount(32);
    if (volume === undefined) return context.skip("this machine does not let the test mount a tmpfs");
    await using place = new Playground("root", { quick: true });
    const state = path.join(volume.path, "state");
    await using storage = await openLocalStorage({ dir: state });
    const store = createWorkspaceStore(storage);
    place.write({ "kept/a": "a\n".repeat(100), b: "b" });
    const first = await store.capture({ root: place.root, pin: { owner: "o", id: "first" } });
    const before = listing(place.root);

    const expectFirstWhole = async (told: string): Promise<void> => {
      // By the store value that met the failure, and by one that knows nothing of it.
      for (const each of [store, createWorkspaceStore(storage)]) {
        expect(
          (await each.pins()).map(({ id }) => id),
          told,
        ).toEqual(["first"]);
        expect((await each.verify()).damaged, told).toEqual([]);
      }
      expect(await restored(createWorkspaceStore(storage), first.ref, place), told).toEqual(before);
      expect(fs.readdirSync(path.join(state, "tmp")), told).toEqual([]);
    };

    // What a capture of this takes is some 100 KiB; each round takes other bytes, so that none is there already.
    let failures = 0;
    let seed = 100;
    for (let free = 0; ; free += step) {
      const told = `with ${free} bytes free`;
      place.write({ "new/c": bytesOf({ size: 60_000, seed: seed++, fill: "random" }), "new/d": `d ${seed}` });
      const present = listing(place.root);
      volume.leaveFree(free);
      const captured = await store
        .capture({ root: place.root, pin: { owner: "o", id: "second" }, useReserve: true })
        .catch((error: unknown) => error);
      if (isLooprigError(captured)) {
        failures++;
        expect(captured.code, told).toBe("storage.full");
        await expectFirstWhole(told);
        // Nothing was switched off: the same again fails the same way, or finds its packs there and needs no room.
        const once = await store.capture({ root: place.root }).catch((error: unknown) => error);
        if (isLooprigError(once)) expect(once.code, told).toMatch(/^storage\.(full|reserve)$/);
        else expect(await restored(store, (once as CaptureResult).ref, place), told).toEqual(present);
        volume.release();
        const again = await store.capture({ root: place.root });
        expect(await restored(store, again.ref, place), told).toEqual(present);
        continue;
      }
      const { ref } = captured as CaptureResult;
      expect(await restored(createWorkspaceStore(storage), ref, place), told).toEqual(present);
      break;
    }
    expect(failures).toBeGreaterThan(3);
  });
});

async function restored(store: WorkspaceStore, ref: SnapshotRef, place: Playground): Promise<readonly string[]> {
  const dest = path.join(place.dir, "dest");
  await store.materialize(await store.open(ref), dest);
  const lines = listing(dest);
  fs.rmSync(dest, { recursive: true });
  return lines;
}
