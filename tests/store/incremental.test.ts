/**
 * What a capture skips because it knows it already never shows in what it says: after any edits the capture that builds on
 * earlier ones equals one that knows nothing, ref by ref, and every ref of the way still restores what stood there.
 */
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SnapshotRef } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { anyTree, writeAwkwardTree } from "./awkward-trees.js";
import { anyEdit, applyEdit } from "./edit-scripts.js";
import { listing } from "./listing.js";

const numRuns = process.env["LOOPRIG_SOAK"] === "1" ? 300 : 8;
/** Edits, and who captures then: one of the store values that last, or a new one; several of them at once. */
const turn = fc.record({
  edits: fc.array(anyEdit, { minLength: 1, maxLength: 4 }),
  by: fc.uniqueArray(fc.constantFrom("first", "second", "new"), { minLength: 1, maxLength: 3 }),
});
const turns = fc.array(turn, { minLength: 1, maxLength: 5 });

/** Passes when the file system's clock has moved on, so that no write after it bears a stamp from before it. */
function nextTick(dir: string): void {
  const probe = path.join(dir, "tick");
  const stamp = (): bigint => {
    fs.writeFileSync(probe, "");
    return fs.statSync(probe, { bigint: true }).ctimeNs;
  };
  const first = stamp();
  while (stamp() === first);
}

describe.each([
  // Stamps count as old at once, so that whatever can be skipped is.
  ["that trusts every stamp", () => Date.now() + 60_000],
  // Every file is young and read anew; directories and objects are still known.
  ["that trusts no stamp", Date.now],
])("a capture %s", (_, now) => {
  it("equals one that knows nothing, after any edits, and earlier refs still restore", async () => {
    await using place = new Playground("root", { quick: true });
    const storage = await place.storage();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(anyTree, turns, async (tree, script) => {
        const root = path.join(place.dir, `root-${++run}`);
        fs.mkdirSync(root);
        writeAwkwardTree(root, tree);
        // A harness lives long and knows what it saw last; a command starts anew, with what is on disk.
        const lasting = {
          first: createWorkspaceStore(storage, { now }),
          second: createWorkspaceStore(storage, { now }),
        };
        const history: { readonly ref: SnapshotRef; readonly lines: readonly string[] }[] = [];
        for (const { edits, by } of [{ edits: [], by: ["first"] as const }, ...script]) {
          nextTick(place.dir);
          for (const edit of edits) applyEdit(root, edit);
          const stores = by.map((who) => (who === "new" ? createWorkspaceStore(storage, { now }) : lasting[who]));
          const captures = await Promise.all(stores.map((store) => store.capture({ root })));
          const fresh = await createWorkspaceStore(createMemoryStorage(), { now }).capture({ root });
          for (const captured of captures) {
            expect(captured.ref).toBe(fresh.ref);
            expect(captured.files).toBe(fresh.files);
          }
          expect((await lasting.first.scan({ root })).ref).toBe(fresh.ref);
          history.push({ ref: fresh.ref, lines: listing(root) });
        }
        const store = createWorkspaceStore(storage);
        expect((await store.verify({ refs: history.map(({ ref }) => ref) })).damaged).toEqual([]);
        for (const [i, { ref, lines }] of history.entries()) {
          const dest = path.join(place.dir, `dest-${run}-${i}`);
          await store.materialize(await store.open(ref), dest);
          expect(listing(dest)).toEqual(lines);
        }
      }),
      { numRuns },
    );
  });
});
