/**
 * Captures of several processes into one store, two collectors without a grace running all the while: everything a capture
 * returned stays whole, and whatever was unpinned goes. The long form has eight by eight.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { mintSessionId, parseRef } from "../../src/core/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { listing } from "./listing.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const count = soak ? 8 : 3;
const rounds = soak ? 8 : 4;

it("what captures returned is whole, collectors running all the while (G2)", { timeout: 300_000 }, async () => {
  await using place = new Playground("shared", { quick: true });
  place.write({ "src/a": "a\n".repeat(5000), "src/b": "b\n", c: "c\n" });
  const store = createWorkspaceStore(await place.storage());
  const collectors = [1, 2].map(() => startProcess("tests/processes/collecting.ts", [place.stateDir]));
  for (const each of collectors) expect(await each.line()).toBe("ready");
  const workers = Array.from({ length: count }, (_, i) => {
    const name = `p${i}`;
    const root = path.join(place.dir, name);
    fs.mkdirSync(root);
    const args = [place.stateDir, root, place.root, name, String(rounds)];
    return { name, root, process: startProcess("tests/processes/capturing.ts", args) };
  });

  const kept: { readonly told: string; readonly ref: string; readonly lines: readonly string[] }[] = [];
  for (let round = 1; round <= rounds; round++) {
    for (const { process: child } of workers) expect(await child.line()).toBe("ready");
    for (const { process: child } of workers) child.say("go");
    for (const { name, root, process: child } of workers) {
      for (const which of ["own", "shared"]) {
        const { ref } = JSON.parse(await child.line()) as { ref: string };
        kept.push({ told: `${name} ${which} ${round}`, ref, lines: listing(which === "own" ? root : place.root) });
        // Half of what is shared is given up again, and comes back in the next round.
        if (which === "shared" && round % 2 === 1) await store.unpin({ owner: name, id: `shared-${round}` });
      }
    }
  }
  for (const { name, process: child } of workers)
    expect(await child.ended, name).toMatchObject({ code: 0, stderr: "" });
  const sum = { collections: 0, freed: 0, held: 0 };
  for (const each of collectors) {
    each.say("stop");
    const { code, stderr, lines } = await each.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const told = JSON.parse(lines.at(-1) ?? "{}") as typeof sum;
    for (const key of ["collections", "freed", "held"] as const) sum[key] += told[key];
  }
  expect(sum.collections).toBeGreaterThan(rounds);
  expect(sum.freed).toBeGreaterThan(0);

  // By a store value that was there all the time, and by one that knows nothing of it.
  for (const each of [store, createWorkspaceStore(await place.storage())]) {
    expect((await each.verify()).damaged).toEqual([]);
    const dest = path.join(place.dir, "dest");
    for (const { told, ref, lines } of kept.filter((_, i) => i % 5 === 0)) {
      await each.materialize(await each.open(parseRef(ref)), dest);
      expect(listing(dest), told).toEqual(lines);
      fs.rmSync(dest, { recursive: true });
    }
  }
  await store.collect({ claim: { sessionId: mintSessionId(), command: "test" }, graceMs: 0 });
  expect((await store.stats()).objects.garbage).toBe(0);
  expect((await store.verify()).damaged).toEqual([]);
});
