/** A derived tree is the one a capture would find when nothing but the given paths changed; and what it costs to know that. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  interceptFileSystem,
  nameFromBytes,
  nodeFileSystem,
  parseWorkspacePath,
  rootPath,
  toFsPath,
} from "../core/index.js";
import type { FileSystem, WorkspacePath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { CaptureRules, PresentPaths, TreeEntry, WorkspaceStore } from "./contracts.js";
import { isSameEntry } from "./diff.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, readTree, symlink, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";
import type { DiskEntry, DiskTree } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
});
afterEach(() => {
  base.dispose();
});

const later = () => Date.now() + 60_000;
const storeWith = (fileSystem: FileSystem = nodeFileSystem, now: () => number = later): WorkspaceStore =>
  createWorkspaceStore(createMemoryStorage(), { fileSystem, now });
const at = parseWorkspacePath;

// ── random trees ────────────────────────────────────────────────────────────────────────────────────────────────────

const names = fc.constantFrom("a", "b", "a-b", "é", ".git", ".env", "x.log", nameFromBytes(Buffer.from([0x66, 0xff])));
const { tree: trees } = fc.letrec<{ tree: DiskTree; entry: DiskEntry }>((tie) => ({
  tree: fc
    .uniqueArray(fc.tuple(names, tie("entry")), { maxLength: 5, selector: ([name]) => name })
    .map((entries) => Object.fromEntries(entries)),
  entry: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc
      .tuple(fc.constantFrom("", "1", "2"), fc.constantFrom(0o644, 0o755, 0o600))
      .map(([text, mode]) => file(text, mode)),
    fc.constantFrom("a", "nowhere").map(symlink),
    fc.tuple(tie("tree"), fc.constantFrom(0o755, 0o700)).map(([entries, mode]) => directory(entries, mode)),
  ),
}));

function pathsOf(tree: DiskTree, below = ""): WorkspacePath[] {
  return Object.entries(tree).flatMap(([name, entry]) => [
    at(below + name),
    ...(entry.kind === "directory" ? pathsOf(entry.entries, `${below}${name}/`) : []),
  ]);
}

const rules: fc.Arbitrary<CaptureRules> = fc.record({
  exclude: fc.constantFrom<string[]>([], ["*.log"], ["b/"]),
  vcs: fc.constantFrom<"include" | "omit">("include", "omit"),
  includePrivate: fc.boolean(),
});

function empty(): void {
  for (const name of fs.readdirSync(root, { encoding: "buffer" })) {
    fs.rmSync(Buffer.concat([Buffer.from(`${root}/`), name]), { recursive: true });
  }
}

it("a tree derived from all paths that changed is the one a capture finds, whatever changed into what (U8, U14)", async () => {
  const store = storeWith();
  await fc.assert(
    fc.asyncProperty(trees, trees, rules, async (before, after, captured) => {
      empty();
      writeTree(root, before);
      const known = await store.capture({ root, rules: captured });
      empty();
      writeTree(root, after);
      const paths = [...new Set([...pathsOf(before), ...pathsOf(after)])];
      const derived = await store.derive({ root, rules: captured, base: known.tree, paths });
      const found = await store.capture({ root, rules: captured });
      expect(derived.ref).toBe(found.ref);
      expect(await store.has(derived.ref)).toBe(true);
      for (const one of paths)
        expect(isSameEntry(await derived.tree.lookup(one), await found.tree.lookup(one))).toBe(true);
      await store.look({ root, rules: captured }, (present) => assertSees(present, found.tree, paths));
    }),
    { numRuns: 60 },
  );
});

async function assertSees(
  present: PresentPaths,
  tree: { lookup(path: WorkspacePath): Promise<TreeEntry | undefined> },
  paths: readonly WorkspacePath[],
): Promise<void> {
  for (const one of paths) {
    const [seen, found] = [await present.lookup(one), await tree.lookup(one)];
    expect(isSameEntry(seen, found), one).toBe(true);
  }
}

it("everything that is not among the paths is as it is in the base, whatever stands there", async () => {
  const store = storeWith();
  writeTree(root, { d: directory({ f: file("1"), g: file("1") }), h: file("1") });
  const known = await store.capture({ root });
  writeTree(root, { h: file("2"), new: file("new") });
  fs.writeFileSync(path.join(root, "d/f"), "2");
  fs.rmSync(path.join(root, "d/g"));
  const derived = await store.derive({ root, base: known.tree, paths: [at("d/f")] });
  const changes = [];
  for await (const { path: one } of store.diff(known.tree, derived.tree)) changes.push(one);
  expect(changes).toEqual(["d/f"]);
});

it("a parent that the base does not know is part of the tree, with its mode; one that became a link or a file hides what was below", async () => {
  const store = storeWith();
  writeTree(root, { d: directory({ f: file("1") }), e: directory({ f: file("1") }) });
  const known = await store.capture({ root });
  fs.rmSync(path.join(root, "d"), { recursive: true });
  fs.symlinkSync("e", path.join(root, "d"));
  writeTree(root, { n: directory({ m: directory({ f: file("2") }, 0o700) }, 0o711) });
  const derived = await store.derive({ root, base: known.tree, paths: [at("d/f"), at("n/m/f")] });
  expect(derived.ref).toBe((await store.capture({ root })).ref);
});

it("the number of looks follows the paths and not the tree (U4)", async () => {
  const looks = async (files: number): Promise<number> => {
    empty();
    let count = 0;
    const store = storeWith(interceptFileSystem(nodeFileSystem, () => count++));
    const many = Object.fromEntries(Array.from({ length: files }, (_, i) => [`f${i}`, file(`${i}`)]));
    writeTree(root, { d: directory({ ...many, changed: file("1") }), ...many });
    const known = await store.capture({ root });
    fs.writeFileSync(path.join(root, "d/changed"), "2");
    count = 0;
    await store.derive({ root, base: known.tree, paths: [at("d/changed")] });
    return count;
  };
  expect(await looks(200)).toBe(await looks(20));
});

it("special files, our own names and what cannot be read are what a capture takes them for (U14, U9)", async () => {
  const refused = new Set(["secret", "closed"]);
  const nameIn = (given: unknown): string => path.basename(String(given));
  const denying = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    // As for an owner without the right; a handle that only names it is given all the same.
    const names = name === "open" && ((args[1] as number) & 0o10000000) !== 0;
    const lists = name === "readdir" && /\/proc\/self\/fd\/\d+\/\.$/.test(String(args[0]));
    if (name === "open" && !names && refused.has(nameIn(args[0])))
      throw Object.assign(new Error("no"), { code: "EACCES" });
    if (lists && nameIn(fs.readlinkSync(String(args[0]).slice(0, -2))) === "closed") {
      throw Object.assign(new Error("no"), { code: "EACCES" });
    }
  });
  const store = storeWith(denying);
  writeTree(root, { secret: file("s"), closed: directory({ f: file("f") }), ".looprig-1": file("ours"), f: file("f") });
  execFileSync("mkfifo", [path.join(root, "pipe")]);
  const ownPaths = new Set([at(".looprig-1")]);
  const found = await store.capture({ root, ownPaths });
  const paths = ["secret", "closed", "closed/f", ".looprig-1", "f", "pipe", "none/at/all"].map(at);
  await store.look({ root, ownPaths }, async (present) => {
    await assertSees(present, found.tree, paths);
    expect(await present.lookup(at("secret"))).toEqual({ kind: "omitted", class: "unreadable" });
    expect(await present.lookup(at("closed"))).toEqual({ kind: "omitted", class: "unreadable" });
    expect([...(await present.names(rootPath))].sort()).toEqual(["closed", "f", "pipe", "secret"]);
    expect(await present.names(at("f"))).toEqual([]);
  });
  expect((await store.derive({ root, ownPaths, base: found.tree, paths })).ref).toBe(found.ref);
});

it.each([
  ["old", later],
  ["just written", Date.now],
])(
  "a file of several pieces that is %s has the id that a capture gives it, and can be read back",
  async (_what, now) => {
    const store = storeWith(nodeFileSystem, now);
    const known = await store.capture({ root });
    fs.writeFileSync(path.join(root, "large"), Buffer.alloc(2.5 * 2 ** 20, "abc"));
    const derived = await store.derive({ root, base: known.tree, paths: [at("large")] });
    expect(derived.ref).toBe((await store.capture({ root })).ref);
    const dest = path.join(base.path, "out");
    await store.materialize(derived.tree, dest);
    expect(readTree(dest)).toEqual(readTree(root));
  },
);

it("a file that never stands still is left out as unstable, and one that does in the end is read whole (C106)", async () => {
  let writes = Infinity;
  const busy = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (name === "read" && writes-- > 0) fs.appendFileSync(path.join(root, "busy"), "x");
  });
  const store = storeWith(busy);
  writeTree(root, { busy: file("x") });
  const look = (): Promise<TreeEntry | undefined> => store.look({ root }, (present) => present.lookup(at("busy")));
  expect(await look()).toEqual({ kind: "omitted", class: "unstable" });
  writes = 1;
  expect(await look()).toMatchObject({ kind: "file", size: fs.statSync(path.join(root, "busy")).size });
});

it("a root that is another directory in the end is no success (R7)", async () => {
  const store = storeWith();
  const { tree } = await store.capture({ root });
  const swapped = store.look({ root }, async (present) => {
    await present.lookup(at("f"));
    fs.renameSync(root, `${root}-moved`);
    fs.mkdirSync(root);
  });
  await expect(swapped).rejects.toMatchObject({ code: "capture.root_unreadable" });
  await expect(store.derive({ root: `${root}-none`, base: tree, paths: [] })).rejects.toMatchObject({
    code: "capture.root_unreadable",
  });
});

it("where the volume folds names, a path is there only as its directory lists it", async () => {
  writeTree(root, { README: file("1") });
  // Such a volume finds the file under either name.
  const folding = nodeFileSystem;
  const lstat: FileSystem["lstat"] = (given) => folding.lstat(toFsPath(String(given).replace(/readme$/, "README")));
  const store = storeWith({ ...folding, lstat });
  const looked = (foldsNames: boolean, name: string): Promise<TreeEntry | undefined> =>
    store.look({ root, foldsNames }, (present) => present.lookup(at(name)));
  expect(await looked(true, "README")).toMatchObject({ kind: "file" });
  expect(await looked(true, "readme")).toBeUndefined();
});
