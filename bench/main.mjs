/**
 * `npm run bench`: looprig beside git and whatever else is installed of restic, borg, tar, zstd; a table, and what was promised.
 *
 *   --trees NAME[,NAME…]   small, repo, mono, bigfile; default small,repo, which takes minutes
 *   --all                  all four: an hour and 40 GB of disk
 *   --runs N               rounds of everything; first captures and materializing fewer on larger trees; default 5
 *   --json FILE            everything that was measured, as JSON
 *   --dir DIR              where trees and stores are made; a new directory in it, removed at the end; default .looprig-bench
 *   --check                exit 1 when a target is missed
 *   --no-build             with dist/ as it is
 */
import fs from "node:fs";
import { parseArgs } from "node:util";
import { makeBuild, takeBuild } from "./build.mjs";
import { closeBench, makeBench } from "./bench.mjs";
import { describeMachine, load } from "./machine.mjs";
import * as operation from "./operations.mjs";
import { namesFrom, wholeNumber } from "./options.mjs";
import { withPlace } from "./place.mjs";
import { json, markdown } from "./report.mjs";
import { findKinds } from "./subjects/index.mjs";
import { judge } from "./targets.mjs";
import { describeTree, trees } from "./trees.mjs";

const { values } = parseArgs({
  options: {
    trees: { type: "string", default: "small,repo" },
    all: { type: "boolean", default: false },
    runs: { type: "string", default: "5" },
    json: { type: "string" },
    dir: { type: "string" },
    check: { type: "boolean", default: false },
    "no-build": { type: "boolean", default: false },
  },
});
const names = values.all ? Object.keys(trees) : namesFrom("--trees", values.trees, Object.keys(trees));
const runs = wholeNumber("--runs", values.runs);

const { captureFirst, captureUnchanged, captureEdited, undo, restore, materialize, grow, overwrite } = operation;
const common = [captureFirst, captureUnchanged, captureEdited, undo, restore, materialize];
/** What each tree is for. */
const plans = {
  small: [...common, grow],
  repo: [...common, grow],
  mono: common,
  bigfile: [captureFirst, captureUnchanged, materialize, overwrite],
};

if (!values["no-build"]) makeBuild();
await withPlace(values.dir, async (place) => {
  const machine = describeMachine(place);
  const { kinds, versions, absent } = findKinds(takeBuild(place));
  const samples = [];
  const made = [];
  for (const name of names) {
    tell(`${name}: making the tree`);
    const bench = makeBench({ place, name, kinds, rounds: runs, samples });
    made.push({ name, description: describeTree(bench.tree, name), files: bench.tree.files, bytes: bench.tree.bytes });
    for (const step of plans[name]) {
      tell(`${name}: ${step.name}`);
      await step(bench);
    }
    await closeBench(bench);
  }
  const verdicts = judge(samples);
  machine.loadAtEnd = load();
  const run = { machine, versions, absent, runs, trees: made, samples, verdicts };
  if (values.json !== undefined) fs.writeFileSync(values.json, json(run));
  console.log(markdown(run, kinds));
  if (values.check && verdicts.some(({ met }) => met === false)) process.exitCode = 1;
  tell("removing what was made");
});

function tell(step) {
  console.error(`${(performance.now() / 1000).toFixed(0)} s  ${step}`);
}
