/**
 * A real file system of a few megabytes that is full, page by page: with the root on it, with the store on it, with both. A
 * capture or a restore that finds no room fails with the tree as before, and both go on once there is some (U4, U6, K5).
 */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { directory, file, link, readTree } from "../../src/workspace/restore/testing/trees.js";
import type { Nodes } from "../../src/workspace/restore/testing/trees.js";
import { Playground } from "../playground.js";
import { Volume } from "../store/volume.js";
import { thorough } from "./places.js";
import { replaceTree } from "./scene.js";

const page = 4096;
const noise = (seed: number, size: number): string => {
  let state = seed;
  const bytes = Buffer.alloc(size);
  for (let i = 0; i < size; i++) bytes[i] = (state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff) >> 16;
  return bytes.toString("latin1");
};

const first: Nodes = {
  large: file(noise(1, 60_000)),
  "in/deep": file(noise(2, 9000), 0o600),
  in: directory(),
  link: link("large"),
  small: file("small"),
};
const second = (seed: number): Nodes => ({
  large: file(noise(seed, 50_000)),
  in: file("a file now"),
  link: directory(),
  "link/made": file(noise(seed + 1, 20_000)),
});

describe.each(["root", "store", "root and store"] as const)("on a full volume with the %s", (what) => {
  it("an undo and a capture end with the tree as before, and go on once there is room", async (context) => {
    using volume = Volume.mount(16);
    if (volume === undefined) return context.skip("this machine does not let the test mount a tmpfs");
    await using place = new Playground("root", { quick: true });
    const root = what === "store" ? place.root : path.join(volume.path, "root");
    const state = what === "root" ? place.stateDir : path.join(volume.path, "state");
    fs.mkdirSync(root, { recursive: true });
    await using storage = await openLocalStorage({ dir: state, reserveBytes: 0 });
    await using workspace = await openWorkspace({ root, storage, baseline: false, command: "test" });
    replaceTree(root, first);

    const outcomes = new Set<string>();
    for (let free = 0, seed = 10, done = 0; done < 2; free += thorough ? page : 7 * page, seed += 2) {
      const told = `${free} bytes free`;
      const changed = second(seed);
      await workspace.exec(["true"], { stdio: "ignore", onSpawn: () => replaceTree(root, changed) });
      // What is on no record yet has to be stored before it is written over: the capture needs room as well.
      fs.appendFileSync(path.join(root, "large"), noise(seed, 30_000), "latin1");
      const edited = readTree(root);
      volume.leaveFree(free);
      const receipt = await workspace
        .restore("c1", { exact: true, includeWindow: true })
        .catch((error: unknown) => error);
      const outcome = isLooprigError(receipt) ? receipt.code : (receipt as { result: string }).result;
      outcomes.add(outcome);
      if (outcome === "done") done++;
      else
        expect(["storage.full", "restore.failed", "restore.unsettled"], `${told}: ${String(receipt)}`).toContain(
          outcome,
        );
      if (outcome === "done") expect(readTree(root), told).toEqual(first);
      else if (outcome !== "restore.unsettled") expect(readTree(root), `${told}: ${outcome}`).toEqual(edited);
      volume.release();
      await workspace.checkpoint();
      expect(await workspace.unsettled(), told).toBeUndefined();
      if (outcome !== "done") await workspace.restore("c1", { exact: true, includeWindow: true });
      expect(readTree(root), `${told}: ${outcome}, then with room`).toEqual(first);
      const { damaged } = await createWorkspaceStore(storage).verify();
      expect(damaged, told).toEqual([]);
    }
    expect(outcomes.size).toBeGreaterThan(1);
  });
});
