import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nameToBytes, parseWorkspacePath, rootPath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Tree, TreeChange, TreeEntry, WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, symlink, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";
import type { DiskTree } from "./testing/tree-on-disk.js";
import { visitTree } from "./tree.js";

let base: ReturnType<typeof temporaryDirectory>;
let store: WorkspaceStore;
beforeEach(() => {
  base = temporaryDirectory();
  store = createWorkspaceStore(createMemoryStorage());
});
afterEach(() => {
  base.dispose();
});

async function treeOf(tree: DiskTree): Promise<Tree> {
  const root = fs.mkdtempSync(path.join(base.path, "t-"));
  writeTree(root, tree);
  return (await store.capture({ root })).tree;
}

async function changes(from: Tree, to: Tree, paths?: readonly string[]): Promise<TreeChange[]> {
  const found: TreeChange[] = [];
  for await (const change of store.diff(from, to, { paths: paths?.map(parseWorkspacePath) })) found.push(change);
  return found;
}

/** Every path with what a diff compares of it. */
async function flat(tree: Tree): Promise<Map<string, TreeEntry>> {
  const all = new Map<string, TreeEntry>();
  for await (const { path: at, entry } of visitTree(tree)) all.set(at, entry);
  return all;
}
const comparable = (entry: TreeEntry | undefined) =>
  entry?.kind === "directory" ? { kind: entry.kind, mode: entry.mode } : entry;

const { tree: small } = fc.letrec<{ tree: DiskTree; entry: DiskTree[string] }>((tie) => ({
  tree: fc.dictionary(fc.constantFrom("a", "a-b", "a0", "b", "\u{1f600}", "\uff5e"), tie("entry"), { maxKeys: 4 }),
  entry: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc
      .record({ bytes: fc.constantFrom("", "1", "2"), mode: fc.constantFrom(0o644, 0o755) })
      .map((f) => file(f.bytes, f.mode)),
    fc.constantFrom("a", "b").map(symlink),
    fc.record({ entries: tie("tree"), mode: fc.constantFrom(0o755, 0o700) }).map((d) => directory(d.entries, d.mode)),
  ),
}));

describe("a diff", () => {
  it("applied to the first tree gives the second, in byte order, each path once", async () => {
    await fc.assert(
      fc.asyncProperty(small, small, async (a, b) => {
        const [from, to] = [await treeOf(a), await treeOf(b)];
        const found = await changes(from, to);
        const result = await flat(from);
        for (const { path: at, before, after } of found) {
          expect(comparable(result.get(at))).toEqual(comparable(before));
          expect(comparable(before)).not.toEqual(comparable(after));
          if (after) result.set(at, after);
          else result.delete(at);
        }
        const wanted = await flat(to);
        const plain = (map: Map<string, TreeEntry>) =>
          Object.fromEntries([...map].map(([at, entry]) => [at, comparable(entry)]));
        expect(plain(result)).toEqual(plain(wanted));
        const order = found.map((change) => change.path);
        const sorted = [...new Set(order)].sort((x, y) => Buffer.compare(nameToBytes(x), nameToBytes(y)));
        expect(order).toEqual(sorted);
      }),
      { numRuns: 60 },
    );
  });

  it("with paths is the whole diff cut to these and what lies below them", async () => {
    await fc.assert(
      fc.asyncProperty(small, small, fc.subarray(["a", "a/b", "a-b/a", "b"]), async (a, b, paths) => {
        const [from, to] = [await treeOf(a), await treeOf(b)];
        const all = await changes(from, to);
        const expected = all.filter((change) =>
          paths.some((p) => change.path === p || change.path.startsWith(`${p}/`)),
        );
        expect(await changes(from, to, paths)).toEqual(expected);
      }),
      { numRuns: 40 },
    );
  });

  it("opens only directories that differ", async () => {
    const same = directory({ deep: directory({ x: file("x") }) });
    const from = await treeOf({ same, other: directory({ y: file("1") }) });
    const to = await treeOf({ same, other: directory({ y: file("2") }) });
    const opened: string[] = [];
    const watched: Tree = {
      ...to,
      entries: (id, options) => {
        opened.push(options?.path ?? "?");
        return to.entries(id, options);
      },
    };
    expect((await changes(from, watched)).map((change) => change.path)).toEqual(["other/y"]);
    expect(opened).toEqual(["", "other"]);
  });
});

describe("a tree", () => {
  it("answers for the root, for what is there, and for nothing through a file, a link or an omission", async () => {
    const tree = await treeOf({
      d: directory({ f: file("x") }),
      l: symlink("d"),
      ".git": directory({ HEAD: file("") }),
    });
    expect(await tree.lookup(rootPath)).toMatchObject({ kind: "directory", id: tree.id });
    expect(await tree.lookup(parseWorkspacePath("d/f"))).toMatchObject({ kind: "file", size: 1 });
    expect(await tree.lookup(parseWorkspacePath("l"))).toEqual({ kind: "symlink", target: "d" });
    expect(await tree.lookup(parseWorkspacePath(".git"))).toEqual({ kind: "omitted", class: "vcs" });
    for (const nothing of ["d/f/x", "l/f", ".git/HEAD", "z"]) {
      expect(await tree.lookup(parseWorkspacePath(nothing))).toBeUndefined();
    }
    expect((await tree.list(rootPath)).map(([name]) => name)).toEqual([".git", "d", "l"]);
    expect(await tree.list(parseWorkspacePath("l"))).toEqual([]);
  });
});
