/** The cases of what a loop saw of a file, with whole sessions: a model that calls the tools, one turn after the other. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { agentRig, call, play } from "./agent.js";

const answersOf = async (
  ...[session, input]: Parameters<typeof play>
): Promise<readonly (readonly [tool: string, outcome: string])[]> =>
  (await play(session, input)).answers.map(({ name, outcome }) => [name, outcome]);

describe("C024 two sessions on a shared root, one of which writes a whole file from its old copy", () => {
  const three = "one\ntwo\nthree\n";
  const append = call("Edit", { file_path: "notes.md", old_string: "three\n", new_string: "three\nfour, of B\n" });

  it("the write is refused as stale and shows B's line, which remains; one more call takes it into account", async () => {
    await using place = new Playground();
    place.write({ "notes.md": three });
    const a = await agentRig(
      place,
      [
        { calls: [call("Read", { file_path: "notes.md" })] },
        { text: "Read." },
        { calls: [call("Write", { file_path: "notes.md", content: "ONE\ntwo\nthree\n" })] },
        { calls: [call("Write", { file_path: "notes.md", content: "ONE\ntwo\nthree\nfour, of B\n" })] },
        { text: "Written." },
      ],
      { shared: true },
    );
    const b = await agentRig(place, [{ calls: [append] }, { text: "Appended." }], { shared: true });
    await using sessionA = await a.startSession();
    await using sessionB = await b.startSession();
    expect(await answersOf(sessionA, "read it")).toEqual([["Read", "ok"]]);
    expect(await answersOf(sessionB, "append a line")).toEqual([["Edit", "ok"]]);
    const { result, answers } = await play(sessionA, "write it in capitals");
    expect(result).toMatchObject({ status: "done", text: "Written." });
    expect(answers).toMatchObject([
      { outcome: "error", data: { code: "file.stale" }, text: expect.stringContaining("+four, of B") as string },
      { outcome: "ok" },
    ]);
    expect(place.read("notes.md")).toBe("ONE\ntwo\nthree\nfour, of B\n");
  });

  it("a targeted replace on another line succeeds, and both changes are present", async () => {
    await using place = new Playground();
    place.write({ "notes.md": three });
    const replace = call("Edit", { file_path: "notes.md", old_string: "one", new_string: "ONE" });
    const a = await agentRig(
      place,
      [
        { calls: [call("Read", { file_path: "notes.md" })] },
        { text: "Read." },
        { calls: [replace] },
        { text: "Done." },
      ],
      { shared: true },
    );
    const b = await agentRig(place, [{ calls: [append] }, { text: "Appended." }], { shared: true });
    await using sessionA = await a.startSession();
    await using sessionB = await b.startSession();
    await play(sessionA, "read it");
    await play(sessionB, "append a line");
    const { answers } = await play(sessionA, "change the first line");
    // What was changed meanwhile is told, so that nothing that A says later rests on its old copy.
    expect(answers).toMatchObject([{ outcome: "ok", text: expect.stringContaining("+four, of B") as string }]);
    expect(place.read("notes.md")).toBe("ONE\ntwo\nthree\nfour, of B\n");
  });

  it("a resumed session has seen nothing, and reads again before it writes (C8)", async () => {
    await using place = new Playground();
    place.write({ "notes.md": three });
    const first = await agentRig(place, [{ calls: [call("Read", { file_path: "notes.md" })] }, { text: "Read." }]);
    const session = await first.startSession();
    await play(session, "read it");
    await session.close();
    const write = call("Write", { file_path: "notes.md", content: "new\n" });
    const second = await agentRig(place, [
      { calls: [write] },
      { calls: [call("Read", { file_path: "notes.md" })] },
      { calls: [write] },
      { text: "Written." },
    ]);
    await using resumed = await second.resumeSession(session.id);
    const { answers } = await play(resumed, "write it");
    expect(answers).toMatchObject([
      { outcome: "error", data: { code: "file.stale" } },
      { name: "Read" },
      { outcome: "ok" },
    ]);
    expect(place.read("notes.md")).toBe("new\n");
  });
});

it("what the shell did to a file is seen before it is written over: refused when changed, accepted when not (C8, C9)", async () => {
  await using place = new Playground();
  place.write({ f: "one\n", g: "one\n" });
  const rig = await agentRig(place, [
    { calls: [call("Read", { file_path: "f" }), call("Read", { file_path: "g" })] },
    { calls: [call("Bash", { command: "echo two >> f; touch g; cp g h; mv h g" })] },
    { calls: [call("Write", { file_path: "f", content: "mine\n" })] },
    { calls: [call("Write", { file_path: "g", content: "mine\n" })] },
    { text: "Done." },
  ]);
  await using session = await rig.startSession();
  const { answers } = await play(session, "write both");
  expect(answers.slice(3)).toMatchObject([
    { outcome: "error", data: { code: "file.stale" }, text: expect.stringContaining("+two") as string },
    { outcome: "ok" },
  ]);
  expect([place.read("f"), place.read("g")]).toEqual(["one\ntwo\n", "mine\n"]);
});

it("C070 read, edit, edit, edit in one turn, as fast as a session lets them follow: none is refused", async () => {
  await using place = new Playground();
  place.write({ "package.json": '{ "a": 0, "b": 0, "c": 0 }\n' });
  const rounds = 40;
  const edit = (name: string, from: number): ReturnType<typeof call> =>
    call("Edit", {
      ...{ file_path: "package.json", old_string: `"${name}": ${from}`, new_string: `"${name}": ${from + 1}` },
    });
  const rig = await agentRig(place, [
    { calls: [call("Read", { file_path: "package.json" })] },
    ...Array.from({ length: rounds }, (_, i) => ({ calls: [edit("a", i), edit("b", i), edit("c", i)] })),
    { calls: [call("Write", { file_path: "package.json", content: "{}\n" })] },
    { text: "Done." },
  ]);
  await using session = await rig.startSession();
  const { result, answers } = await play(session, "count");
  expect(result).toMatchObject({ status: "done", text: "Done." });
  expect(answers).toHaveLength(1 + 3 * rounds + 1);
  expect(answers.filter(({ outcome }) => outcome !== "ok")).toEqual([]);
  expect(place.read("package.json")).toBe("{}\n");
});

it("C071 an edit right after a read is accepted through any other name of the file, in whole sessions", async () => {
  await using place = new Playground();
  place.write({ "dir/f.txt": "one\ntwo\n" });
  fs.symlinkSync("dir/f.txt", place.at("alias"));
  fs.symlinkSync(place.root, path.join(place.dir, "link"));
  const names = [
    "dir/f.txt",
    "./dir//f.txt",
    "alias",
    place.at("dir/../dir/f.txt"),
    path.join(place.dir, "link/alias"),
  ];
  const steps = names.flatMap((readAs, i) =>
    names.flatMap((editAs, j) => [
      { calls: [call("Read", { file_path: readAs })] },
      { calls: [call("Edit", { file_path: editAs, old_string: "one", new_string: `one ${i}${j}` })] },
      { calls: [call("Write", { file_path: readAs, content: "one\ntwo\n" })] },
      { text: "Next." },
    ]),
  );
  const rig = await agentRig(place, steps);
  await using session = await rig.startSession();
  for (let pair = 0; pair < names.length ** 2; pair++) {
    expect(await answersOf(session, "another name")).toEqual([
      ["Read", "ok"],
      ["Edit", "ok"],
      ["Write", "ok"],
    ]);
  }
  // On this system a backslash is a letter of a name, and no file is taken for another.
  expect(fs.existsSync(place.at("dir\\f.txt"))).toBe(false);
  expect(fs.lstatSync(place.at("alias")).isSymbolicLink()).toBe(true);
});

describe("C073 a formatter in another process rewrites the file after each edit", () => {
  const source = "const a=1\nconst b=2\nconst c=3\n";

  /**
   * The formatter, and a tool with which the agent waits until it has rewritten the file. It has nothing to do before the
   * first edit: what it would write over from an old look is its own race, and not of interest here.
   */
  async function formatterOf(place: Playground, pattern: string, replacement: string) {
    const formatter = startProcess("tests/cases/formatter-process.ts", [place.at("f.js"), pattern, replacement]);
    expect(await formatter.line()).toBe("watching");
    const formatted = defineTool({
      name: "Formatted",
      description: "Waits for the formatter",
      inputSchema: jsonSchema({ type: "object" }),
      execute: async () => `the formatter wrote ${await formatter.line()}`,
    });
    return { formatter, formatted };
  }
  const edit = (old_string: string, new_string: string): ReturnType<typeof call> =>
    call("Edit", { file_path: "f.js", old_string, new_string });

  it("and the next edit applies where its region is unaffected, and keeps what the formatter did", async () => {
    await using place = new Playground();
    place.write({ "f.js": source });
    const { formatter, formatted } = await formatterOf(place, "^const (\\w+)=(\\d\\d)$", "const $1 = $2;");
    const wait = call("Formatted", {});
    const rig = await agentRig(
      place,
      [
        { calls: [call("Read", { file_path: "f.js" })] },
        { calls: [edit("a=1", "a=10")] },
        { calls: [wait] },
        { calls: [edit("c=3", "c=30")] },
        { calls: [wait] },
        { text: "Done." },
      ],
      { tools: [formatted] },
    );
    await using session = await rig.startSession();
    const { answers } = await play(session, "two edits in a row");
    expect(answers.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      ...["Read ok", "Edit ok", "Formatted ok", "Edit ok", "Formatted ok"],
    ]);
    expect(answers[3]?.text).toContain("+const a = 10;");
    expect(place.read("f.js")).toBe("const a = 10;\nconst b=2\nconst c = 30;\n");
    formatter.child.stdin?.end();
    await formatter.ended;
  });

  it("and where it is affected one retry is enough; a change of somebody else in the same moment is still caught", async () => {
    await using place = new Playground();
    place.write({ "f.js": source });
    const { formatter, formatted } = await formatterOf(place, "(?<=10[^]*)=(\\d+)$", " = $1;");
    const rig = await agentRig(
      place,
      [
        { calls: [call("Read", { file_path: "f.js" })] },
        { calls: [edit("a=1", "a=10")] },
        { calls: [call("Formatted", {})] },
        { calls: [edit("b=2", "b=20")] },
        { calls: [edit("b = 2;", "b = 20;")] },
        { text: "Done." },
        { calls: [call("Write", { file_path: "f.js", content: "const mine = 1;\n" })] },
        { text: "I see." },
      ],
      { tools: [formatted] },
    );
    await using session = await rig.startSession();
    const { answers } = await play(session, "two edits in a row");
    expect(answers.map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      ...["Read ok", "Edit ok", "Formatted ok", "Edit error", "Edit ok"],
    ]);
    expect(answers[3]).toMatchObject({ data: { code: "file.no_unique_match" } });
    expect(answers[3]?.text).toContain("+const b = 2;");
    expect(place.read("f.js")).toBe("const a=10\nconst b = 20;\nconst c = 3;\n");

    place.write({ "f.js": "const theirs = 1;\n" });
    const { answers: caught } = await play(session, "write it whole");
    expect(caught).toMatchObject([
      { outcome: "error", data: { code: "file.stale" }, text: expect.stringContaining("+const theirs = 1;") as string },
    ]);
    expect(place.read("f.js")).toBe("const theirs = 1;\n");
    formatter.child.stdin?.end();
    await formatter.ended;
  });
});
