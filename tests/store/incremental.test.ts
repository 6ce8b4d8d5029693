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

const numRuns = process.env["LOOPRIG_SOAK"] === "1" ? 1_000 : 7;
const turns = fc.array(fc.array(anyEdit, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 5 });

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
      fc.asyncProperty(anyTree, turns, fc.boolean(), async (tree, script, oneStore) => {
        const root = path.join(place.dir, `root-${++run}`);
        fs.mkdirSync(root);
        writeAwkwardTree(root, tree);
        const lasting = createWorkspaceStore(storage, { now });
        const history: { readonly ref: SnapshotRef; readonly lines: readonly string[] }[] = [];
        for (const edits of [[], ...script]) {
          nextTick(place.dir);
          for (const edit of edits) applyEdit(root, edit);
          // A harness lives long; a command starts anew, with what is on disk.
          const store = oneStore ? lasting : createWorkspaceStore(storage, { now });
          const captured = await store.capture({ root });
          const fresh = await createWorkspaceStore(createMemoryStorage(), { now }).capture({ root });
          expect(captured.ref).toBe(fresh.ref);
          expect(captured.files).toBe(fresh.files);
          expect((await store.scan({ root })).ref).toBe(fresh.ref);
          history.push({ ref: captured.ref, lines: listing(root) });
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
