/** A session for reading: beside the process that has it open, after it, and without a workspace. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { readSession } from "../../src/session/index.js";
import type { SessionView } from "../../src/session/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { journalOf, rigOn, wrote } from "./scenes.js";

async function eventsOf(view: SessionView, from = 1): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = [];
  for await (const event of view.events({ from })) events.push(event);
  return events;
}

async function diffOf(view: SessionView): Promise<readonly string[]> {
  const shown: string[] = [];
  for await (const { kind, path } of view.diff()) shown.push(`${kind} ${path}`);
  return shown;
}

describe("readSession", () => {
  it("shows a session that is at work in another process, takes no lease of it and writes nothing to its journal", async () => {
    await using place = new Playground();
    place.write({ f: "0" });
    const child = startProcess("tests/processes/killed-session.ts", [place.root, place.stateDir, "model"]);
    const { id } = JSON.parse(await child.line()) as { id: string };
    const storage = await place.storage();
    const held = await storage.leaser.list("");
    const view = await readSession(storage, id);
    expect(view).toMatchObject({ id, placement: "exclusive" });
    const history = await view.history();
    expect(history).toMatchObject({
      state: "live",
      turns: [{ number: 1, loop: "operator", input: "do it", kind: "prompt", state: "running" }],
      loops: [{ name: "operator", messages: [{ role: "user", text: "do it" }, { role: "assistant" }] }],
      openGates: [],
    });
    expect((await view.checkpoints())[0]).toMatchObject({ number: 1, trigger: "baseline", sessionId: id });
    expect((await view.changes({ since: "t1^" })).map(({ kind, path, by }) => [kind, path, by.kind])).toEqual([
      ["edited", "f", "session"],
    ]);
    expect(await eventsOf(view, 3)).toEqual((await journalOf(storage, id)).slice(2));
    // Its holder is the same as before, and still at work.
    expect(await storage.leaser.list("")).toEqual(held);
    expect((await view.history()).state).toBe("live");
    child.kill("SIGKILL");
    await child.ended;
    expect(await view.history()).toMatchObject({ state: "interrupted", turns: [{ state: "unsettled" }] });
  });

  it("folds what has been said and done: several turns, their ends, questions that wait, a fault", async () => {
    await using place = new Playground();
    const storage = await place.storage();
    const steps = [wrote("f", "1"), { text: "One." }, { calls: [{ tool: "Careful", input: { what: "it" } }] }];
    const session = await (await rigOn(place, { steps })).startSession();
    await (
      await session.submit("write")
    ).done;
    const view = await readSession(storage, session.id);
    expect(await diffOf(view)).toEqual(["added f"]);
    const turn = await session.submit("ask");
    for await (const part of turn) if (part.type === "gate-opened") break;
    const { openGates, turns } = await view.history();
    expect(openGates).toMatchObject([{ tool: "Careful", input: { what: "it" } }]);
    expect(turns).toMatchObject([{ state: "done", text: "One.", steps: 2 }, { state: "running" }]);
    await session.interrupt({ reason: "enough" });
    await session.close();
    expect(await view.history()).toMatchObject({
      ...{ state: "closed", openGates: [] },
      turns: [{ state: "done" }, { state: "interrupted", reason: "enough" }],
    });
    expect((await view.history()).faulted).toBeUndefined();
    expect((await view.checkpoints()).every(({ sessionId }) => sessionId === session.id)).toBe(true);
  });

  it("tells its own changes from those of others in a shared root", async () => {
    await using place = new Playground();
    const storage = await place.storage();
    const one = await (
      await rigOn(place, { steps: [wrote("f", "1"), { text: "." }], placement: "shared" })
    ).startSession();
    const two = await (
      await rigOn(place, { steps: [wrote("g", "1"), { text: "." }], placement: "shared" })
    ).startSession();
    await (
      await one.submit("write")
    ).done;
    await (
      await two.submit("write")
    ).done;
    await one.close();
    await two.close();
    expect(await diffOf(await readSession(storage, one.id))).toEqual(["added f"]);
    expect(await diffOf(await readSession(storage, two.id))).toEqual(["added g"]);
  });

  it("of a session without a placement has everything but a workspace (P2)", async () => {
    const storage = createMemoryStorage();
    const rig = rigDefiner(() => ({}))({
      ...{ storage, loops: [defineLoop({ name: "talker", model: scriptedModel([{ text: "Hello." }]) })] },
    });
    const session = await rig.startSession();
    await (
      await session.submit("hi")
    ).done;
    await session.close();
    const view = await readSession(storage, session.id);
    expect(await view.history()).toMatchObject({
      ...{ state: "closed", turns: [{ input: "hi", text: "Hello.", state: "done" }] },
      loops: [{ name: "talker", messages: [{ role: "user", text: "hi" }, { role: "assistant" }] }],
    });
    await expect(view.changes()).rejects.toMatchObject({ code: "workspace.unavailable" });
    await expect(view.checkpoints()).rejects.toMatchObject({ code: "workspace.unavailable" });
    expect(() => view.workspace).toThrow(expect.objectContaining({ code: "workspace.unavailable" }) as Error);
  });

  it("works where the root is gone, for all that is not the live tree", async () => {
    await using place = new Playground();
    const session = await (await rigOn(place, { steps: [wrote("f", "1"), { text: "One." }] })).startSession();
    await (
      await session.submit("write")
    ).done;
    await session.close();
    fs.rmSync(place.root, { recursive: true });
    const view = await readSession(await place.storage(), session.id);
    expect(await diffOf(view)).toEqual(["added f"]);
    await expect(view.changes()).rejects.toMatchObject({ code: "workspace_root.changed" });
  });

  it("refuses what is no id, and an id that nobody has", async () => {
    const storage = createMemoryStorage();
    await expect(readSession(storage, "x")).rejects.toMatchObject({ code: "session_id.invalid" });
    await expect(readSession(storage, "5e551000-0000-4000-8000-000000000009")).rejects.toMatchObject({
      code: "session.unknown",
    });
  });
});
