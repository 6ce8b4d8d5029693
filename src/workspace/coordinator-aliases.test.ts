/** C023 and C094: permits taken through `canonicalPath` order every writer of a file, however each of them spells it. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { nodeFileSystem, publishNoReplace, writeFileAtomic } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";
import type { WorkspacePermit } from "./coordinator-contract.js";
import { createCoordinator } from "./coordinator.js";

let dir: string;
let root: CanonicalRoot;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  fs.mkdirSync(path.join(dir, "real/src"), { recursive: true });
  fs.symlinkSync("real", path.join(dir, "link"));
  root = canonicalPath(path.join(dir, "link"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const acquire = (coordinator: ReturnType<typeof createCoordinator>, spelling: string): Promise<WorkspacePermit> =>
  coordinator.acquire({ operation: "path-mutation", paths: [canonicalPath(spelling)] });

test("C023: of two edits to one file at once, through any spelling, none is lost and no reader sees a part", async () => {
  const lines = Array.from({ length: 100 }, (_, i) => `line ${i + 1}`);
  const file = path.join(root, "n.txt");
  const spellings = [
    file,
    path.join(dir, "link/n.txt"),
    `${dir}/link//src/../n.txt`,
    path.join(dir, "alias.txt"),
    `${dir}/real/./n.txt`,
  ];
  fs.symlinkSync("link/n.txt", path.join(dir, "alias.txt"));
  const coordinator = createCoordinator({ root });

  const replaceLine = async (spelling: string, line: number): Promise<void> => {
    using permit = await acquire(coordinator, spelling);
    const now = fs.readFileSync(canonicalPath(spelling), "utf8").split("\n");
    // The gap in which a second writer would lose this one's work.
    await nextTurn();
    now[line - 1] = `replaced ${line}`;
    permit.assertHeld();
    writeFileAtomic(nodeFileSystem, canonicalPath(spelling), [Buffer.from(now.join("\n"))], { durable: false });
  };

  const wanted = lines.map((line, i) => (i === 49 || i === 74 ? `replaced ${i + 1}` : line));
  for (let round = 0; round < 200; round++) {
    fs.writeFileSync(file, lines.join("\n"));
    const pick = (n: number): string => spellings[(round + n) % spellings.length] as string;
    const edits = [replaceLine(pick(0), 50), replaceLine(pick(1 + (round % 4)), 75)];
    const progress = { finished: false };
    const all = Promise.all(edits).finally(() => (progress.finished = true));
    while (!progress.finished) {
      expect(fs.readFileSync(file, "utf8").split("\n")).toHaveLength(100);
      await nextTurn();
    }
    await all;
    expect(fs.readFileSync(file, "utf8").split("\n")).toEqual(wanted);
  }
  expect(coordinator.idle()).toBe(true);
});

test("C094: a claim on a path is met through a link, dot segments, a trailing slash or dot, and before the file exists", async () => {
  const coordinator = createCoordinator({ root });
  const held = await acquire(coordinator, path.join(root, "src/x"));
  const spellings = [
    path.join(dir, "link/src/x"),
    `${dir}/link/src/../src/x`,
    `${dir}/real/src/x/`,
    `${dir}/link/src/x/.`,
    `${dir}//real/./src//x`,
  ];
  const others = spellings.map((spelling) => acquire(coordinator, spelling));
  await nextTurn();
  expect(coordinator.counts()).toEqual({ held: 1, waiting: spellings.length });
  held.release();
  for (const next of others) (await next).release();
  expect(coordinator.idle()).toBe(true);
});

test("C094: a new file created by both of its names at once is one file, and the second creator is told", async () => {
  const coordinator = createCoordinator({ root });
  const create = async (spelling: string): Promise<boolean> => {
    using permit = await acquire(coordinator, spelling);
    await nextTurn();
    permit.assertHeld();
    return publishNoReplace(nodeFileSystem, canonicalPath(spelling), [Buffer.from(spelling)], { durable: false });
  };
  const first = path.join(dir, "link/src/new.txt");
  const second = path.join(dir, "real/src/new.txt");
  expect(await Promise.all([create(first), create(second)])).toEqual([true, false]);
  expect(fs.readdirSync(path.join(root, "src"))).toEqual(["new.txt"]);
  expect(fs.readFileSync(path.join(root, "src/new.txt"), "utf8")).toBe(first);
});
