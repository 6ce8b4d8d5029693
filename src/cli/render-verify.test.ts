import { expect, test } from "vitest";
import type { SessionId, SnapshotRef, WorkspacePath } from "../core/index.js";
import { pinnedTrees, rangeNames, treeNames } from "./pin-names.js";
import { verifyDocument, verifyText } from "./render-verify.js";
import { plainStyle } from "./style.js";

const ref = (n: number): SnapshotRef => `v1:sha256:${String(n).padStart(64, "0")}` as SnapshotRef;
const [a, b] = ["11111111-2222-4333-8444-555555555555", "66666666-2222-4333-8444-555555555555"] as SessionId[];
const sessions = [
  { id: a as SessionId, root: "/home/u/calc" },
  { id: b as SessionId, root: "/home/u/site" },
];
const trees = pinnedTrees(
  [
    { owner: a ?? "", id: "c1", refs: [ref(1)] },
    { owner: a ?? "", id: "c10", refs: [ref(2)] },
    { owner: a ?? "", id: "p0123456789ab", refs: [ref(1), ref(2)] },
    { owner: b ?? "", id: "c1", refs: [ref(1)] },
    { owner: a ?? "", id: "99999999-2222-4333-8444-555555555555", refs: [ref(3)] },
  ],
  sessions,
);
const view = { home: "/home/u", style: plainStyle };
const damage = (path: string | undefined, ...refs: SnapshotRef[]) => ({
  ...{ object: "0".repeat(64), problem: "damaged" as const, refs },
  ...(path === undefined ? {} : { path: path as WorkspacePath }),
});

test.each([
  [[1], "c1"],
  [[1, 2], "c1, c2"],
  [[2, 4, 5, 6, 9, 10], "c2, c4-c6, c9, c10"],
  [[], ""],
])("checkpoints %j are named %s", (numbers, names) => expect(rangeNames(numbers)).toBe(names));

test("a tree is named by its checkpoints, and only without any by what else keeps it", () => {
  expect(treeNames(trees.filter((each) => each.ref === ref(2)))).toBe("c10");
  expect(treeNames(trees.filter((each) => each.ref === ref(3)))).toBe("kept for an undo");
});

test("a sound root is one line", () => {
  const here = trees.filter(({ root }) => root === "/home/u/calc");
  const report = { objects: 14, bytes: 2048, damaged: [] };
  expect(verifyText({ report, trees: here, root: "/home/u/calc" }, view)).toBe(
    "~/calc   3 trees, 14 objects, 2.0 KiB read: sound\n",
  );
});

test("damage is listed by root and path with its checkpoints, and what is left is said", () => {
  const report = { objects: 14, bytes: 0, damaged: [damage("src/x", ref(1), ref(2)), damage(undefined, ref(3))] };
  expect(verifyText({ report, trees, root: undefined }, view)).toBe(
    [
      "all roots   3 trees, 14 objects, 0 B read: 3 paths damaged",
      "",
      "~/calc",
      "  src/x       damaged  c1, c10",
      "  everything  damaged  kept for an undo",
      "",
      "~/site",
      "  src/x  damaged  c1",
      "",
      "None of 3 trees are whole. Damaged bytes are never restored; a copy of the state directory may still have them.",
      "  looprig doctor     looks for why: a disk that is failing or full, files that were removed",
      "",
    ].join("\n"),
  );
  expect(verifyDocument({ report, trees, root: undefined })).toMatchObject({
    ...{ sound: false, trees: 3, objects: 14 },
    damaged: [
      { path: "src/x", root: "/home/u/calc", checkpoints: ["c1", "c10"], refs: [ref(1), ref(2)] },
      { path: "src/x", root: "/home/u/site", checkpoints: ["c1"] },
      { path: null, checkpoints: [] },
    ],
  });
});
