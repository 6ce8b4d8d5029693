/** Several loops in one session: one tree, separate histories; which one has the input; what all are told (U8, C8). */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { Playground } from "../playground.js";
import { journalOf, only, put, recordingModel, rigOn, waiter, wrote } from "./scenes.js";

/** Two loops, each with a model of its own that keeps what it was told. */
function pair(first: readonly ScriptStep[], second: readonly ScriptStep[], tools = [put]) {
  const [writer, critic] = [recordingModel(first), recordingModel(second)];
  const loops = [
    defineLoop({ name: "writer", model: writer, tools }),
    defineLoop({ name: "critic", model: critic, tools }),
  ];
  return { writer, critic, loops };
}

describe("several primers", () => {
  it("have histories of their own, one tree, and input goes to the active one, also after a restart", async () => {
    await using place = new Playground();
    const { writer, critic, loops } = pair(
      [wrote("f", "1"), { text: "Written." }],
      [{ text: "I see." }, { text: "Still me." }],
    );
    const rig = await rigOn(place, { loops, primers: ["writer", "critic"] });
    const session = await rig.startSession();
    await (
      await session.submit("write")
    ).done;
    const critics = await session.setActiveLoop("critic");
    expect(await session.setActiveLoop("critic")).toBe(critics);
    expect(await (await session.submit("judge")).done).toMatchObject({ text: "I see." });
    expect(critic.prompts[0]).not.toContain("Written.");
    expect(writer.prompts.join()).not.toContain("judge");
    await expect(session.setActiveLoop("nobody")).rejects.toMatchObject({
      code: "session.unknown_loop",
      message: expect.stringContaining("name it in `primers`") as unknown,
    });
    await session.close();

    await using again = await rig.resumeSession(session.id);
    expect(await (await again.submit("and now?")).done).toMatchObject({ text: "Still me." });
    expect(critic.prompts.at(-1)).toContain("I see.");
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "loop-started").map(({ name }) => name)).toEqual(["writer", "critic"]);
    expect(only(events, "active-loop-changed")).toMatchObject([{ name: "critic", loopId: critics }]);
    expect((await again.workspace.history()).turns.map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it("a change of the active loop while a turn runs counts from the next turn on, in the order of the calls", async () => {
    await using place = new Playground();
    const { tool, begun, go } = waiter();
    const { critic, loops } = pair([{ calls: [{ tool: "Wait", input: {} }] }, { text: "One." }], [{ text: "Two." }], [
      tool,
    ] as never);
    await using session = await (await rigOn(place, { loops, primers: ["writer", "critic"] })).startSession();
    const first = await session.submit("a");
    await begun.reached;
    const second = await session.submit("b");
    await Promise.all([
      session.setActiveLoop("critic"),
      session.setActiveLoop("writer"),
      session.setActiveLoop("critic"),
    ]);
    expect(critic.prompts).toEqual([]);
    go.reach();
    expect([await first.done, await second.done]).toMatchObject([{ text: "One." }, { text: "Two." }]);
    const changed = only(await journalOf(await place.storage(), session.id), "active-loop-changed");
    expect(changed.map(({ name }) => name)).toEqual(["critic", "writer", "critic"]);
  });

  it("a new one is started on resume; one that is gone is breaking, and when that is accepted another has the input (R5)", async () => {
    await using place = new Playground();
    const { loops } = pair([{ text: "One." }], [{ text: "Two." }]);
    const [writer, critic] = loops;
    if (writer === undefined || critic === undefined) throw new Error("two loops");
    const session = await (await rigOn(place, { loops: [writer] })).startSession();
    await session.close();
    const both = await rigOn(place, { loops, primers: ["writer", "critic"] });
    const second = await both.resumeSession(session.id);
    await second.setActiveLoop("critic");
    expect(await (await second.submit("who?")).done).toMatchObject({ text: "Two." });
    await second.close();

    const without = await rigOn(place, { loops: [writer] });
    // Started with the writer alone, so what is gone is not what the stored manifest has, but what the session used.
    const third = await without.resumeSession(session.id, { onDrift: () => "accept" });
    expect(await (await third.submit("who now?")).done).toMatchObject({ text: "One." });
    await third.close();
    const changed = only(await journalOf(await place.storage(), session.id), "active-loop-changed");
    expect(changed.map(({ name }) => name)).toEqual(["critic", "writer"]);
  });
});

describe("U8: every loop is told which paths changed beneath it", () => {
  const note = /by the user changed the workspace/g;
  const foreignNote = /in another session changed the workspace/g;

  it("once, with the next model call, by an undo of its own session; a resumed one says the same", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    const { writer, critic, loops } = pair(
      [wrote("f", "1"), { text: "Written." }, { text: "Aha." }, { text: "Oh." }],
      [{ text: "Two." }],
    );
    const rig = await rigOn(place, { loops, primers: ["writer", "critic"] });
    const session = await rig.startSession();
    await (
      await session.submit("write")
    ).done;
    expect((await session.workspace.undo()).result).toBe("done");
    await (
      await session.submit("go on")
    ).done;
    expect(writer.prompts.at(-1)).toContain('An undo by the user changed the workspace: put back \\"f\\"');
    await session.setActiveLoop("critic");
    await (
      await session.submit("judge")
    ).done;
    expect(critic.prompts.at(-1)?.match(note)).toHaveLength(1);
    await session.setActiveLoop("writer");
    await session.close();
    await using again = await rig.resumeSession(session.id);
    await (
      await again.submit("more")
    ).done;
    // Still once, and where it was: what was said before begins what is said now.
    expect(writer.prompts.at(-1)?.match(note)).toHaveLength(1);
    const told = (at: number): readonly unknown[] => JSON.parse(writer.prompts.at(at) ?? "[]") as readonly unknown[];
    expect(told(-1).slice(0, told(-2).length)).toEqual(told(-2));
  });

  it("once, by what was restored in its root while it was closed, and never of what was before it", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    {
      // Restored before the session ever was: nobody here saw anything then.
      await using workspace = await place.open();
      await workspace.exec(place.sh("echo x > old"), { stdio: "ignore" });
      await workspace.undo();
    }
    const model = recordingModel([wrote("f", "1"), { text: "Written." }, { text: "Aha." }, { text: "Oh." }]);
    const rig = await rigOn(place, { model, tools: [put] });
    const session = await rig.startSession();
    await (
      await session.submit("write")
    ).done;
    await session.close();
    {
      await using workspace = await place.open();
      expect((await workspace.undo()).result).toBe("done");
    }
    expect(place.read("f")).toBe("0");
    const second = await rig.resumeSession(session.id);
    await (
      await second.submit("go on")
    ).done;
    expect(model.prompts.at(-1)?.match(foreignNote)).toHaveLength(1);
    await second.close();
    await using third = await rig.resumeSession(session.id);
    await (
      await third.submit("more")
    ).done;
    expect(model.prompts.at(-1)?.match(foreignNote)).toHaveLength(1);
    expect(only(await journalOf(await place.storage(), session.id), "restore-noticed")).toMatchObject([
      { action: "undo", entry: "t2", written: ["f"], deleted: [], more: 0 },
    ]);
  });

  it("also by another session at work in a shared root", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    const model = recordingModel([{ text: "One." }, { text: "Two." }, { text: "Three." }]);
    await using session = await (await rigOn(place, { model, placement: "shared" })).startSession();
    await using other = await (
      await rigOn(place, { steps: [wrote("f", "1"), { text: "Mine." }], placement: "shared" })
    ).startSession();
    await (
      await session.submit("hello")
    ).done;
    await (
      await other.submit("write")
    ).done;
    expect((await other.workspace.undo({ includeWindow: true })).result).toBe("done");
    for (const input of ["and?", "again?"]) await (await session.submit(input)).done;
    expect(model.prompts[1]?.match(foreignNote)).toHaveLength(1);
    expect(model.prompts[2]?.match(foreignNote)).toHaveLength(1);
  });

  it("in the middle of its turn, between two steps, and has to read again what it saw there", async () => {
    await using place = new Playground();
    place.write({ f: "0\n" });
    const { tool: wait, begun, go } = waiter();
    const model = recordingModel([
      {
        calls: [
          { tool: "Read", input: { file_path: "f" } },
          { tool: "Wait", input: {} },
        ],
      },
      { calls: [{ tool: "Write", input: { file_path: "f", content: "mine\n" } }] },
      { text: "I see." },
    ]);
    await using other = await (
      await rigOn(place, { steps: [wrote("f", "1\n"), { text: "Mine." }], placement: "shared" })
    ).startSession();
    await (
      await other.submit("write")
    ).done;
    await using session = await (
      await rigOn(place, { model, tools: [fileTools(), wait], placement: "shared" })
    ).startSession();
    const turn = await session.submit("read, and write");
    await begun.reached;
    // Away and back again: the bytes are the ones it read, and still it is told.
    expect((await other.workspace.undo({ includeWindow: true })).result).toBe("done");
    expect((await other.workspace.redo()).result).toBe("done");
    expect(place.read("f")).toBe("1\n");
    go.reach();
    expect(await turn.done).toMatchObject({ status: "done", text: "I see." });
    expect(model.prompts[0]?.match(foreignNote)).toBeNull();
    expect(model.prompts[1]?.match(foreignNote)).toHaveLength(2);
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "restore-noticed")).toMatchObject([{ action: "undo" }, { action: "redo" }]);
    expect(only(events, "tool-done").at(-1)).toMatchObject({ name: "Write", data: { code: "file.stale" } });
    expect(place.read("f")).toBe("1\n");
    // Each stays where it was told.
    const told = (at: number): readonly unknown[] => JSON.parse(model.prompts.at(at) ?? "[]") as readonly unknown[];
    expect(told(-1).slice(0, told(-2).length)).toEqual(told(-2));
  });

  it("of a restore of thousands of paths, with a bounded list", async () => {
    await using place = new Playground();
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`many/f${i}`, `${i}`]));
    place.write(many);
    const model = recordingModel([{ text: "One." }, { text: "Two." }]);
    const rig = await rigOn(place, { model });
    const session = await rig.startSession();
    await (
      await session.submit("hello")
    ).done;
    await session.close();
    {
      await using workspace = await place.open();
      const { ref } = await workspace.checkpoint();
      await workspace.exec(place.sh("rm -r many"), { stdio: "ignore" });
      await workspace.restore(ref, { includeWindow: true });
    }
    await using again = await rig.resumeSession(session.id);
    await (
      await again.submit("go on")
    ).done;
    const [noticed] = only(await journalOf(await place.storage(), session.id), "restore-noticed");
    expect((noticed?.written.length ?? 0) + (noticed?.deleted.length ?? 0)).toBeLessThanOrEqual(100);
    expect(noticed?.more).toBeGreaterThan(200);
    expect(model.prompts.at(-1)).toContain(`and ${noticed?.more ?? 0} more`);
  });
});

describe("C8: what a loop saw of a path that an undo or restore changed is forgotten", () => {
  const read = { tool: "Read", input: { file_path: "f" } };
  const write = (content: string) => ({ tool: "Write", input: { file_path: "f", content } });

  it("so it has to read before it writes there again, and what did not change stays known", async () => {
    await using place = new Playground();
    place.write({ f: "0\n", g: "0\n" });
    const model = recordingModel([
      { calls: [read, { tool: "Read", input: { file_path: "g" } }] },
      { calls: [write("1\n")] },
      { text: "One." },
      { calls: [write("0\n2\n"), { tool: "Write", input: { file_path: "g", content: "1\n" } }] },
      { text: "Two." },
      { calls: [read] },
      { calls: [write("2\n")] },
      { text: "Three." },
    ]);
    await using session = await (await rigOn(place, { model, tools: [fileTools()] })).startSession();
    await (
      await session.submit("one")
    ).done;
    expect(place.read("f")).toBe("1\n");
    expect((await session.workspace.undo()).result).toBe("done");
    expect(place.read("f")).toBe("0\n");
    await (
      await session.submit("two")
    ).done;
    const done = only(await journalOf(await place.storage(), session.id), "tool-done");
    expect(
      done
        .slice(-2)
        .map(({ outcome }) => outcome)
        .sort(),
    ).toEqual(["error", "ok"]);
    expect([place.read("f"), place.read("g")]).toEqual(["0\n", "1\n"]);
    await (
      await session.submit("three")
    ).done;
    expect(fs.readFileSync(path.join(place.root, "f"), "utf8")).toBe("2\n");
  });
});
