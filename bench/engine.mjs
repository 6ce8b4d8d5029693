/**
 * `node bench/engine.mjs`: the snapshot engine alone beside git, in a minute or two. For whoever works on it; `npm run bench`
 * is the whole measurement.
 *
 *   --tree NAME       small, repo, mono or bigfile; default repo
 *   --only OP[,OP…]   of first, unchanged, edited, materialize, growth; default all; first is always done
 *   --against DIR     another checkout with its dist/: its engine takes turns with ours
 *   --runs N          rounds; first captures fewer on large trees; default 7
 *   --dir DIR         where trees and stores are made; a new directory in it; default .looprig-bench
 *   --no-build        with dist/ as it is
 */
import { parseArgs } from "node:util";
import { makeBuild, takeBuild } from "./build.mjs";
import { closeBench, makeBench } from "./bench.mjs";
import { captureEdited, captureFirst, captureUnchanged, grow, materialize } from "./operations.mjs";
import { namesFrom, wholeNumber } from "./options.mjs";
import { withPlace } from "./place.mjs";
import { git } from "./subjects/git.mjs";
import { engineOf } from "./subjects/in-process.mjs";
import { inProcessTable, operationsTable } from "./tables.mjs";
import { describeTree, trees } from "./trees.mjs";

const { values } = parseArgs({
  options: {
    tree: { type: "string", default: "repo" },
    against: { type: "string" },
    only: { type: "string" },
    runs: { type: "string", default: "7" },
    dir: { type: "string" },
    "no-build": { type: "boolean", default: false },
  },
});
if (!Object.hasOwn(trees, values.tree)) throw new Error(`--tree wants one of ${Object.keys(trees).join(", ")}`);
const steps = { first: undefined, unchanged: captureUnchanged, edited: captureEdited, materialize, growth: grow };
const only = values.only === undefined ? Object.keys(steps) : namesFrom("--only", values.only, Object.keys(steps));
if (!values["no-build"]) makeBuild();
const samples = [];
await withPlace(values.dir, async (place) => {
  const engines = [engineOf(takeBuild(place))];
  if (values.against !== undefined) {
    const other = takeBuild(place, { checkout: values.against, name: "other-build" });
    engines.push({ ...engineOf(other), key: "other", title: "the other engine" });
  }
  const kinds = [...engines, git];
  const bench = makeBench({
    ...{ place, samples, name: values.tree, kinds, rounds: wholeNumber("--runs", values.runs) },
  });
  await captureFirst(bench);
  for (const name of only) await steps[name]?.(bench);
  await closeBench(bench);
  console.log(describeTree(bench.tree, values.tree));
  console.log(operationsTable(samples, kinds));
  console.log(inProcessTable(samples, engines));
});
