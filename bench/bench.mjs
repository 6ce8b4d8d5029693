/** One tree and everything it is measured by: what the operations work on. */
import fs from "node:fs";
import path from "node:path";
import { generateTree, trees } from "./trees.mjs";

/** Makes the tree below `place`. Samples are put into `samples` with the name of the tree. */
export function makeBench({ place, name, kinds, rounds, samples }) {
  const dir = path.join(place, name);
  fs.mkdirSync(dir);
  const { heavy } = trees[name];
  return {
    dir,
    kinds,
    rounds,
    heavyRounds: Math.ceil(rounds / heavy),
    tree: generateTree(path.join(dir, "tree"), trees[name]),
    subjects: new Map(),
    record: (sample) => void samples.push({ tree: name, ...sample }),
  };
}

export async function closeBench({ subjects }) {
  for (const { subject } of subjects.values()) await subject.close?.();
}
