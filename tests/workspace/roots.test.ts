/** Who may have a root, and that it is the same directory still (R1–R7). */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import { openWorkspace, readWorkspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";

const quiet = { stdio: "ignore" } as const;

it("a held root refuses a second session, also above, below and by another name, and is free after close", async () => {
  await using place = new Playground();
  fs.mkdirSync(place.at("sub"));
  fs.symlinkSync(place.root, path.join(place.dir, "alias"));
  const first = await place.open({ command: "the first one" });
  for (const [root, relation] of [
    [place.root, "same"],
    [path.join(place.dir, "alias"), "same"],
    [place.at("sub"), "inside"],
  ] as const) {
    const error = await place.open({ root }).catch((caught: unknown) => caught);
    expect(isLooprigError(error, "workspace_root.busy") && error.details).toMatchObject({
      relation,
      holder: { command: "the first one", pid: process.pid, sessionId: first.sessionId },
    });
  }
  expect(await (await place.view()).holder()).toMatchObject({ command: "the first one", root: place.root });
  await first.close();
  await (await place.open({ root: place.at("sub") })).close();
  // What was refused left nothing: no session, no root.
  const view = await place.view();
  expect((await view.history()).sessions).toHaveLength(1);
});

it("another directory at the root's path is refused until it is adopted, and its history goes on", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await (await place.open()).close();
  fs.renameSync(place.root, path.join(place.dir, "elsewhere"));
  await expect(place.open()).rejects.toMatchObject({ code: "workspace_root.changed", details: { state: "missing" } });
  expect(fs.existsSync(place.root)).toBe(false);
  place.write({ other: "project" });
  await expect(place.open()).rejects.toMatchObject({ code: "workspace_root.changed", details: { state: "replaced" } });
  await using adopted = await place.open({ adoptRoot: true });
  await adopted.checkpoint();
  expect((await adopted.history()).sessions).toHaveLength(2);
});

it("a root moved or replaced under a live session refuses every checkpoint, command and restore", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await workspace.exec(place.sh("printf 1 > f"), quiet);
  const elsewhere = path.join(place.dir, "elsewhere");
  fs.renameSync(place.root, elsewhere);
  const moved = { code: "workspace_root.changed", details: { state: "moved", movedTo: elsewhere } };
  await expect(workspace.checkpoint()).rejects.toMatchObject(moved);
  await expect(workspace.exec(["true"], quiet)).rejects.toMatchObject(moved);
  fs.mkdirSync(place.root);
  await expect(workspace.undo()).rejects.toMatchObject({ code: "workspace_root.changed" });
  expect(fs.readdirSync(place.root)).toEqual([]);
  fs.rmdirSync(place.root);
  fs.renameSync(elsewhere, place.root);
  expect((await workspace.undo()).result).toBe("done");
});

it("a root that is gone is built anew by a restore that was asked for, with its modes", async () => {
  await using place = new Playground();
  place.write({ "a/b": "b", f: "0" });
  fs.chmodSync(place.root, 0o750);
  fs.mkdirSync(place.at("empty"));
  const before = place.tree();
  const first = await place.open();
  await first.checkpoint({ label: "all of it" });
  await first.close();
  fs.rmSync(place.root, { recursive: true });

  const view = await place.view();
  await expect(view.changes()).rejects.toMatchObject({ code: "workspace_root.changed" });
  expect((await view.history()).checkpoints).toHaveLength(1);
  await using workspace = await place.open({ missingRoot: "recreate" });
  await expect(workspace.undo()).rejects.toMatchObject({ code: "option.invalid" });
  expect((await workspace.restore("all of it")).result).toBe("done");
  expect(place.tree()).toEqual(before);
  expect(fs.statSync(place.root).mode & 0o777).toBe(0o750);
  expect(fs.readdirSync(place.dir).sort()).toEqual(["root", "state"]);
  await workspace.exec(place.sh("printf 1 > f"), quiet);
  expect((await workspace.undo()).result).toBe("done");
  expect(place.tree()).toEqual(before);
});

it("roots that are too broad, blank, or hold the state directory are refused before anything is written", async () => {
  await using place = new Playground();
  const storage = await place.storage();
  const world = { homes: [place.root] };
  await expect(openWorkspace({ root: place.root, storage }, world)).rejects.toMatchObject({
    code: "workspace_placement.root_too_broad",
  });
  await expect(openWorkspace({ root: place.dir, storage }, world)).rejects.toMatchObject({
    code: "workspace_placement.root_too_broad",
  });
  await expect(openWorkspace({ root: "/", storage })).rejects.toMatchObject({
    code: "workspace_placement.root_too_broad",
  });
  await expect(openWorkspace({ root: "  ", storage })).rejects.toMatchObject({
    code: "workspace_placement.empty_root",
  });
  await expect(openWorkspace({ root: place.dir, storage })).rejects.toMatchObject({ code: "persistence.overlap" });
  expect(fs.readdirSync(place.dir).sort()).toEqual(["root", "state"]);
  expect((await (await place.view()).history()).sessions).toEqual([]);
});

it("wrong options name their field before any I/O", async () => {
  for (const [options, field] of [
    [{ root: 3 }, "root"],
    [{ root: "x", shared: "yes" }, "shared"],
    [{ root: "x", capture: { exclude: "node_modules" } }, "capture.exclude"],
    [{ root: "x", capture: { maxFileBytes: -1 } }, "capture.maxFileBytes"],
    [{ root: "x", capture: { vcs: "git" } }, "capture.vcs"],
    [{ root: "x", missingRoot: "make" }, "missingRoot"],
  ] as const) {
    const opened = openWorkspace(options as unknown as Parameters<typeof openWorkspace>[0]);
    await expect(opened).rejects.toMatchObject({ code: "option.invalid", details: { field } });
  }
  await expect(readWorkspace({ root: 3 as unknown as string })).rejects.toMatchObject({ code: "option.invalid" });
});

it("capture settings stay with the root until they are changed (U11)", async () => {
  await using place = new Playground();
  place.write({ "node_modules/x": "x", f: "0" });
  const first = await place.open({ capture: { exclude: ["node_modules"] } });
  expect((await first.checkpoint()).omitted).toEqual({ excluded: 1 });
  await first.close();
  await using second = await place.open();
  expect((await second.checkpoint()).omitted).toEqual({ excluded: 1 });
});

it("a first session makes its root, one level of it", async () => {
  await using place = new Playground();
  await (await place.open({ root: place.at("new") })).close();
  expect(fs.statSync(place.at("new")).isDirectory()).toBe(true);
  await expect(place.open({ root: place.at("no/such/parent") })).rejects.toMatchObject({
    code: "workspace_placement.canonicalize_failed",
  });
});
