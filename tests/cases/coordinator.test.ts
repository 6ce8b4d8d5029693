/**
 * Writers of one file at the same time, at the level of the coordinator (the tools themselves are in observations.test.ts):
 * a permit of the coordinator for the canonical path, the present bytes read under it, an atomic write.
 */
import fs from "node:fs";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { nodeFileSystem, writeFileAtomic } from "../../src/core/index.js";
import { canonicalPath, createCoordinator } from "../../src/workspace/index.js";
import type { OwnedCoordinator } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

async function edit(coordinator: OwnedCoordinator, spelling: string, from: string, to: string): Promise<void> {
  const file = canonicalPath(spelling);
  using permit = await coordinator.acquire({ operation: "path-mutation", paths: [file] });
  const present = fs.readFileSync(file, "utf8");
  // The gap in which the other edit would be lost.
  await nextTurn();
  permit.assertHeld();
  writeFileAtomic(nodeFileSystem, file, [Buffer.from(present.replace(from, to))], { durable: false, mode: 0o644 });
}

describe("C023 two edits to one file in one batch", () => {
  const lines = Array.from({ length: 100 }, (_, i) => `line ${i + 1} of 100`);
  const text = (changed: readonly number[] = []): string =>
    lines.map((line, i) => `${changed.includes(i + 1) ? `REPLACED ${i + 1}` : line}\n`).join("");

  it("both arrive, through any spelling of the path, and no reader in another process ever sees a part", async () => {
    await using place = new Playground();
    const root = canonicalPath(place.root);
    place.write({ "n.txt": text(), "dir/.keep": "" });
    fs.symlinkSync(place.root, path.join(place.dir, "link"));
    fs.symlinkSync("../n.txt", place.at("dir/alias.txt"));
    const spellings = [
      place.at("n.txt"),
      `${place.root}/dir/../n.txt`,
      `${place.root}//./n.txt`,
      path.join(place.dir, "link/n.txt"),
      place.at("dir/alias.txt"),
    ];
    const reader = startProcess("tests/cases/reader-process.ts", [place.at("n.txt"), "100"]);
    expect(await reader.line()).toBe("reading");

    const coordinator = createCoordinator({ root });
    for (let round = 0; round < 200; round++) {
      writeFileAtomic(nodeFileSystem, place.at("n.txt"), [Buffer.from(text())], { durable: false });
      const first = spellings[round % spellings.length] as string;
      const second = spellings[Math.floor(round / spellings.length) % spellings.length] as string;
      await Promise.all([
        edit(coordinator, first, "line 50 of 100", "REPLACED 50"),
        edit(coordinator, second, "line 75 of 100", "REPLACED 75"),
      ]);
      expect(fs.readFileSync(place.at("n.txt"), "utf8")).toBe(text([50, 75]));
    }
    reader.say("stop");
    const { reads, partial } = JSON.parse(await reader.line()) as { reads: number; partial: number };
    expect(partial).toBe(0);
    expect(reads).toBeGreaterThan(0);
    expect((await reader.ended).code).toBe(0);
    expect(fs.lstatSync(place.at("dir/alias.txt")).isSymbolicLink()).toBe(true);
    expect(fs.readdirSync(place.root).sort()).toEqual(["dir", "n.txt"]);
  });

  it("edits to different files are under way at the same time", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a", "b.txt": "b" });
    const coordinator = createCoordinator({ root: canonicalPath(place.root) });
    const acquire = (name: string) =>
      coordinator.acquire({ operation: "path-mutation", paths: [canonicalPath(place.at(name))] });
    using a = await acquire("a.txt");
    using b = await acquire("b.txt");
    a.assertHeld();
    b.assertHeld();
    expect(coordinator.counts()).toEqual({ held: 2, waiting: 0 });
  });
});
