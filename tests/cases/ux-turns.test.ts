/** What people are told of an agent's turns that cannot be taken back, or not wholly. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { LooprigError } from "../../src/core/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { Playground } from "../playground.js";
import { agentRig, call, play } from "./agent.js";
import { looprig } from "./command-line.js";
import { filesBelow, stamps } from "./look.js";

/** A disk behind the storage of `place` that can be full for as long as one likes. */
async function fillableDisk(place: Playground): Promise<{ full: boolean }> {
  const disk = { full: false };
  const { blobs } = await place.storage();
  const put = blobs.put.bind(blobs);
  blobs.put = async (...args) => {
    if (disk.full) throw new LooprigError("storage.full", "Cannot put: the disk is full", { path: "state" });
    return put(...args);
  };
  return disk;
}

describe("C037 undo of a turn whose capture failed", () => {
  const change = "echo A > src/a.txt; echo new > src/new.txt; rm src/b.txt";
  const files = { "src/a.txt": "a\n", "src/b.txt": "b\n" };

  it.each([
    ["in a root that was never captured", false],
    ["in a root that was captured before", true],
  ])(
    "before its first step, %s, is visible before the model is asked, and undo says that no file was restored and why (K5)",
    async (_, known) => {
      await using place = new Playground();
      place.write(files);
      if (known) {
        await using before = await place.open();
        await before.checkpoint();
      }
      const disk = await fillableDisk(place);
      const rig = await agentRig(place, [{ calls: [call("Bash", { command: change })] }, { text: "Done." }]);
      await using session = await rig.startSession();
      disk.full = true;
      const turn = await session.submit("change things");
      const seen: SessionEvent[] = [];
      for await (const part of turn) if ("seq" in part) seen.push(part);
      expect(await turn.done).toMatchObject({ status: "done" });
      const types = seen.map(({ type }) => type);
      expect(types.indexOf("checkpoint-failed")).toBeLessThan(types.indexOf("step-started"));
      expect(seen.find(({ type }) => type === "checkpoint-failed")).toMatchObject({
        ...{ trigger: "baseline", code: "storage.full" },
      });
      await session.idle();
      disk.full = false;

      expect((await session.workspace.history()).turns).toMatchObject([{ number: 1, protected: false }]);
      const left = place.tree();
      // Nothing was captured before it; with a checkpoint of before, that is what it is compared with.
      const details = known
        ? { turn: "t1", since: "c1", paths: ["src/a.txt", "src/b.txt", "src/new.txt"] }
        : { turn: "t1" };
      await expect(session.workspace.undo()).rejects.toMatchObject({ code: "undo.unprotected", details });
      expect(place.tree()).toEqual(left);
      // The failure is no switch that stays off: the next turn is protected again.
      await session.close();
      const next = await agentRig(place, [{ calls: [call("Bash", { command: "rm src/new.txt" })] }, { text: "Done." }]);
      await using resumed = await next.resumeSession(session.id);
      await play(resumed, "go on");
      expect(await resumed.workspace.undo({ turn: "t2" })).toMatchObject({ result: "done", written: ["src/new.txt"] });
      expect(place.tree()).toEqual(left);
    },
  );

  it("after its last step is refused with every path that the turn changed, also on the command line", async () => {
    await using place = new Playground();
    place.write(files);
    const disk = await fillableDisk(place);
    // The disk is full from when the command has begun, and until the turn has ended.
    const command = `${change}; : > ../begun; while [ ! -e ../go ]; do sleep 0.02; done`;
    const rig = await agentRig(place, [{ calls: [call("Bash", { command })] }, { text: "Done." }]);
    const session = await rig.startSession();
    const turn = await session.submit("change things");
    await expect.poll(() => fs.existsSync(path.join(place.dir, "begun")), { timeout: 30_000 }).toBe(true);
    disk.full = true;
    fs.writeFileSync(path.join(place.dir, "go"), "");
    const seen: SessionEvent[] = [];
    for await (const part of turn) if ("seq" in part) seen.push(part);
    await session.idle();
    disk.full = false;
    expect(seen.find(({ type }) => type === "checkpoint-failed")).toMatchObject({ code: "storage.full" });
    const left = stamps(place.root);
    const paths = ["src/a.txt", "src/b.txt", "src/new.txt"];
    await expect(session.workspace.undo()).rejects.toMatchObject({
      ...{ code: "undo.unprotected", details: { turn: "t1", paths } },
    });
    await session.close();

    const told = await looprig(place, ["undo", "--yes"]);
    expect(told.code).toBe(6);
    for (const name of paths) expect(told.stderr).toContain(name);
    expect(stamps(place.root)).toEqual(left);
    expect((await looprig(place, ["log"])).stdout).toMatch(/^.*!.*t1 /m);
  });
});

describe("C126 a restore to an earlier turn of a long session", () => {
  const turns = 10;
  const steps = Array.from({ length: turns }, (_, i) => [
    { calls: [call("Bash", { command: `echo "turn ${i + 1}" > made-${i + 1}.txt` })] },
    { text: `Turn ${i + 1} is done.` },
  ]).flat();

  const eventsOf = async (session: { events(): AsyncIterable<SessionEvent> }): Promise<readonly SessionEvent[]> => {
    const events: SessionEvent[] = [];
    for await (const event of session.events()) events.push(event);
    return events;
  };
  const said = (events: readonly SessionEvent[]): readonly (string | undefined)[] =>
    events.flatMap((event) => (event.type === "turn-done" ? [event.text] : []));

  it("whose checkpoint was never taken is not offered and refused whole; the others are, and what came later stays", async () => {
    await using place = new Playground();
    const disk = await fillableDisk(place);
    const rig = await agentRig(place, steps);
    const session = await rig.startSession();
    const trees: ReturnType<Playground["tree"]>[] = [];
    for (let number = 1; number <= turns; number++) {
      disk.full = number === 3;
      expect((await play(session, `input ${number}`)).result).toMatchObject({ status: "done" });
      trees.push(place.tree());
    }
    const { checkpoints } = await session.workspace.history();
    expect(checkpoints.filter(({ turn }) => turn === 3)).toEqual([]);
    for (const action of ["t3", "t3^"]) {
      await expect(session.workspace.restore(action)).rejects.toMatchObject({ code: "ref.unknown" });
    }
    expect(place.tree()).toEqual(trees[turns - 1]);

    expect(await session.workspace.restore("t5")).toMatchObject({ result: "done", written: [], conflicts: [] });
    expect(place.tree()).toEqual(trees[4]);
    // The later part is there still: as checkpoints, and in the conversation.
    expect(await session.workspace.restore("t10")).toMatchObject({ result: "done" });
    expect(place.tree()).toEqual(trees[9]);
    await session.close();
    expect(said(await eventsOf(session))).toEqual(Array.from({ length: turns }, (_, i) => `Turn ${i + 1} is done.`));
  });

  it("whose content is gone fails as a whole: no file moves and no event of the conversation does", async () => {
    await using place = new Playground();
    const packs = (): readonly string[] => filesBelow(place.stateDir).filter((file) => file.includes("/packs/"));
    const rig = await agentRig(place, steps);
    const session = await rig.startSession();
    let ofThree: readonly string[] = [];
    for (let number = 1; number <= turns; number++) {
      const before = packs();
      await play(session, `input ${number}`);
      if (number === 3) ofThree = packs().filter((pack) => !before.includes(pack));
    }
    // Turn 4 and later keep what turn 3 made; so that only the checkpoints have it, it has to be gone from the tree.
    await session.workspace.exec(["sh", "-c", "rm made-3.txt"], { stdio: "ignore" });
    await session.close();
    for (const pack of ofThree) fs.rmSync(pack);
    expect(ofThree.length).toBeGreaterThan(0);
    const before = await eventsOf(session);
    const tree = place.tree();
    const untouched = stamps(place.root);

    const told = await looprig(place, ["restore", "t3", "--yes"]);
    expect(told.code).toBe(1);
    expect(told.stderr).toContain("the store holds no such snapshot");
    expect(place.tree()).toEqual(tree);
    expect(stamps(place.root)).toEqual(untouched);
    const again = await agentRig(place, [{ text: "Still here." }]);
    await using resumed = await again.resumeSession(session.id);
    expect((await play(resumed, "are you there?")).result).toMatchObject({ status: "done", text: "Still here." });
    await resumed.close();
    const after = await eventsOf(resumed);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.filter(({ type }) => type === "workspace-restored")).toEqual([]);
  });

  it("is refused while a turn runs, and then neither files nor conversation have moved", async () => {
    await using place = new Playground();
    const rig = await agentRig(place, [
      ...steps.slice(0, 2),
      { calls: [call("Bash", { command: ": > begun; while [ ! -e go ]; do sleep 0.02; done" })] },
      { text: "Done." },
    ]);
    await using session = await rig.startSession();
    await play(session, "input 1");
    const turn = await session.submit("wait");
    await expect.poll(() => fs.existsSync(place.at("begun")), { timeout: 30_000 }).toBe(true);
    await expect(session.workspace.restore("t1^")).rejects.toMatchObject({ code: "session.busy" });
    expect(place.read("made-1.txt")).toBe("turn 1\n");
    place.write({ go: "" });
    expect(await turn.done).toMatchObject({ status: "done", text: "Done." });
  });
});
