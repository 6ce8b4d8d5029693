/**
 * A real second process edits, replaces, creates, deletes and swaps a directory for a link while a plan is applied, at moments
 * nobody chose. What it wrote is at its path or where the outcome says (C10), and nothing lands outside the root (U10). Every
 * moment by itself is in apply.race.test.ts. Some hundred rounds here; `LOOPRIG_SOAK=1` plays thousands.
 */
import fs from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Deed, OutsiderAnswer } from "../../../tests/processes/outsider.js";
import { startProcess } from "../../../tests/processes.js";
import type { TestProcess } from "../../../tests/processes.js";
import { isLooprigError } from "../../core/index.js";
import { operationsBetween, Scene, unsyncedFileSystem } from "./testing/scene.js";
import { directory, file, link, readTree, removeDirectory, temporaryDirectory } from "./testing/trees.js";
import type { Nodes } from "./testing/trees.js";

const rounds = process.env["LOOPRIG_SOAK"] === "1" ? 5_000 : 140;

const many = Array.from({ length: 12 }, (_, i) => `dir/f${i}`);
const before: Nodes = {
  dir: directory(),
  ...Object.fromEntries(many.map((name) => [name, file(`old ${name}`)])),
  gone: file("goes"),
  "to-link": file("file"),
};
const after: Nodes = {
  dir: directory(),
  ...Object.fromEntries(many.map((name) => [name, file(`new ${name}`)])),
  made: file("made"),
  "to-link": link("made"),
};
const operations = await operationsBetween(before, after);

let outsider: TestProcess;
beforeAll(async () => {
  outsider = startProcess("tests/processes/outsider.ts");
  expect(await outsider.line()).toBe("ready");
});
afterAll(async () => {
  outsider.child.stdin?.end();
  expect((await outsider.ended).code).toBe(0);
});

interface Outcome {
  readonly failed: unknown;
  readonly storedAs: readonly string[];
  readonly tookUs: number;
}

async function apply(scene: Scene): Promise<Outcome> {
  const begun = performance.now();
  const took = (): number => Math.round((performance.now() - begun) * 1000);
  try {
    using applied = await scene.apply({ fileSystem: unsyncedFileSystem });
    const { raced } = await applied.finish();
    return { failed: undefined, storedAs: raced.map(({ storedAs }) => storedAs), tookUs: took() };
  } catch (failed) {
    return { failed, storedAs: [], tookUs: took() };
  }
}

const deeds = [
  { do: "edit", name: "dir/f5" },
  { do: "replace", name: "dir/f11" },
  { do: "edit", name: "gone" },
  { do: "create", name: "made" },
  { do: "delete", name: "dir/f3" },
  { do: "replace", name: "to-link" },
  { do: "swap", name: "dir" },
] as const;

test("whatever another process does meanwhile survives or is told, and nothing is written outside the root", async () => {
  const told = { failed: 0, raced: 0, survived: 0 };
  let usual = 5_000;
  for (let round = 0; round < rounds; round++) {
    using scene = new Scene(before, after, operations);
    const around = temporaryDirectory();
    const outside = path.join(around, "outside");
    fs.mkdirSync(outside);
    for (const name of ["f0", "f5", "f11"]) fs.writeFileSync(path.join(outside, name), "theirs, outside");
    const untouched = readTree(outside);
    const chosen = deeds[round % deeds.length] as (typeof deeds)[number];
    const text = `typed in round ${round}`;
    // From before the apply begins to after it has ended, evenly.
    const spinUs = Math.round(usual * 1.2 * ((round * 0.618) % 1));
    outsider.say(JSON.stringify({ ...chosen, root: scene.dir, outside, text, spinUs } satisfies Deed));
    const outcome = await apply(scene);
    const answer = JSON.parse(await outsider.line()) as OutsiderAnswer;
    usual = (usual * 7 + outcome.tookUs) / 8;
    const moment = `round ${round}, ${chosen.do} ${chosen.name}, ${inspect(outcome.failed)}, ${JSON.stringify(answer)}`;

    if (outcome.failed !== undefined) {
      told.failed++;
      const typed = isLooprigError(outcome.failed, "restore.tree_moved", "restore.failed", "restore.unsettled");
      expect(typed, moment).toBe(true);
      // The next one to write settles what could not be taken back.
      await scene.settle(unsyncedFileSystem);
    }
    expect(readTree(outside), moment).toEqual(untouched);
    const tree = scene.tree();
    const holders = Object.entries(tree).flatMap(([name, node]) =>
      node.kind === "file" && node.text === text ? [name] : [],
    );
    const wrote = answer.failed === undefined && chosen.do !== "delete" && chosen.do !== "swap";
    if (wrote && answer.nameless !== true) expect(holders, moment).toHaveLength(1);
    const [holder] = holders;
    if (holder !== undefined && holder !== chosen.name) {
      told.raced++;
      const said = outcome.storedAs.includes(holder) || inspect(outcome.failed).includes(holder);
      expect(said, `${moment}: kept as ${holder} and not told`).toBe(true);
    } else if (holder !== undefined) told.survived++;
    // Nothing of ours stays but what was told.
    const ours = Object.keys(tree).filter((name) => name.includes(".looprig-") && name !== holder);
    if (chosen.do !== "swap") expect(ours, moment).toEqual([]);
    removeDirectory(around);
  }
  expect(told.failed).toBeGreaterThan(0);
  expect(told.survived).toBeGreaterThan(0);
}, 600_000);
