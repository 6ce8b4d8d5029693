/**
 * Whatever stands in a directory is what comes back from its ref: any names, kinds, modes, targets and sizes, from a store
 * on disk opened anew. The root is a real file system's, the listing compared is made by plain system calls.
 */
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createMemoryStorage } from "../../src/storage/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { anyTree, writeAwkwardTree } from "./awkward-trees.js";
import { listing } from "./listing.js";

const numRuns = process.env["LOOPRIG_SOAK"] === "1" ? 1_000 : 20;

it("any tree comes back equal from a store opened anew, and another store gives it the same ref (G6)", async () => {
  await using place = new Playground("root", { quick: true });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(anyTree, async (tree) => {
      const root = path.join(place.dir, `root-${++run}`);
      fs.mkdirSync(root);
      writeAwkwardTree(root, tree);
      const captured = await createWorkspaceStore(await place.storage()).capture({ root });
      expect(captured).toMatchObject({ completeness: "complete", omitted: [] });

      await using reopened = await openLocalStorage({ dir: place.stateDir });
      const store = createWorkspaceStore(reopened);
      expect(await store.has(captured.ref)).toBe(true);
      const dest = path.join(place.dir, `dest-${run}`);
      await store.materialize(await store.open(captured.ref), dest);
      const present = listing(root);
      expect(listing(dest)).toEqual(present);
      expect(captured.files).toBe(present.filter((line) => / file [0-7]+ \d+ [0-9a-f]{16}$/.test(line)).length);

      const elsewhere = createWorkspaceStore(createMemoryStorage());
      expect((await elsewhere.capture({ root: dest })).ref).toBe(captured.ref);
      expect((await elsewhere.verify({ refs: [captured.ref] })).damaged).toEqual([]);
    }),
    { numRuns },
  );
});
