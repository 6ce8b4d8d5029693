/**
 * Whose a change is (U1, U2, E3), in whole sessions: file tools record their writes, shell commands open windows, and what
 * others write during a turn stays theirs.
 */
import fs from "node:fs";
import { expect, it, vi } from "vitest";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { nodeFileSystem } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { Session } from "../../src/session/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import type { CaptureSettings } from "../../src/workspace/index.js";
import { endGroup, openWorkspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { Moment } from "./scenes.js";

/** What another program does in the root while the turn runs: our tools know nothing of it. */
const outsider = (place: Playground) =>
  defineTool({
    name: "Outsider",
    description: "Another program writes",
    inputSchema: jsonSchema<{ path: string; text: string }>({ type: "object" }),
    execute: ({ path, text }) => {
      place.write({ [path]: text });
      return "wrote";
    },
  });

interface Scene {
  readonly placement?: "exclusive" | "shared";
  readonly capture?: CaptureSettings;
  readonly tools?: readonly ToolDefinition[];
}

async function start(place: Playground, steps: readonly ScriptStep[], scene: Scene = {}): Promise<Session> {
  const { placement = "exclusive", capture = {}, tools = [] } = scene;
  const root = { root: place.root, capture };
  return rigDefiner(() => ({}))({
    storage: await place.storage(),
    loops: [
      defineLoop({
        name: "operator",
        model: scriptedModel(steps),
        tools: [fileTools(), bash({ needsApproval: false }), outsider(place), ...tools],
      }),
    ],
    ...(placement === "shared" ? { sharedWorkspace: root } : { exclusiveWorkspace: root }),
    snapshots: "manual",
  } as never).startSession();
}

async function work(session: Session): Promise<readonly SessionEvent[]> {
  const turn = await session.submit("work");
  const events: SessionEvent[] = [];
  for await (const part of turn) if ("seq" in part) events.push(part);
  expect(await turn.done).toMatchObject({ status: "done" });
  return events;
}

const write = (file_path: string, content: string) => ({ tool: "Write", input: { file_path, content } });
const edit = (file_path: string, old_string: string, new_string: string) => ({
  ...{ tool: "Edit", input: { file_path, old_string, new_string } },
});
const read = (file_path: string) => ({ tool: "Read", input: { file_path } });
const shell = (command: string) => ({ tool: "Bash", input: { command } });
const other = (path: string, text: string) => ({ tool: "Outsider", input: { path, text } });
const done = { text: "Done." };

it("U1: what others write during a turn is no part of it; undo and redo leave it as it is", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", notes: "mine\n" });
  await using session = await start(place, [
    { calls: [edit("a", "0", "1")] },
    { calls: [other("notes", "mine, later\n")] },
    { calls: [other("new", "also mine\n")] },
    { calls: [write("b", "made\n")] },
    done,
  ]);
  await work(session);
  const { workspace } = session;
  expect(await workspace.changes({ since: "t1^" })).toMatchObject([
    { path: "a", by: { kind: "session", strength: "recorded", tool: "Edit", turn: 1 } },
    { path: "b", by: { kind: "session", strength: "recorded", tool: "Write", turn: 1 } },
    { path: "new", by: { kind: "foreign" } },
    { path: "notes", by: { kind: "foreign" } },
  ]);
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a"], deleted: ["b"], conflicts: [] });
  expect([place.read("a"), place.read("notes"), place.read("new")]).toEqual(["0\n", "mine, later\n", "also mine\n"]);
  expect(await workspace.redo()).toMatchObject({ result: "done", written: ["a", "b"] });
  expect([place.read("a"), place.read("b"), place.read("notes")]).toEqual(["1\n", "made\n", "mine, later\n"]);
});

it("E3: a record is durable before its write is seen, one for a call, with the directories it made", async () => {
  await using place = new Playground();
  await using session = await start(place, [{ calls: [write("d/e/f", "x\n")] }, done]);
  const events = await work(session);
  const changed = events.filter((event) => event.type === "workspace-changed");
  expect(changed).toMatchObject([
    {
      kind: "paths",
      changes: [
        { path: "d", before: null, after: expect.stringMatching(/^directory:7/) as string },
        { path: "d/e", before: null, after: expect.stringMatching(/^directory:7/) as string },
        { path: "d/e/f", before: null, after: expect.stringMatching(/^file:6\d\d:2:[0-9a-f]{64}$/) as string },
      ],
    },
  ]);
  const types = events.map(({ type }) => type);
  expect(types.indexOf("workspace-changed")).toBeLessThan(types.indexOf("tool-done"));
  place.write({ "d/theirs": "stays\n" });
  expect(await session.workspace.undo()).toMatchObject({ result: "done", deleted: ["d/e", "d/e/f"] });
  expect(place.tree()).toMatchObject({ "d/theirs": "file 644 stays\n" });
});

it("U1: bytes that somebody wrote during the turn, and a tool then wrote over, come back with undo", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  await using session = await start(place, [
    { calls: [edit("a", "0", "ours")] },
    { calls: [other("a", "theirs, in no tree\n")] },
    { calls: [read("a")] },
    { calls: [write("a", "ours again\n")] },
    done,
  ]);
  const events = await work(session);
  const kept = events.filter((event) => event.type === "workspace-changed" && "kept" in event);
  expect(kept).toHaveLength(1);
  const { workspace } = session;
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a"] });
  expect(place.read("a")).toBe("theirs, in no tree\n");
  expect(await workspace.redo()).toMatchObject({ result: "done" });
  expect(place.read("a")).toBe("ours again\n");
});

it("U3: a path that somebody changed after the tool did is a conflict that names nobody of ours", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  await using session = await start(place, [
    { calls: [edit("a", "0", "1"), edit("b", "0", "1")] },
    { calls: [other("a", "theirs\n")] },
    done,
  ]);
  await work(session);
  const { workspace } = session;
  expect(await workspace.undo()).toMatchObject({
    result: "conflict",
    conflicts: [{ path: "a", by: { kind: "foreign" } }],
  });
  expect(await workspace.undo({ onConflict: "skip" })).toMatchObject({ result: "partly", written: ["b"] });
  expect([place.read("a"), place.read("b")]).toEqual(["theirs\n", "0\n"]);
});

it("U2: a shell command's window is as wide as the command; a command that only reads leaves nothing to undo", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", log: "" });
  await using session = await start(place, [
    { calls: [shell("cat a")] },
    { calls: [other("log", "before it\n")] },
    { calls: [shell("echo made > made; echo 1 > a")] },
    { calls: [other("log", "after it\n")] },
    done,
  ]);
  const events = await work(session);
  const windows = events.filter(({ type }) => type === "window-opened" || type === "window-closed");
  expect(windows.map(({ type }) => type)).toEqual(["window-opened", "window-closed", "window-opened", "window-closed"]);
  expect(events.filter(({ type }) => type === "workspace-changed")).toHaveLength(1);
  const { workspace } = session;
  expect(await workspace.changes({ since: "t1^" })).toMatchObject([
    { path: "a", by: { kind: "session", strength: "window" } },
    { path: "log", by: { kind: "foreign" } },
    { path: "made", by: { kind: "session", strength: "window" } },
  ]);
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a"], deleted: ["made"] });
  expect(place.read("log")).toBe("after it\n");
});

it("U2: the next write waits until the window of the command before it is closed", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  await using session = await start(place, [
    { calls: [shell("echo 1 > a"), edit("a", "1", "2")] },
    { calls: [shell("echo 3 > a"), shell("echo 4 > a")] },
    done,
  ]);
  const events = await work(session);
  const order = events.flatMap((event) =>
    event.type === "window-opened" || event.type === "window-closed"
      ? [event.type]
      : event.type === "workspace-changed"
        ? [event.kind]
        : [],
  );
  const window = ["window-opened", "window", "window-closed"];
  expect(order).toEqual([...window, "paths", ...window, ...window]);
  expect((await session.workspace.undo()).result).toBe("done");
  expect(place.read("a")).toBe("0\n");
});

it("U2: a command whose tree could not be captured first runs, is listed, and its turn is not undone", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  await using session = await start(
    place,
    [{ calls: [other("large", "x".repeat(100))] }, { calls: [shell("echo 1 > a")] }, done],
    { capture: { strict: true, maxFileBytes: 50 } },
  );
  const events = await work(session);
  expect(events.find(({ type }) => type === "window-opened")).toMatchObject({ opened: false });
  expect(place.read("a")).toBe("1\n");
  await expect(session.workspace.undo()).rejects.toMatchObject({ code: "undo.unprotected" });
  expect(place.read("a")).toBe("1\n");
});

it("U2: a command that changed nothing takes nothing from its turn, though its tree could not be captured first", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  const steps = [
    { calls: [other("large", "x".repeat(100))] },
    { calls: [shell("rm large")] },
    { calls: [edit("a", "0", "1")] },
    done,
  ];
  await using session = await start(place, steps, { capture: { strict: true, maxFileBytes: 50 } });
  const events = await work(session);
  expect(events.find(({ type }) => type === "window-opened")).toMatchObject({ opened: false });
  expect(await session.workspace.undo()).toMatchObject({ result: "done", written: ["a"] });
});

it("C9: a file with several names changes under all of them, and comes back under all of them", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  fs.linkSync(`${place.root}/a`, `${place.root}/b`);
  await using session = await start(place, [{ calls: [edit("a", "0", "1")] }, done]);
  await work(session);
  expect([place.read("a"), place.read("b")]).toEqual(["1\n", "1\n"]);
  expect(await session.workspace.undo()).toMatchObject({ result: "done", written: ["a", "b"] });
  expect([place.read("a"), place.read("b")]).toEqual(["0\n", "0\n"]);
});

it("U1: in a shared root a recorded write is undone without a question, a window's change only with consent", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  await using session = await start(
    place,
    [{ calls: [edit("a", "0", "1")] }, done, { calls: [shell("echo 1 > b")] }, done],
    { placement: "shared" },
  );
  await work(session);
  await work(session);
  const { workspace } = session;
  expect((await workspace.plan({ kind: "undo", turn: "t2" })).window).toEqual(["b"]);
  await expect(workspace.undo({ turn: "t2" })).rejects.toMatchObject({ code: "undo.needs_consent" });
  expect(await workspace.undo({ turn: "t1" })).toMatchObject({ result: "done", written: ["a"] });
  expect(await workspace.undo({ turn: "t2", includeWindow: true })).toMatchObject({ result: "done" });
  expect([place.read("a"), place.read("b")]).toEqual(["0\n", "0\n"]);
});

it("U1: a write that another session recorded while a command of ours ran is theirs, and a conflict for our undo", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  // The command waits until the other session has written.
  await using ours = await start(
    place,
    [{ calls: [shell("echo 1 > b; until grep -q theirs a; do sleep 0.02; done")] }, done],
    { placement: "shared" },
  );
  await using theirs = await start(place, [{ calls: [edit("a", "0", "theirs")] }, done], { placement: "shared" });
  const begun = vi.waitFor(() => expect(place.read("b")).toBe("1\n"), { timeout: 30_000 });
  await Promise.all([work(ours), begun.then(() => work(theirs))]);
  const plan = await ours.workspace.plan({ kind: "undo", session: ours.id });
  expect(plan.conflicts).toMatchObject([
    { path: "a", by: { kind: "other-session", strength: "recorded", sessionId: theirs.id } },
  ]);
  expect(await theirs.workspace.undo({ session: theirs.id })).toMatchObject({ result: "done", written: ["a"] });
  expect(place.read("a")).toBe("0\n");
});

it("U1, U9: a write recorded before a window opens and seen in it is its writer's, and its staged file is nobody's change", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  const [recorded, visible] = [new Moment(), new Moment()];
  const slow = defineTool({
    name: "Slow",
    description: "Writes b, and takes its time between the record and the write",
    requires: ["workspace"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: async (_, { workspace: { records, root } }) => {
      using permit = await records?.acquire(["b"]);
      const bytes = Buffer.from("theirs\n");
      const after = { kind: "file", mode: 0o644, bytes } as const;
      await permit?.record([{ path: "b", before: undefined, after }], { staged: [".looprig-b"] });
      fs.writeFileSync(`${root}/.looprig-b`, bytes, { mode: 0o644 });
      recorded.reach();
      await visible.reached;
      fs.renameSync(`${root}/.looprig-b`, `${root}/b`);
      return "wrote b";
    },
  });
  await using theirs = await start(place, [{ calls: [{ tool: "Slow", input: {} }] }, done], {
    placement: "shared",
    tools: [slow],
  });
  await using ours = await start(place, [{ calls: [shell("echo 1 > a; until [ -e b ]; do sleep 0.02; done")] }, done], {
    placement: "shared",
  });
  const writing = work(theirs);
  await recorded.reached;
  const running = work(ours);
  await vi.waitFor(() => expect(place.read("a")).toBe("1\n"), { timeout: 30_000 });
  visible.reach();
  await Promise.all([writing, running]);
  expect(await ours.workspace.plan({ kind: "undo", session: ours.id })).toMatchObject({
    writes: ["a"],
    conflicts: [{ path: "b", by: { kind: "other-session", strength: "recorded", sessionId: theirs.id } }],
  });
  expect(await theirs.workspace.undo({ session: theirs.id })).toMatchObject({ result: "done", deleted: ["b"] });
  expect(place.tree()).toEqual({ a: "file 644 1\n" });
});

it("C1: what a permit does not cover cannot be recorded under it, nor a name that is not of our kind be staged", async () => {
  await using place = new Playground();
  const told: string[] = [];
  const liar = defineTool({
    name: "Liar",
    description: "Records what is not its own",
    requires: ["workspace"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: async (_, { workspace: { records } }) => {
      using permit = await records?.acquire(["d/a"]);
      const after = { kind: "file", mode: 0o644, bytes: Buffer.from("x") } as const;
      const directory = { kind: "directory", mode: 0o755 } as const;
      const attempts = [
        [[{ path: "b", before: undefined, after }], []],
        [[{ path: "d", before: undefined, after }], []],
        [[{ path: "d/a", before: undefined, after }], ["d/a.new"]],
        [[{ path: "d/a", before: undefined, after }], [".looprig-elsewhere"]],
        [
          [
            { path: "d", before: undefined, after: directory },
            { path: "d/a", before: undefined, after },
          ],
          ["d/.looprig-a"],
        ],
      ] as const;
      for (const [changes, staged] of attempts) {
        const outcome = await permit?.record(changes, { staged }).then(
          () => "recorded",
          (error: unknown) => (error as { code: string }).code,
        );
        told.push(String(outcome));
      }
      return "tried";
    },
  });
  await using session = await start(place, [{ calls: [{ tool: "Liar", input: {} }] }, done], { tools: [liar] });
  await work(session);
  const refused = "coordinator.invalid_path";
  expect(told).toEqual([refused, refused, refused, refused, "recorded"]);
});

it("G5: a session killed while its command runs leaves no process; whoever comes next closes the window and can undo it", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  const steps = [
    { calls: [edit("a", "0", "1")] },
    { calls: [shell("echo 1 > b; echo $$ > pid; sleep 1000 & exec sleep 1000")] },
  ];
  const child = startProcess("tests/processes/working-session.ts", [place.root, place.stateDir, JSON.stringify(steps)]);
  const id = await child.line();
  await vi.waitFor(() => expect(place.read("pid")).not.toBe(""), { timeout: 30_000 });
  const leader = Number(place.read("pid"));
  child.kill("SIGKILL");
  await child.ended;
  await using workspace = await openWorkspace({ root: place.root, storage: await place.storage() });
  expect(await endGroup(nodeFileSystem, leader), "nothing of the group was left to end").toBe(false);
  const history = await workspace.history();
  expect(history.turns.at(-1)).toMatchObject({ state: "interrupted", sessionId: id, changed: 3, protected: true });
  const plan = await workspace.plan({ kind: "undo" });
  expect(plan.window, "what the command changed may be somebody else's by now").toEqual(["b", "pid"]);
  expect(await workspace.undo({ includeWindow: true })).toMatchObject({
    result: "done",
    written: ["a", "b"],
    deleted: ["pid"],
  });
  expect([place.read("a"), place.read("b")]).toEqual(["0\n", "0\n"]);
});

it("E3: a session killed between writes is undone without a question, since its writes are on record", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  const steps = [{ calls: [edit("a", "0", "1"), write("b", "made\n")] }, { calls: [{ tool: "Tell", input: {} }] }];
  const child = startProcess("tests/processes/working-session.ts", [place.root, place.stateDir, JSON.stringify(steps)]);
  await child.line();
  expect(await child.line()).toBe("here");
  place.write({ notes: "mine\n" });
  child.kill("SIGKILL");
  await child.ended;
  await using workspace = await openWorkspace({ root: place.root, storage: await place.storage() });
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a"], deleted: ["b"], window: [] });
  expect(place.tree()).toEqual({ a: "file 644 0\n", notes: "file 644 mine\n" });
});

it("U3: a turn that wrote over somebody's bytes with what was there at its start is undone, not passed over", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  await using session = await start(place, [
    { calls: [edit("b", "0", "1")] },
    done,
    { calls: [other("a", "theirs\n")] },
    { calls: [read("a")] },
    { calls: [write("a", "0\n")] },
    done,
  ]);
  await work(session);
  await work(session);
  expect(await session.workspace.undo()).toMatchObject({ entry: "t2", result: "done", written: ["a"] });
  expect([place.read("a"), place.read("b")]).toEqual(["theirs\n", "1\n"]);
  expect(await session.workspace.redo()).toMatchObject({ entry: "t2", result: "done" });
  expect(place.read("a")).toBe("0\n");
});

it("U1, G2: bytes of the turn's own that somebody put back are stored before they are written over", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  await using session = await start(place, [
    { calls: [edit("a", "0", "1")] },
    { calls: [edit("a", "1", "2")] },
    { calls: [other("a", "1\n")] },
    { calls: [edit("a", "1", "3")] },
    done,
  ]);
  await work(session);
  expect(await session.workspace.undo()).toMatchObject({ result: "done", written: ["a"] });
  expect(place.read("a")).toBe("1\n");
});

it("E3: a write that was refused is no change of the turn", async () => {
  await using place = new Playground();
  place.write({ a: "0\n" });
  const failing = defineTool({
    name: "Failing",
    description: "Records a write that then does not come about",
    requires: ["workspace"],
    inputSchema: jsonSchema({ type: "object" }),
    execute: async (_, { workspace: { records } }) => {
      using permit = await records?.acquire(["new"]);
      const after = { kind: "file", mode: 0o644, bytes: Buffer.from("ours\n") } as const;
      await permit?.record([{ path: "new", before: undefined, after }]);
      place.write({ new: "theirs\n" });
      throw new Error("somebody was quicker");
    },
  });
  const steps = [{ calls: [edit("a", "0", "1"), { tool: "Failing", input: {} }] }, done];
  await using session = await start(place, steps, { tools: [failing] });
  const events = await work(session);
  expect(events.at(-1)).toMatchObject({ type: "turn-done", changed: 1 });
  const shown: string[] = [];
  for await (const { path } of session.workspace.diff()) shown.push(path);
  expect(shown).toEqual(["a"]);
  expect(await session.workspace.undo()).toMatchObject({ result: "done", written: ["a"], conflicts: [] });
  expect(place.read("new")).toBe("theirs\n");
  for await (const { path } of session.workspace.diff()) shown.push(path);
  expect(shown).toEqual(["a", "a"]);
  expect(await session.workspace.redo()).toMatchObject({ result: "done", written: ["a"] });
});

it("a turn's difference is its own: lines that somebody added before its write are not in it", async () => {
  await using place = new Playground();
  place.write({ a: "one\ntwo\n" });
  await using session = await start(place, [
    { calls: [other("a", "one\ntwo\ntheirs\n")] },
    { calls: [edit("a", "two", "TWO")] },
    done,
  ]);
  await work(session);
  for (const reverse of [false, true]) {
    const counts: number[][] = [];
    for await (const { added, removed } of session.workspace.diff({ turn: "t1", reverse }))
      counts.push([added, removed]);
    expect(counts).toEqual([[1, 1]]);
  }
});

it("C10: of files whose replacer was killed, the second name goes, unless somebody wrote into it", async () => {
  await using place = new Playground();
  place.write({ a: "0\n", b: "0\n" });
  const steps = [{ calls: [{ tool: "Cut", input: {} }] }];
  const child = startProcess("tests/processes/working-session.ts", [place.root, place.stateDir, JSON.stringify(steps)]);
  expect((await child.ended).signal).toBe("SIGKILL");
  expect(place.tree()).toMatchObject({ ".looprig-a": "file 644 theirs\n", ".looprig-b": "file 644 0\n" });
  await using workspace = await openWorkspace({ root: place.root, storage: await place.storage() });
  const left = { a: "file 644 1\n", b: "file 644 1\n", ".looprig-a": "file 644 theirs\n" };
  expect(place.tree()).toEqual(left);
  expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a", "b"] });
  expect(place.tree()).toEqual({ ...left, a: "file 644 0\n", b: "file 644 0\n" });
});
