/** Directories with more names than a call takes arguments (some 120 000 on Node's usual stack). */
import { expect, it } from "vitest";
import { inSlices, pacer } from "../core/index.js";
import type { Tree, TreeEntry, TreeId } from "./contracts.js";
import { diffTrees } from "./diff.js";
import { planTree } from "./materialize-plan.js";
import { RowList } from "./row-list.js";
import { kinds } from "./table-layout.js";
import { compacted } from "./table-upkeep.js";
import { TreeTable } from "./tree-table.js";
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

it("a table of 130 000 directories in one is put together anew without its waste", async () => {
  const table = TreeTable.empty();
  const list = new RowList();
  for (let i = 0; i < width; i++) {
    const row = list.add(kinds.directory, String(i).padStart(6, "0"));
    list.setExtra(row, table.addDirectory(0, i));
  }
  table.setRows(0, list);
  const squeezed = await inSlices(compacted(table), pacer(undefined));
  expect(squeezed.liveDirectories).toBe(width + 1);
  expect(squeezed.pathOf(width)).toBe(String(width - 1).padStart(6, "0"));
});
