/** Directories with more names than a call takes arguments (some 120 000 on Node's usual stack). */
import { expect, it } from "vitest";
import type { Tree, TreeEntry, TreeId } from "./contracts.js";
import { diffTrees } from "./diff.js";
import { planTree } from "./materialize-plan.js";
import { createTree, visitTree } from "./tree.js";
import { emptyDirectoryId } from "./tree-codec.js";

const width = 130_000;
const empty: Tree = createTree(emptyDirectoryId, () => Promise.resolve([]));
/** A directory `wide` in which nothing but empty directories stands. */
const wide: Tree = (() => {
  const [root, below] = ["1".repeat(64), "2".repeat(64)] as [TreeId, TreeId];
  const child: TreeEntry = { kind: "directory", mode: 0o755, id: emptyDirectoryId };
  const names = Array.from({ length: width }, (_, i) => [String(i).padStart(6, "0"), child] as const);
  const known = new Map<TreeId, readonly (readonly [string, TreeEntry])[]>([
    [root, [["wide", { kind: "directory", mode: 0o755, id: below }]]],
    [below, names],
  ]);
  return createTree(root, (id) => Promise.resolve(known.get(id) ?? []));
})();

async function count(all: AsyncIterable<unknown>): Promise<number> {
  let found = 0;
  for await (const _ of all) found++;
  return found;
}

it("a directory of 130 000 directories is visited, compared and planned", async () => {
  expect(await count(visitTree(wide))).toBe(width + 1);
  expect(await count(diffTrees(empty, wide))).toBe(width + 1);
  expect((await planTree(wide, {})).entries).toBe(width + 1);
});
