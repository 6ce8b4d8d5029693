/**
 * Many processes capture into one store at once, each a root of its own and one that all share: every capture succeeds, has
 * the ref that a store of its own gives the same tree, and restores. Four by four here, eight by eight in the long form.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parseRef } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { listing } from "./listing.js";

const count = process.env["LOOPRIG_SOAK"] === "1" ? 8 : 4;
const rounds = count;

it(
  "every capture of every process is valid, and equal to one in a store of its own (G2, G6)",
  { timeout: 300_000 },
  async () => {
    await using place = new Playground("shared", { quick: true });
    place.write({ "src/a": "a\n".repeat(5000), "src/b": "b\n", c: "c\n" });
    const sharedRef = (await createWorkspaceStore(createMemoryStorage()).capture({ root: place.root })).ref;
    const workers = Array.from({ length: count }, (_, i) => {
      const name = `p${i}`;
      const root = path.join(place.dir, name);
      fs.mkdirSync(root);
      return {
        name,
        root,
        process: startProcess("tests/processes/capturing.ts", [place.stateDir, root, place.root, name, String(rounds)]),
      };
    });

    interface Captured {
      readonly which: "own" | "shared";
      readonly round: number;
      readonly ref: string;
    }
    const captured: (Captured & { readonly name: string; readonly lines: readonly string[] | undefined })[] = [];
    for (let round = 1; round <= rounds; round++) {
      for (const { process: child } of workers) expect(await child.line()).toBe("ready");
      for (const { process: child } of workers) child.say("go");
      for (const { name, root, process: child } of workers) {
        for (const which of ["own", "shared"]) {
          const told = JSON.parse(await child.line()) as Captured;
          expect(told).toMatchObject({ which, round });
          captured.push({ ...told, name, lines: which === "own" ? listing(root) : undefined });
        }
      }
    }
    for (const { name, process: child } of workers)
      expect(await child.ended, name).toMatchObject({ code: 0, stderr: "" });

    const store = createWorkspaceStore(await place.storage());
    expect(captured).toHaveLength(2 * count * rounds);
    const pinned = new Map((await store.pins()).map(({ owner, id, refs }) => [`${owner} ${id}`, refs]));
    expect(pinned.size).toBe(captured.length);
    for (const { name, which, round, ref, lines } of captured) {
      const told = `${name} ${which} ${round}`;
      expect(pinned.get(`${name} ${which}-${round}`), told).toEqual([ref]);
      if (lines === undefined) {
        expect(ref, told).toBe(sharedRef);
        continue;
      }
      const dest = path.join(place.dir, "dest");
      await store.materialize(await store.open(parseRef(ref)), dest);
      expect(listing(dest), told).toEqual(lines);
      fs.rmSync(dest, { recursive: true });
    }
    const report = await store.verify();
    expect(report.damaged).toEqual([]);
    expect(report.objects).toBeGreaterThan(captured.length);
  },
);
