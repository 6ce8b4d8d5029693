/**
 * What an undo or restore looks at (U4, U8): of what file tools recorded the paths of the record and nothing else; of anything
 * else the tree, once. And what follows from it: what others write elsewhere meanwhile is no part of a restore.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { fileTools } from "../../src/builtin-tools/index.js";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystemCall } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";

/** A turn that edits one file, writes over another and adds two, one of them in directories of its own. */
async function turnOfEdits(place: Playground): Promise<void> {
  const calls = [
    { tool: "Read", input: { file_path: "src/edited" } },
    { tool: "Read", input: { file_path: "replaced" } },
    { tool: "Edit", input: { file_path: "src/edited", old_string: "old", new_string: "new" } },
    { tool: "Write", input: { file_path: "replaced", content: "new" } },
    { tool: "Write", input: { file_path: "src/added", content: "new" } },
    { tool: "Write", input: { file_path: "made/for/it", content: "new" } },
  ];
  const model = scriptedModel([...calls.map((call) => ({ calls: [call] })), { text: "Done." }]);
  const rig = rigDefiner(() => ({}))({
    storage: await place.storage(),
    loops: [defineLoop({ name: "operator", model, tools: [fileTools()] })],
    exclusiveWorkspace: { root: place.root },
    snapshots: "manual",
  });
  await using session = await rig.startSession();
  expect(await (await session.submit("edit")).done).toMatchObject({ status: "done" });
}

function filled(files: number): Playground {
  const place = new Playground("root", { quick: true });
  place.write({ "src/edited": "old", replaced: "old", "src/marker": "", "other/marker": "" });
  place.write(
    Object.fromEntries(Array.from({ length: files }, (_, i) => [`${i % 2 ? "src" : "other"}/f${i}`, `${i}`])),
  );
  return place;
}

/** Opens the root with a file system whose calls are shown to `see`. */
const watched = (place: Playground, see: (call: FileSystemCall) => void) =>
  place.open({}, { fileSystem: interceptFileSystem(nodeFileSystem, see) });

/** Looks at files that have nothing to do with anything: each walk of the tree takes one at each. */
const isMarker = ({ name, args }: FileSystemCall): boolean =>
  name === "lstat" && /other\/marker$/.test(String(args[0]));

/** The name in the tree that a call is about; undefined for directories held open, and what is not in the tree. */
function nameIn({ args }: FileSystemCall): string | undefined {
  const name = path.basename(String(args[0]));
  if (typeof args[0] === "number" || /^(?:\d+|\.)$/.test(name)) return undefined;
  return name.replace(/^(\.looprig-).*(-\d+)$/, "$1plan$2").replace(/^looprig-\w{6}$/i, "the playground");
}

it("undo and redo of what file tools wrote look at the same names in a tree of 2 000 files as in one of 50 (U4)", async () => {
  const looksIn = async (files: number): Promise<readonly (readonly string[])[]> => {
    await using place = filled(files);
    const before = place.tree();
    await turnOfEdits(place);
    const after = place.tree();
    const names = new Set<string | undefined>();
    await using workspace = await watched(place, (call) => names.add(nameIn(call)));
    const looks: string[][] = [];
    for (const [act, left] of [
      [() => workspace.undo(), before],
      [() => workspace.redo(), after],
    ] as const) {
      names.clear();
      expect(await act()).toMatchObject({ result: "done", conflicts: [] });
      looks.push([...names].filter((name) => name !== undefined).sort());
      expect(place.tree()).toEqual(left);
    }
    return looks;
  };
  const few = await looksIn(50);
  expect(few.flat().filter((name) => /^f\d|marker/.test(name))).toEqual([]);
  expect(await looksIn(2_000)).toEqual(few);
});

it.each<readonly [string, (workspace: Workspace) => Promise<unknown>]>([
  ["an undo of a command", (workspace) => workspace.undo()],
  ["a restore", (workspace) => workspace.restore("t1^")],
  [
    "a restore that is planned first and applied then",
    async (workspace) => workspace.apply(await workspace.plan({ kind: "restore", ref: "t1^" })),
  ],
])("%s looks at the tree once", async (_what, act) => {
  await using place = filled(4);
  const first = await place.open();
  const before = place.tree();
  await first.exec(place.sh("printf 1 > src/edited; rm replaced; mkdir d; printf 1 > d/f"), { stdio: "ignore" });
  await first.close();
  let walks = 0;
  await using workspace = await watched(place, (call) => {
    if (isMarker(call)) walks++;
  });
  walks = 0;
  expect(await act(workspace)).toMatchObject({ result: "done" });
  expect(walks).toBe(1);
  expect(place.tree()).toEqual(before);
});

it("undo and redo of a restore look at its paths alone", async () => {
  await using place = filled(4);
  const first = await place.open();
  await first.exec(place.sh("printf 1 > src/edited; rm replaced"), { stdio: "ignore" });
  const after = place.tree();
  await first.restore("t1^");
  const before = place.tree();
  await first.close();
  let walks = 0;
  await using workspace = await watched(place, (call) => {
    if (isMarker(call)) walks++;
  });
  walks = 0;
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["src/edited"], deleted: ["replaced"] });
  expect(place.tree()).toEqual(after);
  expect(await workspace.redo()).toMatchObject({ result: "done" });
  expect(place.tree()).toEqual(before);
  expect(walks).toBe(0);
});

it("what somebody writes elsewhere while a restore is at work is no part of it: its undo leaves that alone (U3, U8)", async () => {
  await using place = filled(4);
  const first = await place.open();
  await first.exec(place.sh("printf 1 > src/edited"), { stdio: "ignore" });
  await first.close();
  let meddles = true;
  await using workspace = await watched(place, ({ name }) => {
    if (name !== "rename" || !meddles) return;
    meddles = false;
    place.write({ "other/theirs": "theirs", "other/marker": "theirs" });
  });
  await workspace.restore("t1^");
  expect(meddles).toBe(false);
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["src/edited"], deleted: [], conflicts: [] });
  expect([place.read("src/edited"), place.read("other/theirs"), place.read("other/marker")]).toEqual([
    ...["1", "theirs", "theirs"],
  ]);
  expect(await workspace.changes()).toMatchObject([
    { path: "other/marker", by: { kind: "foreign" } },
    { path: "other/theirs", by: { kind: "foreign" } },
  ]);
});

it("the checkpoints around an undo by record hold its paths as they were and are, say so, and can be gone back to (U4, U8)", async () => {
  await using place = filled(4);
  await turnOfEdits(place);
  const workspace = await place.open();
  // Nothing is known yet of what somebody did since the turn.
  place.write({ "other/marker": "theirs", "src/edited": "theirs" });
  fs.rmSync(place.at("other/f0"));
  const conflict = await workspace.undo();
  expect(conflict).toMatchObject({ result: "conflict", conflicts: [{ path: "src/edited" }], safety: null });
  const undone = await workspace.undo({ onConflict: "skip" });
  expect(undone).toMatchObject({ result: "partly", written: ["replaced"], checkpoint: { derived: true } });
  const left = await workspace.tree(undone.checkpoint?.ref ?? "");
  const paths = async (tree: typeof left) => (await tree.list("" as never)).map(([name]) => name);
  expect(await paths(left)).toEqual(["other", "replaced", "src"]);
  expect(undone.checkpoint?.files).toBe(2 + 2 + 4);
  expect(await workspace.changes()).toMatchObject([
    { path: "other/f0", kind: "deleted" },
    { path: "other/marker", kind: "edited" },
    { path: "src/edited", by: { kind: "foreign" } },
  ]);
  const reread: Uint8Array[] = [];
  for await (const piece of workspace.readFile(undone.safety ?? "", "made/for/it")) reread.push(piece);
  expect(Buffer.concat(reread).toString()).toBe("new");
  await workspace.close();
  await using next = await place.open();
  expect(await next.redo()).toMatchObject({ result: "done" });
  expect([place.read("replaced"), place.read("src/edited"), place.read("made/for/it")]).toEqual([
    "new",
    "theirs",
    "new",
  ]);
});

it("what somebody writes elsewhere between a plan and its restore stays theirs, and the checkpoints say that they did not look", async () => {
  await using place = filled(4);
  await using workspace = await place.open();
  await workspace.exec(place.sh("printf 1 > src/edited"), { stdio: "ignore" });
  const plan = await workspace.plan({ kind: "restore", ref: "t1^" });
  place.write({ "other/theirs": "theirs" });
  const receipt = await workspace.apply(plan);
  expect(receipt).toMatchObject({ result: "done", written: ["src/edited"], checkpoint: { derived: true } });
  expect(await workspace.changes()).toMatchObject([{ path: "other/theirs", kind: "added", by: { kind: "foreign" } }]);
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["src/edited"] });
  expect(place.read("other/theirs")).toBe("theirs");
});

it("a plan whose directory somebody removed or replaced meanwhile has moved, and nothing was changed (U5)", async () => {
  await using place = filled(4);
  await using workspace = await place.open();
  await workspace.exec(place.sh("rm replaced; mkdir made; mv src/edited made/edited"), { stdio: "ignore" });
  for (const meddle of [() => place.write({ src: "a file now" }), () => fs.symlinkSync("other", place.at("src"))]) {
    const plan = await workspace.plan({ kind: "restore", ref: "t1^" });
    fs.renameSync(place.at("src"), place.at("moved-away"));
    const nothing = place.tree();
    await expect(workspace.apply(plan)).rejects.toMatchObject({ code: "restore.tree_moved", retryable: true });
    expect(place.tree()).toEqual(nothing);
    meddle();
    const meddled = place.tree();
    await expect(workspace.apply(plan)).rejects.toMatchObject({ code: "restore.tree_moved", retryable: true });
    expect(place.tree()).toEqual(meddled);
    fs.rmSync(place.at("src"));
    fs.renameSync(place.at("moved-away"), place.at("src"));
  }
  expect(await workspace.restore("t1^")).toMatchObject({ result: "done" });
});
