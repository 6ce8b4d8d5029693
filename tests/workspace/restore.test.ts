/** What holds of every undo, redo and restore of a workspace: what it stores first, what it tells, and the tree it leaves. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Workspace, WorkspaceView } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";

const run = (workspace: Workspace, script: string) => workspace.exec(["sh", "-c", script], { stdio: "ignore" });

async function textIn(view: WorkspaceView, ref: string, name: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of view.readFile(ref, name)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

it("undo of a window stores the bytes it takes away, and names the ref that holds them, for good (U1, U4)", async () => {
  await using place = new Playground();
  place.write({ f: "before" });
  const first = await place.open();
  await run(first, "printf after > f; printf made > g");
  const undone = await first.undo();
  expect(undone).toMatchObject({ result: "done", written: ["f"], deleted: ["g"], reverse: "looprig redo" });
  await first.close();

  await using next = await place.open();
  const safety = undone.safety ?? "";
  expect([await textIn(next, safety, "f"), await textIn(next, safety, "g")]).toEqual(["after", "made"]);
  expect(await next.redo()).toMatchObject({ result: "done", written: ["f", "g"] });
  expect([place.read("f"), place.read("g")]).toEqual(["after", "made"]);
});

it("a restore over what others wrote can be undone in a later session, to the bytes they wrote (U4)", async () => {
  await using place = new Playground();
  place.write({ f: "0", "dir/kept": "kept" });
  const first = await place.open();
  await first.checkpoint({ label: "start" });
  place.write({ f: "by hand", "dir/own": "by hand too" });
  fs.rmSync(place.at("dir/kept"));
  const before = place.tree();
  const restored = await first.restore("start", { exact: true });
  expect(restored).toMatchObject({ result: "done", written: ["dir/kept", "f"], deleted: ["dir/own"] });
  await first.close();
  await using next = await place.open();
  expect(await next.undo()).toMatchObject({ result: "done", conflicts: [] });
  expect(place.tree()).toEqual(before);
});

it("what cannot be stored first is not written over: the restore is refused with its path, and nothing changed (U4)", async () => {
  await using place = new Playground();
  place.write({ f: "0", g: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f; printf 1 > g");
  const plan = await workspace.plan({ kind: "undo" });
  // By now something stands there that no capture can hold.
  fs.rmSync(place.at("f"));
  execFileSync("mkfifo", [place.at("f")]);
  await expect(workspace.apply(plan)).rejects.toMatchObject({
    ...{ code: "restore.unprotected", details: { paths: ["f"], bytesNeeded: 1 } },
  });
  expect(place.tree()).toEqual({ f: "special", g: "file 644 1" });
});

it("while a command runs nothing is undone, redone or restored, and afterwards it is (U6)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f");
  const plan = await workspace.plan({ kind: "undo" });
  const running = run(workspace, ": > begun; while [ ! -e go ]; do sleep 0.02; done; rm begun go");
  await expect.poll(() => fs.existsSync(place.at("begun")), { timeout: 30_000 }).toBe(true);
  for (const refused of [
    () => workspace.undo(),
    () => workspace.redo(),
    () => workspace.restore("c1"),
    () => workspace.apply(plan),
    () => workspace.plan({ kind: "undo" }),
  ]) {
    await expect(refused()).rejects.toMatchObject({ code: "session.busy", name: "SessionBusyError" });
  }
  expect(place.read("f")).toBe("1");
  place.write({ go: "" });
  await running;
  expect(await workspace.undo()).toMatchObject({ entry: "t1", passedOver: ["t2"], result: "done" });
});

it("the tree that undo, redo or a restore of some paths leaves is a checkpoint, the newest one, when they return (U8)", async () => {
  await using place = new Playground();
  place.write({ a: "0", b: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > a; printf 1 > b");
  place.write({ own: "by hand" });
  for (const act of [
    () => workspace.undo({ paths: ["a"] }),
    () => workspace.redo(),
    () => workspace.restore("t1^", { paths: ["b"] }),
  ]) {
    const { checkpoint } = await act();
    expect(checkpoint).toMatchObject({ trigger: "post-restore" });
    const { checkpoints } = await workspace.history();
    expect(checkpoints.at(-1)).toMatchObject({ number: checkpoint?.number, ref: checkpoint?.ref });
    // Whatever was kept beside what was written is in it: nothing differs from it.
    expect(await workspace.changes({ since: checkpoint?.ref })).toEqual([]);
  }
});

it("bytes that are put back are again whose they were: the turn before can be undone through them (U8)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await run(workspace, "printf 1 > f");
  await run(workspace, "printf 2 > f");
  const byTurn = async (): Promise<unknown> => (await workspace.changes({ since: "t1^" })).map(({ by }) => by);
  expect(await byTurn()).toMatchObject([{ kind: "session", turn: 2 }]);
  expect(await workspace.undo()).toMatchObject({ entry: "t2", written: ["f"] });
  expect(await byTurn()).toMatchObject([{ kind: "session", turn: 1 }]);
  expect(await workspace.undo()).toMatchObject({ entry: "t1", written: ["f"], conflicts: [] });
  expect(place.read("f")).toBe("0");
  expect(await workspace.redo()).toMatchObject({ entry: "t1", written: ["f"] });
  expect(await byTurn()).toMatchObject([{ kind: "session", turn: 1 }]);
});

it("checkpoint A, checkpoint B, restore A: a root that is gone comes back as A, and B is still listed (U8)", async () => {
  await using place = new Playground();
  const baseDir = path.join(place.dir, "sessions");
  const storage = await place.storage();
  const rig = rigDefiner(() => ({}))({
    storage,
    loops: [defineLoop({ name: "talker", model: scriptedModel([{ text: "Hello." }]) })],
    sessionWorkspaces: { baseDir },
    snapshots: "manual",
  });
  const session = await rig.startSession();
  const root = path.join(baseDir, session.id);
  await session.workspace.exec(["sh", "-c", "printf a > f"], { stdio: "ignore" });
  const a = await session.workspace.checkpoint({ label: "A" });
  const treeA = listTree(root);
  await session.workspace.exec(["sh", "-c", "printf b > f; printf b > g"], { stdio: "ignore" });
  const b = await session.workspace.checkpoint({ label: "B" });
  expect(await session.workspace.restore("A")).toMatchObject({ result: "done" });
  await session.close();
  fs.rmSync(root, { recursive: true });

  const resumed = await rig.resumeSession(session.id);
  expect(listTree(root)).toEqual(treeA);
  const { checkpoints } = await resumed.workspace.history();
  expect(checkpoints.map(({ label }) => label)).toEqual(expect.arrayContaining(["A", "B"]));
  expect(await resumed.workspace.restore("B")).toMatchObject({ result: "done" });
  expect(listTree(root)).toEqual({ f: "file 644 b", g: "file 644 b" });
  expect(a.ref).not.toBe(b.ref);
  await resumed.close();
});

it("a root of the session's own is restored exactly, and what that took away comes back with undo (U7)", async () => {
  await using place = new Playground();
  const baseDir = path.join(place.dir, "sessions");
  const rig = rigDefiner(() => ({}))({
    storage: await place.storage(),
    loops: [defineLoop({ name: "talker", model: scriptedModel([{ text: "Hello." }]) })],
    sessionWorkspaces: { baseDir },
    snapshots: "manual",
  });
  await using session = await rig.startSession();
  const root = path.join(baseDir, session.id);
  await session.workspace.exec(["sh", "-c", "printf 0 > f"], { stdio: "ignore" });
  const before = listTree(root);
  fs.writeFileSync(path.join(root, "f"), "by no record");
  fs.writeFileSync(path.join(root, "g"), "by no record either");
  const foreign = listTree(root);
  const kept = await session.workspace.plan({ kind: "restore", ref: "t1", exact: false });
  expect([kept.writes, kept.deletes, kept.kept.length]).toEqual([[], [], 2]);
  expect(await session.workspace.restore("t1")).toMatchObject({ result: "done", written: ["f"], deleted: ["g"] });
  expect(listTree(root)).toEqual(before);
  expect(await session.workspace.undo()).toMatchObject({ result: "done" });
  expect(listTree(root)).toEqual(foreign);
});
