/**
 * Rewrites that size and stamps do not show: within one tick of the clock, with times put back, with clocks of whole seconds,
 * and at every moment of a capture. None is missed (C107): a thousand of each in the long form, and of those that hide best here.
 */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem, parseWorkspacePath } from "../../src/core/index.js";
import type { FileSystem } from "../../src/core/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { contentIdOf, createWorkspaceStore } from "../../src/workspace-store/index.js";
import type { Tree } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";

const soak = process.env["LOOPRIG_SOAK"] === "1";
const target = parseWorkspacePath("a");

/** A volume whose stamps show only multiples of `stepMs`. */
function coarse(stepMs: number): FileSystem {
  const step = BigInt(stepMs) * 1_000_000n;
  const round = (stats: fs.BigIntStats): fs.BigIntStats => {
    stats.mtimeNs -= stats.mtimeNs % step;
    stats.ctimeNs -= stats.ctimeNs % step;
    return stats;
  };
  return {
    ...nodeFileSystem,
    lstat: (at) => round(nodeFileSystem.lstat(at)),
    stat: (at) => round(nodeFileSystem.stat(at)),
    fstat: (fd) => round(nodeFileSystem.fstat(fd)),
  };
}

const idIn = async (tree: Tree): Promise<string> => {
  const entry = await tree.lookup(target);
  return entry?.kind === "file" ? entry.id : `no file but ${entry?.kind ?? "nothing"}`;
};
const idOf = (text: string): string => contentIdOf(Buffer.from(text));

const rewrites: Readonly<Record<string, (file: string, text: string) => void>> = {
  "in place": (file, text) => fs.writeFileSync(file, text, { flag: "r+" }),
  "in place, times put back": (file, text) => {
    const { atime, mtime } = fs.statSync(file);
    fs.writeFileSync(file, text, { flag: "r+" });
    fs.utimesSync(file, atime, mtime);
  },
  "by rename, times put back": (file, text) => {
    const { atime, mtime } = fs.statSync(file);
    fs.writeFileSync(`${file}.new`, text);
    fs.utimesSync(`${file}.new`, atime, mtime);
    fs.renameSync(`${file}.new`, file);
  },
};

describe.each([
  ["as they are", undefined],
  ["of whole seconds", 1_000],
  ["of two seconds", 2_000],
])("with stamps %s", (_, stepMs) => {
  it.each(Object.entries(rewrites))("no rewrite of the same size is missed, made %s", async (how, rewrite) => {
    await using place = new Playground("root", { quick: true });
    const file = place.at("a");
    fs.writeFileSync(file, "0000 AAAA");
    place.write({ "old/b": "b" });
    // No seam where none is needed: the way that is taken without one is the one people run.
    const store = createWorkspaceStore(createMemoryStorage(), {
      spoolDir: place.stateDir,
      ...(stepMs === undefined ? {} : { fileSystem: coarse(stepMs) }),
    });
    const rounds = soak || how === "in place, times put back" ? 1000 : 250;
    const missed: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const text = `${String(round).padStart(4, "0")} BBBB`;
      rewrite(file, text);
      const { tree } =
        round % 10 === 0 ? await store.capture({ root: place.root }) : await store.scan({ root: place.root });
      if ((await idIn(tree)) !== idOf(text)) missed.push(round);
    }
    expect(missed).toEqual([]);
  });
});

describe("during a capture", () => {
  it.each([
    ["as they are", nodeFileSystem],
    ["of whole seconds", coarse(1_000)],
    ["of two seconds", coarse(2_000)],
  ])("no rewrite at any call of it is missed by the next, with stamps %s", async (_, base) => {
    await using place = new Playground("root", { quick: true });
    const file = place.at("a");
    let calls = 0;
    let at = Infinity;
    /** What the file holds now, and what the write that is due will make of it. */
    let present = "0000 AAAA";
    let next = present;
    const write = (): void => {
      rewrites["in place, times put back"]?.(file, next);
      present = next;
    };
    const fileSystem = interceptFileSystem(base, () => {
      if (++calls === at) write();
    });
    const store = createWorkspaceStore(createMemoryStorage(), { fileSystem, spoolDir: place.stateDir });
    const scan = async (): Promise<string> => {
      calls = 0;
      return idIn((await store.scan({ root: place.root })).tree);
    };
    fs.writeFileSync(file, present);
    await scan();
    let callsOfOne = calls;
    expect(callsOfOne).toBeGreaterThan(5);
    const rounds = soak || base === nodeFileSystem ? 1000 : 250;
    const missed: number[] = [];
    let fell = 0;
    for (let round = 1; round <= rounds; round++) {
      const before = present;
      next = `${String(round).padStart(4, "0")} CCCC`;
      at = 1 + (round % callsOfOne);
      const during = await scan();
      at = Infinity;
      if (present === next) fell++;
      else {
        // It made fewer calls than one before it: those that follow are hit within so many.
        callsOfOne = calls;
        write();
      }
      // What was found meanwhile is one of the two, or nothing that claims to be either.
      expect([idOf(before), idOf(next), "no file but omitted"]).toContain(during);
      if ((await scan()) !== idOf(next)) missed.push(round);
    }
    expect(missed).toEqual([]);
    expect(fell).toBeGreaterThan(rounds * 0.9);
  });
});
