/** A rig's session at work, on real storage: turns with tools, what is captured around them, and a resume. */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { defineTool } from "../../src/tool/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const defineRig = rigDefiner(() => ({}));

const put = defineTool({
  name: "Put",
  description: "Writes a file",
  requires: ["workspace"],
  inputSchema: z.object({ path: z.string(), text: z.string() }),
  execute: async ({ path: name, text }, { workspace }) => {
    using permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: [name] });
    permit.assertHeld();
    fs.writeFileSync(path.join(workspace.root, name), text);
    return `wrote ${name}`;
  },
});

const careful = defineTool({
  name: "Careful",
  description: "Asks first",
  inputSchema: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `did ${what}`,
});

async function rigOf(place: Playground, steps: readonly ScriptStep[]) {
  return defineRig({
    storage: await place.storage(),
    loops: [defineLoop({ name: "operator", model: scriptedModel(steps), tools: [put, careful] })],
    exclusiveWorkspace: { root: place.root },
    snapshots: "idle",
  });
}

it("a turn with tools is journaled, captured, shown, undone and redone", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const rig = await rigOf(place, [
    {
      text: "I will write.",
      calls: [
        { tool: "Put", input: { path: "f", text: "1" } },
        { tool: "Put", input: { path: "g", text: "new" } },
      ],
    },
    { text: "Done." },
  ]);
  await using session = await rig.startSession();
  const turn = await session.submit("write two files");
  const seen: string[] = [];
  let text = "";
  for await (const part of turn) {
    if (part.type === "text-delta") text += part.text;
    else if ("seq" in part) seen.push(part.type);
  }
  expect(await turn.done).toMatchObject({ status: "done", text: "Done.", steps: 2 });
  expect(text).toBe("I will write.Done.");
  expect([place.read("f"), place.read("g")]).toEqual(["1", "new"]);
  // The tool says nothing of its own writes, so each of its permits is a window. The two run at once, and a look for one may
  // see what the other wrote already: how many trees that makes is chance.
  const isLook = (type: string): boolean => type.startsWith("w");
  expect(seen.filter((type) => !isLook(type))).toEqual([
    "turn-started",
    "step-started",
    "tool-started",
    "tool-started",
    "tool-done",
    "tool-done",
    "step-done",
    "step-started",
    "step-done",
    "turn-done",
  ]);
  expect(seen.slice(0, 2)).toEqual(["turn-started", "workspace-checkpointed"]);
  for (const type of ["window-opened", "window-closed"]) expect(seen.filter((each) => each === type)).toHaveLength(2);
  expect(seen.filter((type) => type === "workspace-changed").length).toBeGreaterThan(0);
  await session.idle();
  expect((await session.workspace.undo()).result).toBe("done");
  expect(place.tree()).toEqual({ f: "file 644 0" });
  expect((await session.workspace.redo()).result).toBe("done");
  expect(place.read("g")).toBe("new");
});

it("another process goes on with the conversation, and with the numbers of the root", async () => {
  await using place = new Playground();
  const first = await (await rigOf(place, [{ text: "Hello." }])).startSession();
  await (
    await first.submit("hi")
  ).done;
  const { id } = first;
  await first.close();
  const session = await (await rigOf(place, [{ text: "Again." }])).resumeSession(id);
  const turn = await session.submit("and now?");
  expect(await turn.done).toMatchObject({ status: "done", text: "Again." });
  expect(turn.number).toBe(2);
  const events: SessionEvent[] = [];
  await session.close();
  for await (const event of session.events()) events.push(event);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.filter(({ type }) => type === "session-started")).toHaveLength(1);
  expect(events.filter(({ type }) => type === "loop-started")).toHaveLength(1);
});

it("a call that needs a yes waits for it, and is answered once", async () => {
  await using place = new Playground();
  const steps = [{ calls: [{ tool: "Careful", input: { what: "it" } }] }, { text: "Finished." }];
  await using session = await (await rigOf(place, steps)).startSession();
  const turn = await session.submit("do it");
  const gates: string[] = [];
  for await (const part of turn) {
    if (part.type !== "gate-opened") continue;
    gates.push(part.gateId);
    await session.respond(part.gateId, { approve: true });
  }
  expect(await turn.done).toMatchObject({ status: "done", text: "Finished." });
  expect(gates).toHaveLength(1);
  await expect(session.respond(gates[0] ?? "", { approve: true })).rejects.toMatchObject({
    code: "session.unknown_gate",
  });
});

it("an open question survives the process that asked it: the next one answers, and the turn goes on", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const child = startProcess("tests/processes/gated-session.ts", [place.root, place.stateDir]);
  const { id, gateId } = JSON.parse(await child.line()) as { id: string; gateId: string };
  child.kill("SIGKILL");
  await child.ended;

  await using session = await (await rigOf(place, [{ text: "Finished." }])).resumeSession(id);
  await session.respond(gateId, { approve: true });
  await session.idle();
  const { turns } = await session.workspace.history();
  expect(turns).toMatchObject([{ number: 1, state: "done", input: "do it" }]);
  await session.close();
  const events: SessionEvent[] = [];
  for await (const event of session.events()) events.push(event);
  expect(events.filter(({ type }) => type === "gate-opened")).toHaveLength(1);
  const done = events.find((event) => event.type === "tool-done");
  expect(done).toMatchObject({ outcome: "ok", text: "did it" });
  expect(events.find((event) => event.type === "turn-done")).toMatchObject({ text: "Finished." });
});

it("an interrupt ends the turn, keeps the session, and what the turn changed can be undone", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const rig = await rigOf(place, [
    { calls: [{ tool: "Put", input: { path: "f", text: "1" } }] },
    { calls: [{ tool: "Careful", input: { what: "wait" } }] },
    { text: "Second turn." },
  ]);
  await using session = await rig.startSession();
  const turn = await session.submit("go");
  for await (const part of turn) if (part.type === "gate-opened") break;
  await session.interrupt({ reason: "enough" });
  expect(await turn.done).toMatchObject({ status: "interrupted", reason: "enough" });
  await session.idle();
  expect((await session.workspace.undo()).result).toBe("done");
  expect(place.read("f")).toBe("0");
  expect(await (await session.submit("next")).done).toMatchObject({ status: "done", text: "Second turn." });
});
