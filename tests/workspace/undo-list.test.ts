/** The undo list of a root (U3): which entry undo and redo take, in which state it is left, and what is passed over. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";

const quiet = { stdio: "ignore" } as const;
const run = (workspace: Workspace, script: string) => workspace.exec(["sh", "-c", script], quiet);
const states = async (workspace: Workspace) =>
  (await workspace.history()).entries.map(({ name, state }) => `${name} ${state}`);

it("undo takes turns newest first, redo puts them back in reverse, and a new turn empties redo (U3)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f");
  await run(workspace, "printf 2 > f");
  expect((await workspace.undo()).entry).toBe("t2");
  expect((await workspace.undo()).entry).toBe("t1");
  expect(place.read("f")).toBe("0");
  expect((await workspace.undo()).result).toBe("nothing");
  expect((await workspace.redo()).entry).toBe("t1");
  expect(place.read("f")).toBe("1");
  expect(await states(workspace)).toEqual(["t1 applied", "t2 undone"]);
  await run(workspace, "printf 3 > f");
  expect((await workspace.redo()).result).toBe("nothing");
  expect(place.read("f")).toBe("3");
});

it("turns that changed nothing are passed over and named (U3)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f");
  await run(workspace, "cat f");
  const receipt = await workspace.undo();
  expect(receipt.entry).toBe("t1");
  expect(receipt.passedOver).toEqual(["t2"]);
  expect(place.read("f")).toBe("0");
});

it("a conflict stops everything, skipping leaves the entry partly undone, and what is stuck is passed over later (U3)", async () => {
  await using place = new Playground();
  place.write({ a: "0", b: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > a; printf 1 > b");
  fs.writeFileSync(place.at("b"), "somebody");
  const stopped = await workspace.undo();
  expect(stopped.result).toBe("conflict");
  expect(stopped.conflicts).toEqual([{ path: "b", by: { kind: "foreign" } }]);
  expect(place.read("a")).toBe("1");

  const skipped = await workspace.undo({ onConflict: "skip" });
  expect(skipped.result).toBe("partly");
  expect(skipped.written).toEqual(["a"]);
  expect(place.read("b")).toBe("somebody");
  expect(await states(workspace)).toEqual(["t1 partly"]);
  expect((await workspace.undo()).passedOver).toEqual(["t1"]);

  expect((await workspace.redo()).written).toEqual(["a"]);
  expect(place.read("a")).toBe("1");
  expect(place.read("b")).toBe("somebody");
});

it("chosen paths are taken back alone, and the rest can be taken back later", async () => {
  await using place = new Playground();
  place.write({ "dir/a": "0", b: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > dir/a; printf 1 > b; printf 1 > dir/new");
  const some = await workspace.undo({ paths: ["dir"] });
  expect([some.written, some.deleted]).toEqual([["dir/a"], ["dir/new"]]);
  expect(await states(workspace)).toEqual(["t1 partly"]);
  const rest = await workspace.undo();
  expect([rest.written, rest.deleted]).toEqual([["b"], []]);
  expect(await states(workspace)).toEqual(["t1 undone"]);
});

it("an older turn can be undone by name when nothing newer stands on its paths", async () => {
  await using place = new Playground();
  place.write({ a: "0", b: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > a");
  await run(workspace, "printf 2 > b; printf 2 >> a");
  const blocked = await workspace.undo({ turn: "t1" });
  expect(blocked.result).toBe("conflict");
  expect(blocked.conflicts).toEqual([
    { path: "a", by: expect.objectContaining({ kind: "session", turn: 2 }) as unknown },
  ]);
  await workspace.undo({ turn: "t2", paths: ["a"] });
  expect((await workspace.undo({ turn: "t1" })).result).toBe("done");
  expect([place.read("a"), place.read("b")]).toEqual(["0", "2"]);
});

it("a restore is an entry of its own, is undone to the bytes it replaced, and can be put back (U3, U4)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f; printf n > new");
  const foreign = "by hand";
  fs.writeFileSync(place.at("f"), foreign);
  const kept = await workspace.restore("c1");
  expect(kept.kept).toEqual([{ path: "f", reason: "foreign" }]);
  expect(place.tree()).toEqual({ f: `file 644 ${foreign}` });
  const exact = await workspace.restore("c1", { exact: true });
  expect(exact.foreign).toEqual(["f"]);
  expect(place.read("f")).toBe("0");
  expect((await workspace.undo()).written).toEqual(["f"]);
  expect(place.read("f")).toBe(foreign);
  expect((await workspace.redo()).written).toEqual(["f"]);
  expect(place.read("f")).toBe("0");
});

it("everything goes on in a new session, and turns of another one can be chosen alone", async () => {
  await using place = new Playground();
  place.write({ a: "0", b: "0" });
  const first = await place.open();
  await run(first, "printf 1 > a");
  await first.close();
  await using second = await place.open();
  await run(second, "printf 1 > b");
  expect((await second.undo({ session: first.sessionId })).entry).toBe("t1");
  expect([place.read("a"), place.read("b")]).toEqual(["0", "1"]);
  expect((await second.undo()).entry).toBe("t2");
});

it("what a program does by itself after its checkpoint can be undone and restored", async () => {
  await using place = new Playground();
  place.write({ "src/a": "0" });
  await using workspace = await place.open({ baseline: true });
  const before = await workspace.checkpoint({ label: "before the codemod" });
  fs.writeFileSync(place.at("src/a"), "1");
  fs.writeFileSync(place.at("src/b"), "new");
  expect((await workspace.changes({ since: before.ref })).map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "edited src/a",
    "added src/b",
  ]);
  expect((await workspace.undo()).result).toBe("done");
  expect(place.tree()).toEqual({ src: "directory 755", "src/a": "file 644 0" });
  expect((await workspace.redo()).result).toBe("done");
  expect(place.read("src/b")).toBe("new");
  await workspace.restore(before.ref, { paths: ["src"] });
  expect(place.tree()).toEqual({ src: "directory 755", "src/a": "file 644 0" });
});

it("a plan changes nothing, is done by apply, and is refused when a path moved meanwhile (U5)", async () => {
  await using place = new Playground();
  place.write({ f: "0", g: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f; printf 1 > g");
  const plan = await workspace.plan({ kind: "undo" });
  expect([plan.writes, plan.deletes]).toEqual([["f", "g"], []]);
  expect(place.read("f")).toBe("1");
  fs.writeFileSync(place.at("g"), "2");
  await expect(workspace.apply(plan)).rejects.toSatisfy(
    (error) => isLooprigError(error, "restore.tree_moved") && error.details.paths.join() === "g",
  );
  expect([place.read("f"), place.read("g")]).toEqual(["1", "2"]);
  fs.writeFileSync(place.at("g"), "1");
  expect((await workspace.apply(await workspace.plan({ kind: "undo" }))).result).toBe("done");
  await expect(workspace.apply({ ...plan })).rejects.toMatchObject({ code: "option.invalid" });
});

it("undo writes only what differs: other files keep inode and times (U6)", async () => {
  await using place = new Playground();
  place.write({ f: "0", other: "o", "dir/x": "x" });
  const stat = (name: string) => fs.lstatSync(place.at(name), { bigint: true });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f");
  const before = ["other", "dir", "dir/x"].map(stat);
  await workspace.undo();
  expect(["other", "dir", "dir/x"].map(stat).map(({ ino, mtimeNs, ctimeNs }) => [ino, mtimeNs, ctimeNs])).toEqual(
    before.map(({ ino, mtimeNs, ctimeNs }) => [ino, mtimeNs, ctimeNs]),
  );
});

it("tells when HEAD is elsewhere than where the files go back to, also when the turn itself committed", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const commit = "git -c user.name=a -c user.email=a@b commit -qam x";
  await using workspace = await place.open();
  await run(workspace, "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm first");
  await run(workspace, `printf 1 > f && ${commit}`);
  const { headMoved } = await workspace.undo();
  expect(headMoved).toHaveLength(2);
  expect(headMoved?.[0]).not.toBe(headMoved?.[1]);
  expect((await workspace.redo()).headMoved).toBeUndefined();
  await run(workspace, "printf 2 > f");
  expect((await workspace.undo()).headMoved).toBeUndefined();
});
