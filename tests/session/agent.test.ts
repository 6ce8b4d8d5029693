/** An agent at work: a scripted model, the built-in tools, a small project, and its tests run by a shell. */
import { expect, it } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { sha256Hex } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { Playground } from "../playground.js";

const defineRig = rigDefiner(() => ({}));

const project = {
  "package.json": '{ "type": "module" }\n',
  "src/add.js": "export const add = (a, b) => a - b;\n",
  "src/name.js": 'export const name = "calculater";\n',
  "test.js":
    'import { add } from "./src/add.js";\nimport { name } from "./src/name.js";\n' +
    'if (add(1, 2) !== 3 || name !== "calculator") { console.log("not ok"); process.exit(1); }\nconsole.log("ok");\n',
};

it("reads, runs the tests, edits two files and runs them again; its turn is one entry to undo", async () => {
  await using place = new Playground();
  place.write(project);
  const before = place.tree();
  const model = scriptedModel([
    { calls: [{ tool: "Bash", input: { command: "node test.js" } }] },
    {
      calls: [
        { tool: "Read", input: { file_path: "src/add.js" } },
        { tool: "Grep", input: { pattern: "calculater" } },
      ],
    },
    {
      calls: [
        { tool: "Edit", input: { file_path: "src/add.js", old_string: "a - b", new_string: "a + b" } },
        { tool: "Edit", input: { file_path: "src/name.js", old_string: "calculater", new_string: "calculator" } },
        { tool: "Write", input: { file_path: "src/add.js", content: "never\n".repeat(2) } },
        { tool: "Read", input: { file_path: "../outside" } },
      ],
    },
    {
      calls: [
        {
          tool: "Edit",
          input: {
            file_path: "src/add.js",
            old_string: "never\nnever",
            new_string: project["src/add.js"].trim().replace("-", "+"),
          },
        },
      ],
    },
    { calls: [{ tool: "Bash", input: { command: "cd src && node ../test.js" } }] },
    { text: "The tests pass." },
  ]);
  const rig = defineRig({
    storage: await place.storage(),
    loops: [defineLoop({ name: "operator", model, tools: [fileTools(), bash({ needsApproval: false })] })],
    exclusiveWorkspace: { root: place.root },
    snapshots: "idle",
  });
  await using session = await rig.startSession();
  const turn = await session.submit("make the tests pass");
  const done: Extract<SessionEvent, { type: "tool-done" }>[] = [];
  for await (const part of turn) if (part.type === "tool-done") done.push(part);
  expect(await turn.done).toMatchObject({ status: "done", text: "The tests pass.", steps: 6 });

  const told = (name: string): string[] => done.filter((each) => each.name === name).map(({ outcome }) => outcome);
  expect(told("Bash")).toEqual(["error", "ok"]);
  expect(told("Edit")).toEqual(["ok", "ok", "ok"]);
  expect(told("Read").sort()).toEqual(["error", "ok"]);
  expect(done.find(({ name }) => name === "Grep")?.text).toBe('src/name.js:1:export const name = "calculater";');
  expect(done.at(-1)?.text).toBe("ok");
  expect(place.read("src/add.js")).toContain("a + b");

  await session.idle();
  const changed = await session.workspace.changes({ since: "t1^" });
  expect(changed.map(({ path, kind }) => `${kind} ${path}`).sort()).toEqual([
    "edited src/add.js",
    "edited src/name.js",
  ]);
  expect((await session.workspace.undo()).result).toBe("done");
  expect(place.tree()).toEqual(before);
  expect((await session.workspace.redo()).result).toBe("done");
  expect(place.read("src/name.js")).toContain("calculator");
});

it("a command needs a yes by default, and without one nothing runs (T5)", async () => {
  await using place = new Playground();
  const model = scriptedModel([
    { calls: [{ tool: "Bash", input: { command: "touch made" } }] },
    { text: "All right." },
  ]);
  const rig = defineRig({
    storage: await place.storage(),
    loops: [defineLoop({ name: "operator", model, tools: [bash()] })],
    exclusiveWorkspace: { root: place.root },
    snapshots: "manual",
  });
  await using session = await rig.startSession();
  const turn = await session.submit("make it");
  for await (const part of turn) {
    if (part.type !== "gate-opened") continue;
    await session.respond(part.gateId, { approve: false, reason: "not now" });
    break;
  }
  expect(await turn.done).toMatchObject({ status: "done", text: "All right." });
  expect(place.tree()).toEqual({});
});

it("in a shared root no tool commits while another session holds the commit lease (C10)", async () => {
  await using place = new Playground();
  const storage = await place.storage();
  const write = { tool: "Write", input: { file_path: "f", content: "mine\n" } };
  const model = scriptedModel([{ calls: [write] }, { calls: [write] }, { text: "Written." }]);
  const rig = defineRig({
    storage,
    loops: [defineLoop({ name: "operator", model, tools: [fileTools()] })],
    sharedWorkspace: { root: place.root },
    snapshots: "manual",
  });
  await using session = await rig.startSession();
  const name = `workspace-commits/${sha256Hex(session.workspace.root)}`;
  const lease = await storage.leaser.acquire(name, { sessionId: session.id, command: "the test" });
  const turn = await session.submit("write it");
  for await (const part of turn) if (part.type === "tool-started") break;
  await session.interrupt();
  expect(await turn.done).toMatchObject({ status: "interrupted" });
  expect(place.tree()).toEqual({});
  await lease.release();
  expect(await (await session.submit("again")).done).toMatchObject({ status: "done", text: "Written." });
  expect(place.read("f")).toBe("mine\n");
});
