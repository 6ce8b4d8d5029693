/** What a restart finds damaged of what is only there to be fast: made anew from what is durable, once, and nothing else changes. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { looprig } from "./command-line.js";
import { filesBelow } from "./look.js";

describe("C088 a store with twenty captures whose indexes a restart left damaged", () => {
  const kib = 1024;
  const captures = 20;
  /** Every second capture adds more than a pack may hold that has no index; the others add a few bytes. */
  const sizeOf = (number: number): number => (number % 2 === 0 ? 96 * kib : 100);

  const indexBlobs = (place: Playground): readonly string[] =>
    filesBelow(place.stateDir).filter((file) => path.dirname(file).endsWith("/blobs/index"));
  const statIndexes = (place: Playground): readonly string[] =>
    filesBelow(place.stateDir).filter((file) => path.basename(path.dirname(file)) === "stat-index");

  const inodes = (files: readonly string[]): readonly number[] => files.map((file) => fs.statSync(file).ino);
  const packOf = (file: string): string => path.basename(file).replace(/^@/, "");

  /** Does something as a program would that has just started, and counts the index blobs it wrote. */
  async function restarted<T>(
    place: Playground,
    act: (workspace: Workspace) => Promise<T>,
  ): Promise<{ readonly result: T; readonly rebuilt: readonly string[] }> {
    await using storage = await openLocalStorage({ dir: place.stateDir });
    const rebuilt: string[] = [];
    const put = storage.blobs.put.bind(storage.blobs);
    storage.blobs.put = async (key, ...rest) => {
      if (key.startsWith("index/")) rebuilt.push(path.basename(key));
      return put(key, ...rest);
    };
    await using workspace = await openWorkspace({ root: place.root, storage, baseline: false, command: "test" });
    return { result: await act(workspace), rebuilt: rebuilt.sort() };
  }

  const ways: readonly (readonly [how: string, damage: (file: string) => void])[] = [
    [
      "with zeros at the head",
      (file) => fs.writeFileSync(file, Buffer.concat([Buffer.alloc(64), fs.readFileSync(file).subarray(64)])),
    ],
    ["truncated", (file) => fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2))],
    ["deleted", (file) => fs.rmSync(file)],
  ];

  it("has them again after the next capture, made once; every capture keeps its id and restores", async () => {
    await using place = new Playground("root", { quick: true });
    const trees: ReturnType<Playground["tree"]>[] = [];
    const { result: ids } = await restarted(place, async (workspace) => {
      const refs: string[] = [];
      for (let number = 0; number < captures; number++) {
        place.write({ [`${number}.bin`]: randomBytes(sizeOf(number)), "n.txt": `${number}\n` });
        refs.push((await workspace.checkpoint()).ref);
        trees.push(place.tree());
      }
      return refs;
    });
    const newest = captures - 1;
    const sound = new Map(indexBlobs(place).map((file) => [packOf(file), fs.readFileSync(file)]));
    expect(sound.size).toBe(captures / 2);
    expect(statIndexes(place)).toHaveLength(1);

    for (const [turn, [how, damage]] of ways.entries()) {
      for (const file of [...indexBlobs(place), ...statIndexes(place)]) damage(file);
      const capture = await restarted(place, (workspace) => workspace.checkpoint());
      expect(capture.result, how).toMatchObject({ ref: ids[newest], unchanged: true, completeness: "complete" });
      expect(capture.rebuilt, how).toEqual([...sound.keys()].sort());
      for (const file of indexBlobs(place)) {
        expect(fs.readFileSync(file).equals(sound.get(packOf(file)) ?? Buffer.alloc(0)), how).toBe(true);
      }
      const made = inodes(statIndexes(place));
      expect(made, how).toHaveLength(1);

      // An old one, another each time, and back.
      const old = 2 * turn + 1;
      const again = await restarted(place, async (workspace) => {
        // One that cannot be read would be replaced; one that can is kept, or added to.
        expect((await workspace.checkpoint()).ref, how).toBe(ids[newest]);
        expect(inodes(statIndexes(place)), how).toEqual(made);
        const { checkpoints } = await workspace.history();
        expect(
          checkpoints.slice(0, captures).map(({ ref }) => ref),
          how,
        ).toEqual(ids);
        expect(await workspace.restore(ids[old] ?? "", { exact: true }), how).toMatchObject({ result: "done" });
        expect(place.tree(), how).toEqual(trees[old]);
        expect(await workspace.restore(ids[newest] ?? "", { exact: true }), how).toMatchObject({ result: "done" });
        expect(place.tree(), how).toEqual(trees[newest]);
      });
      expect(again.rebuilt, how).toEqual([]);
    }
  });

  it("restores an old capture at once, before anything else has been captured, by command line and in few words", async () => {
    await using place = new Playground("root", { quick: true });
    await restarted(place, async (workspace) => {
      for (let number = 0; number < captures; number++) {
        place.write({ [`${number}.bin`]: randomBytes(sizeOf(number)), "n.txt": `${number}\n` });
        await workspace.checkpoint();
      }
    });
    for (const file of [...indexBlobs(place), ...statIndexes(place)]) {
      fs.writeFileSync(file, Buffer.alloc(fs.statSync(file).size));
    }
    const told = await looprig(place, ["restore", "c3", "--exact", "--yes"]);
    expect(told).toMatchObject({ code: 0 });
    expect(told.stderr.split("\n").length).toBeLessThan(5);
    expect(place.read("n.txt")).toBe("2\n");
    expect(fs.readdirSync(place.root).sort()).toEqual(["0.bin", "1.bin", "2.bin", "n.txt"]);
  });
});
