/** Dropping on a real root: what goes is said to be gone and nothing worse, what stays can be used as before. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Playground } from "../../../tests/playground.js";
import type { CanonicalRoot } from "../../core/index.js";
import { createWorkspaceStore } from "../../workspace-store/index.js";
import { deleteSession } from "../session-list.js";
import { dropCheckpoints, planDrop } from "./drop-checkpoints.js";

let here: Playground;
const root = (): CanonicalRoot => here.root as CanonicalRoot;
const pinIds = async (): Promise<string[]> =>
  (await createWorkspaceStore(await here.storage()).pins()).map(({ id }) => id).sort();

/** One session of three turns, each between two checkpoints of its own: c1 and c2, c3 and c4, c5 and c6; c3 is equal to c2. */
async function threeTurns(): Promise<void> {
  await using workspace = await here.open();
  for (const content of ["two", "three", "four"]) await workspace.exec(here.sh(`printf ${content} > a`));
}

beforeEach(() => {
  here = new Playground("root", { quick: true });
  here.write({ a: "one", "not ours": "x" });
});
afterEach(() => here[Symbol.asyncDispose]());

describe("dropped checkpoints", () => {
  it("are recorded and unpinned; a look beforehand says the same and changes nothing", async () => {
    await threeTurns();
    const storage = await here.storage();
    const before = await pinIds();
    const planned = await planDrop(storage, root(), { last: 1 });
    expect(await pinIds()).toEqual(before);
    // c6 is the newest, and t3, which undo would take next, began at c5, which is equal to c4.
    expect(planned).toMatchObject({ kept: 3, entries: ["t1", "t2"] });
    expect(planned.checkpoints.map(({ number }) => number)).toEqual([1, 2, 3]);

    const dropped = await dropCheckpoints(storage, root(), { last: 1 });
    expect({ ...dropped, pins: dropped.pins.length }).toEqual({ ...planned, pins: 3 });
    expect(await pinIds()).toEqual(["c4", "c5", "c6"]);
    expect(await planDrop(storage, root(), { last: 1 })).toMatchObject({ kept: 3, checkpoints: [], pins: [] });
  });

  it("stand in the history as dropped, and are refused as dropped by whatever needs their trees", async () => {
    await threeTurns();
    await dropCheckpoints(await here.storage(), root(), { last: 1 }, { clock: () => new Date("2026-11-30T12:00:00Z") });
    await using view = await here.view();
    const history = await view.history();
    expect(history.checkpoints.map(({ dropped }) => dropped !== undefined)).toEqual([
      ...[true, true, true, false, false, false],
    ]);
    expect(history.turns.map(({ number, dropped }) => [number, dropped?.getUTCDate()])).toEqual([
      ...[
        [1, 30],
        [2, 30],
        [3, undefined],
      ],
    ]);
    const refused = {
      code: "snapshot.dropped",
      message: expect.stringContaining("dropped by gc on 2026-11-30") as string,
    };
    await expect(view.tree("c1")).rejects.toMatchObject({ ...refused, details: { name: "c1" } });
    await expect(view.tree("t2^")).rejects.toMatchObject({ ...refused, details: { name: "c3" } });
    await expect(view.plan({ kind: "restore", ref: "c2" })).rejects.toMatchObject(refused);
    await expect(view.plan({ kind: "undo", turn: "t2" })).rejects.toMatchObject({
      ...refused,
      details: { name: "t2" },
    });
    await expect(view.materialize("c1", `${here.dir}/out`)).rejects.toMatchObject(refused);
    await expect(view.diff({ turn: "t1" })[Symbol.asyncIterator]().next()).rejects.toMatchObject(refused);
    expect(await view.changes({ since: "c4" })).toMatchObject([{ path: "a", by: { turn: 3 } }]);
  });

  it("leave undo and redo of the newest turn as they were, and the next undo says why it stops", async () => {
    await threeTurns();
    await dropCheckpoints(await here.storage(), root(), { last: 1 });
    await using workspace = await here.open();
    expect(await workspace.undo()).toMatchObject({ result: "done", entry: "t3" });
    expect(here.read("a")).toBe("three");
    await expect(workspace.undo()).rejects.toMatchObject({ code: "snapshot.dropped", details: { name: "t2" } });
    expect(await workspace.redo()).toMatchObject({ result: "done", entry: "t3" });
    expect(here.read("a")).toBe("four");
  });

  it("are there again when the same tree is captured again", async () => {
    await threeTurns();
    await dropCheckpoints(await here.storage(), root(), { last: 1 });
    await using workspace = await here.open();
    here.write({ a: "one" });
    const taken = await workspace.checkpoint();
    const tree = await workspace.tree("c1");
    expect(tree.ref).toBe(taken.ref);
    expect((await workspace.history()).checkpoints[0]?.dropped).toBeUndefined();
  });

  it("take the second pins of restores with them, when nothing else is kept by those", async () => {
    await threeTurns();
    {
      await using workspace = await here.open();
      await workspace.undo();
      await workspace.exec(here.sh("printf five > a"));
      await workspace.exec(here.sh("printf six > a"));
    }
    const plans = (ids: readonly string[]): number => ids.filter((id) => id.startsWith("p")).length;
    expect(plans(await pinIds())).toBe(1);
    const later = { clock: () => new Date(Date.now() + 60_000) };
    const { entries } = await dropCheckpoints(await here.storage(), root(), { withinMs: 0 }, later);
    expect(entries).toEqual(["t1", "t2", "t3", "t4"]);
    expect(plans(await pinIds())).toBe(0);
  });

  it("a root somebody is at work in is left alone", async () => {
    await threeTurns();
    const storage = await here.storage();
    const before = await pinIds();
    await using workspace = await here.open();
    expect(await planDrop(storage, root(), { last: 1 })).toMatchObject({ skipped: "in use", checkpoints: [] });
    expect(await dropCheckpoints(storage, root(), { last: 1 })).toMatchObject({ skipped: "in use", pins: [] });
    expect(workspace.root).toBe(here.root);
    expect(await pinIds()).toEqual(before);
  });

  it("a drop that was cut short after its record is gone on with, and a deleted session leaves no record", async () => {
    await threeTurns();
    const storage = await here.storage();
    const store = createWorkspaceStore(storage);
    const [first] = (await (await here.view()).history()).checkpoints;
    await dropCheckpoints(storage, root(), { last: 1 });
    // As the kill would have left it.
    if (first === undefined) throw new Error("there is a c1");
    await store.pin({ owner: first.sessionId, id: "c1" }, [first.ref]);
    expect(await dropCheckpoints(storage, root(), {})).toMatchObject({ checkpoints: [], pins: [{ id: "c1" }] });
    expect(await pinIds()).toEqual(["c4", "c5", "c6"]);
    await deleteSession(storage, first.sessionId);
    expect(await storage.kv.list("dropped/")).toEqual([]);
  });
});
