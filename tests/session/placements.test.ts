/** Sessions in the placements of a rig (P1): roots of their own with a seed, one shared root, and none. */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { SnapshotRef } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { Playground, listTree } from "../playground.js";

const defineRig = rigDefiner(() => ({}));
const talker = () => defineLoop({ name: "talker", model: scriptedModel([{ text: "Hello." }, { text: "Again." }]) });

/** A tree in the store, to begin with. */
async function seedOf(place: Playground): Promise<SnapshotRef> {
  place.write({ "src/a": "a", run: "#!/bin/sh\n" });
  fs.chmodSync(place.at("run"), 0o755);
  await using workspace = await place.open();
  return (await workspace.checkpoint()).ref;
}

it("each session has a root of its own, filled from the seed, and a root that is gone is built again on resume", async () => {
  await using place = new Playground();
  const seed = await seedOf(place);
  const baseDir = path.join(place.dir, "sessions");
  const rig = () =>
    place
      .storage()
      .then((storage) => defineRig({ storage, loops: [talker()], sessionWorkspaces: { baseDir }, snapshots: "idle" }));
  const [a, b] = [await (await rig()).startSession({ seed }), await (await rig()).startSession()];
  expect(a.workspace.root).toBe(path.join(baseDir, a.id));
  expect(listTree(a.workspace.root)).toEqual(place.tree());
  expect(listTree(b.workspace.root)).toEqual({});
  expect((await a.workspace.history()).checkpoints).toMatchObject([{ trigger: "seed", consistency: "quiescent" }]);

  await a.workspace.exec(["sh", "-c", "echo more > src/b"], { stdio: "ignore" });
  const left = listTree(a.workspace.root);
  const { id } = a;
  await a.close();
  await b.close();
  fs.rmSync(path.join(baseDir, id), { recursive: true });
  const resumed = await (await rig()).resumeSession(id);
  expect(listTree(resumed.workspace.root)).toEqual(left);
  expect(await (await resumed.submit("still there?")).done).toMatchObject({ status: "done", text: "Hello." });
  await resumed.close();
});

it("two sessions work in a shared root at once, fuzzily, and a seed is refused there", async () => {
  await using place = new Playground();
  const seed = await seedOf(place);
  const rig = defineRig({
    storage: await place.storage(),
    loops: [talker()],
    sharedWorkspace: { root: place.root },
    snapshots: "turn-done",
  });
  await expect(rig.startSession({ seed })).rejects.toMatchObject({ code: "workspace_seed.not_possible" });
  await using a = await rig.startSession();
  await using b = await rig.startSession();
  await Promise.all([a.submit("one").then((turn) => turn.done), b.submit("two").then((turn) => turn.done)]);
  const { turns, checkpoints } = await a.workspace.history();
  expect(turns.map(({ number }) => number)).toEqual([1, 2]);
  expect(
    checkpoints
      .filter(({ sessionId }) => sessionId === a.id || sessionId === b.id)
      .map(({ consistency }) => consistency),
  ).not.toContain("quiescent");
});

it("a seed fills an empty exclusive root, and never one that holds something", async () => {
  await using place = new Playground();
  const seed = await seedOf(place);
  const root = path.join(place.dir, "empty");
  fs.mkdirSync(root);
  const rig = defineRig({
    storage: await place.storage(),
    loops: [talker()],
    exclusiveWorkspace: { root },
    snapshots: "manual",
  });
  const session = await rig.startSession({ seed });
  expect(listTree(root)).toEqual(place.tree());
  await session.close();
  await expect(rig.startSession({ seed })).rejects.toMatchObject({ code: "workspace_seed.not_possible" });
  expect(listTree(root)).toEqual(place.tree());
  // What was refused holds nothing.
  await (await rig.startSession()).close();
});

it("without a placement there is no workspace, and everything else works", async () => {
  await using place = new Playground();
  const rig = defineRig({ storage: await place.storage(), loops: [talker()] });
  const session = await rig.startSession();
  const turn = await session.submit("hi");
  expect(await turn.done).toMatchObject({ status: "done", text: "Hello." });
  expect(turn.number).toBe(1);
  const look = (): unknown => (session as unknown as { readonly workspace: unknown }).workspace;
  expect(look).toThrow(expect.objectContaining({ code: "workspace.unavailable" }) as Error);
  await session.close();
  await expect(session.submit("more")).rejects.toMatchObject({ code: "session.closed" });
});
