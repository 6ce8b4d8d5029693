/**
 * `looprig run` with real processes: the agent's model is a script or a local server, everything else is what people get.
 */
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ScriptStep } from "../../src/loop/index.js";
import { delta, openAiServer, streamedCall, streams, usage } from "../../src/loop/testing/openai-server.js";
import type { Answer } from "../../src/loop/testing/openai-server.js";
import { TerminalHome } from "./terminal-home.js";
import type { Ran } from "./terminal-home.js";

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ "a.txt": "one\ntwo\n" });
});
afterEach(() => here[Symbol.dispose]());

const edit = { tool: "Edit", input: { file_path: "a.txt", old_string: "two", new_string: "2" } };
const shell = (command: string) => ({ tool: "Bash", input: { command } });
const edits: readonly ScriptStep[] = [
  { text: "I look first.", calls: [{ tool: "Read", input: { file_path: "a.txt" } }] },
  { calls: [edit] },
  { text: "It is 2 now." },
];

const run = (words: readonly string[], steps: readonly ScriptStep[] = edits, options = {}): Promise<Ran> =>
  here.run(["run", "--model", here.script(steps), ...words], options);

interface Line {
  readonly schema: string;
  readonly seq: number;
  readonly type: string;
  readonly [field: string]: unknown;
}
const linesOf = (stdout: string): Line[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

describe("a prompt", () => {
  test("is answered on stdout alone; what was done, and how to take it back, is said on stderr", async () => {
    const ran = await run(["write it as a number"]);
    expect(ran).toMatchObject({ status: 0, stdout: "It is 2 now.\n" });
    expect(ran.stderr).toBe(
      [
        ran.stderr.split("\n", 1)[0],
        "",
        "I look first.",
        "",
        "› Read   a.txt               2 lines",
        "› Edit   a.txt               +1 -1",
        "",
        "",
        "t1 done   2 calls   c2",
        "  M a.txt  +1 -1",
        "looprig diff · looprig undo",
        "looprig: only files below ~/calc are covered; .git is not. This line is shown once.",
        "",
      ].join("\n"),
    );
    expect(ran.stderr).toMatch(/^~\/calc {2}session [0-9a-f]{4} {2}c1 baseline, 1 file\n/);
    expect(here.read("a.txt")).toBe("one\n2\n");
    expect((await here.run(["log"])).stdout).toMatch(/c2 .* t1 {2}"write it as a number" {3}1 file\n/);
    expect((await here.run(["status"])).stdout).toMatch(/t1 "write it as a number", [0-9a-f]{4}, .*can be undone\n/);
    expect((await here.run(["sessions"])).stdout).toMatch(/closed .* run "write it as a number"\n$/);
    expect((await here.run(["undo", "--yes"])).status).toBe(0);
    expect(here.read("a.txt")).toBe("one\ntwo\n");
  });

  test("comes from stdin where it is no argument, or is -", async () => {
    for (const words of [[], ["-"]]) {
      expect((await run(words, [{ text: "Yes." }], { input: "is it there?\nreally?\n" })).status).toBe(0);
    }
    const titles = ((await here.json(["log"]))["entries"] as { title?: string }[]).flatMap(({ title }) => title ?? []);
    expect(titles).toEqual(["is it there?\nreally?\n", "is it there?\nreally?\n"]);
  });

  test("is needed, and wrong usage is told before anything is made", async () => {
    for (const [words, input] of [
      [[], ""],
      [["  "], undefined],
      [["--continue", "--resume", "abcd", "x"], undefined],
      [["--allow", "everything", "x"], undefined],
      [["x", "y"], undefined],
      [["--system", "no-such-file", "x"], undefined],
      [["--session", "abcd", "x"], undefined],
    ] as const) {
      expect(await run(words, edits, { input })).toMatchObject({ status: 2, stdout: "" });
    }
    expect(fs.existsSync(path.join(here.home, "state"))).toBe(false);
  });

  test("--quiet leaves the answer alone", async () => {
    expect(await run(["x", "-q"])).toMatchObject({ status: 0, stdout: "It is 2 now.\n", stderr: "" });
  });
});

describe("the model", () => {
  test("without one three lines say what to type, and the status is 2", async () => {
    const ran = await here.run(["run", "x"]);
    expect(ran).toMatchObject({ status: 2, stdout: "" });
    expect(ran.stderr.match(/^ {2}looprig run --.* "make the tests pass"$/gm)).toHaveLength(3);
  });

  test("may come from the environment; a script that is none, or ends early, says so", async () => {
    const env = { LOOPRIG_MODEL: here.script([{ text: "Here." }]) };
    expect(await here.run(["run", "x"], { env })).toMatchObject({ status: 0, stdout: "Here.\n" });
    const broken = path.join(here.home, "broken");
    for (const [script, told] of [
      ["[{}]", "step 1 is wrong, wanted a text, calls, or both"],
      ['[{ "text": "x" ]', "the script is wrong (Expected ',' or '}' after property value in JSON at position 15"],
    ] as const) {
      fs.writeFileSync(broken, script);
      const refused = await here.run(["run", "x", "--model", "script:../broken"]);
      expect(refused).toMatchObject({ status: 2, stdout: "" });
      expect(refused.stderr).toContain(`looprig: Cannot read the script "${broken}": ${told}`);
    }
    const early = await run(["x"], edits.slice(0, 1));
    expect(early.status).toBe(1);
    expect(early.stderr).toMatch(
      /t2 failed {3}1 call {3}changed nothing\nlooprig run --continue --model script:\S+ "go on"\n/,
    );
    expect(early.stderr).toContain("looprig: Cannot play the script: its one step is played");
  });

  test("of a provider that is not installed: the command that installs it beside looprig", async () => {
    here.write({
      "node_modules/@ai-sdk/nobody/package.json": '{"name":"@ai-sdk/nobody","type":"module","exports":"./index.js"}',
      "node_modules/@ai-sdk/nobody/index.js": `import fs from "node:fs"; fs.writeFileSync("${here.at("ran")}", "");`,
    });
    const ran = await here.run(["run", "x", "--model", "nobody/large", "--json"]);
    expect(ran.status).toBe(1);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      schema: "looprig.error/1",
      code: "model.provider_missing",
      hint: expect.stringMatching(/^npm install .*--prefix \S+ @ai-sdk\/nobody$/) as unknown,
      details: { provider: "nobody", package: "@ai-sdk/nobody" },
    });
    expect(fs.existsSync(here.at("ran"))).toBe(false);
  });

  test("of a local server: AGENTS.md, --system and the key reach it, and its tokens are told", async () => {
    here.write({ "AGENTS.md": "Count in Latin.\n" });
    fs.writeFileSync(path.join(here.home, "more.txt"), "Sign with a dash.");
    const answers: Answer[] = [
      streams(
        delta({ role: "assistant", content: "" }),
        ...streamedCall(0, "call_a", "Edit", JSON.stringify(edit.input)),
        delta({}, "tool_calls"),
        usage(8_000, 400),
      ),
      streams(
        delta({ role: "assistant", content: "Factum" }),
        delta({ content: " est." }),
        delta({}, "stop"),
        usage(8_400, 94),
      ),
    ];
    await using server = await openAiServer(answers);
    const ran = await here.run([
      "run",
      "do it",
      "--base-url",
      server.baseURL,
      "--model",
      "org/local",
      "--system",
      "../more.txt",
    ]);
    expect(ran).toMatchObject({ status: 0, stdout: "Factum est.\n" });
    expect(ran.stderr).toContain("t1 done   1 call, 16.4k in, 0.5k out   c2\n");
    const [first, second] = server.requests;
    expect(first?.messages[0]?.role).toBe("system");
    expect(first?.messages[0]?.content).toMatch(/AGENTS\.md:\n\nCount in Latin\.\n\n.*:\n\nSign with a dash\.$/);
    expect(first?.messages[1]).toMatchObject({ role: "user", content: "do it" });
    expect(first?.tools?.map((tool) => tool.function.name).sort()).toEqual(
      ["Bash", "Edit", "Glob", "Grep", "List", "Read", "Write"].sort(),
    );
    expect(second?.messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call_a" });
  });

  test("that breaks off in the middle of its answer fails the turn, keeps the session, and nothing of it is an answer", async () => {
    const broken = streams(
      delta({ role: "assistant", content: "Half of" }),
      `data: ${JSON.stringify({ error: { message: "the engine\u001b[2J stopped", code: 400 } })}\n\n`,
    );
    const fine = streams(delta({ content: "Whole." }), delta({}, "stop"));
    await using server = await openAiServer([broken, fine]);
    const words = ["--base-url", server.baseURL, "--model", "m"];
    const ran = await here.run(["run", "do it", ...words]);
    expect(ran).toMatchObject({ status: 1, stdout: "" });
    expect(ran.stderr).toContain("Half of\n");
    expect(ran.stderr).toMatch(/t1 failed[^]*looprig: Cannot finish the answer of model .*the engine/);
    expect(ran.stderr).not.toContain("\u001b");
    expect(await here.run(["run", "--continue", "again", ...words])).toMatchObject({ status: 0, stdout: "Whole.\n" });
    expect(server.requests[1]?.messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  });
});

describe("shell commands", () => {
  const steps: readonly ScriptStep[] = [{ calls: [shell("echo made > made; exit 3")] }, { text: "Done." }];

  test("are refused without a terminal, and the agent is told how they would not be", async () => {
    const ran = await run(["x", "--json", "--yes"], steps);
    expect(ran.status).toBe(0);
    const told = linesOf(ran.stdout).find(({ type }) => type === "tool-done");
    expect(told).toMatchObject({ outcome: "refused", text: expect.stringContaining("--allow bash") as unknown });
    expect(here.tree()).not.toHaveProperty("made");
  });

  test("run without a question by --allow bash, with their status and time", async () => {
    const ran = await run(["x", "--allow", "bash"], steps);
    expect(ran).toMatchObject({ status: 0, stdout: "Done.\n" });
    expect(ran.stderr).toMatch(/^› Bash {3}echo made > made; exit 3 {2}exit 3 {3}\d+\.\d s$/m);
    expect(ran.stderr).toMatch(/^ {2}A made {2}\+1 -0$/m);
  });
});

describe("--json", () => {
  test("is one event per line, whole and without a gap, from the session's start to its end", async () => {
    const ran = await run(["x", "--json"]);
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    const lines = linesOf(ran.stdout);
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i + 1));
    expect(lines.every((line) => line.schema === "looprig.run/1" && line["root"] === here.root)).toBe(true);
    const types = lines.map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(["session-started", "session-closed"]);
    expect(types).toEqual(
      expect.arrayContaining(["turn-started", "step-started", "tool-done", "turn-done", "session-idle"]),
    );

    const more = linesOf((await run(["--continue", "y", "--json"], [{ text: "Yes." }])).stdout);
    expect(more.map(({ seq }) => seq)).toEqual(more.map((_, i) => lines.length + 1 + i));
    expect(more.filter(({ type }) => type === "turn-done")).toMatchObject([{ text: "Yes." }]);
  });

  test("ends a failure with the error's document, and its status", async () => {
    const ran = await run(["x", "--json"], edits.slice(0, 1));
    expect(ran).toMatchObject({ status: 1, stderr: "" });
    const lines = linesOf(ran.stdout);
    expect(lines.at(-1)).toMatchObject({
      schema: "looprig.error/1",
      code: "model.script_exhausted",
      details: { steps: 1 },
    });
    expect(lines.at(-2)).toMatchObject({ type: "session-closed" });
  });

  test("a reader that goes away does not end the work", async () => {
    const words = ["run", "x", "--model", here.script(edits), "--json"];
    const ran = await here.run([...words], { pipe: "head -n 1" });
    expect(linesOf(ran.stdout)).toMatchObject([{ type: "session-started" }]);
    expect(here.read("a.txt")).toBe("one\n2\n");
    expect((await here.run(["sessions"])).stdout).toContain("closed");
  });
});

describe("a session goes on", () => {
  const ids = async (): Promise<string[]> =>
    ((await here.json(["sessions"]))["sessions"] as { id: string }[]).map(({ id }) => id);

  test("with --continue: the one used last that has an agent, with what was said in it", async () => {
    await using server = await openAiServer([streams(delta({ content: "Two." }), delta({}, "stop"))]);
    await run(["first"], edits);
    await here.did("echo three >> a.txt");
    const ran = await here.run(["run", "--continue", "second", "--base-url", server.baseURL, "--model", "m"]);
    expect(ran).toMatchObject({ status: 0, stdout: "Two.\n" });
    expect(ran.stderr).toMatch(/^~\/calc {2}session [0-9a-f]{4}, 1 turn before\n/);
    expect(ran.stderr).toContain("changed since then: model script/scripted, now openai-compatible.chat/m\n");
    const messages = server.requests[0]?.messages ?? [];
    expect(messages.filter(({ role }) => role === "user").map(({ content }) => content)).toEqual(["first", "second"]);
    expect(JSON.stringify(messages)).toContain("It is 2 now.");
    expect(await ids()).toHaveLength(2);
  });

  test("with --resume and four characters of its id, in another process", async () => {
    await run(["first"]);
    const [id = ""] = await ids();
    await run(["another"], [{ text: "Mine." }]);
    const ran = await run(["--resume", id.slice(0, 8), "second"], [{ text: "Yours." }]);
    expect(ran).toMatchObject({ status: 0, stdout: "Yours.\n" });
    expect(ran.stderr).toContain(`session ${id.slice(0, 4)}`);
    const turns = (
      (await here.json(["log"]))["entries"] as { turn?: string; session: string; title?: string }[]
    ).filter(({ title }) => title !== undefined);
    expect(turns.map(({ turn, session }) => `${turn ?? ""} ${session === id}`)).toEqual([
      "t3 true",
      "t2 false",
      "t1 true",
    ]);
  });

  test("not where there is none, none with an agent, or it is another directory's", async () => {
    expect(await run(["--continue", "x"])).toMatchObject({ status: 2, stdout: "" });
    expect(fs.existsSync(path.join(here.home, "state"))).toBe(false);
    await here.did("echo x > x");
    const [id = ""] = await ids();
    expect((await run(["--continue", "x"])).stderr).toContain("no session with an agent was there yet");
    expect((await run(["--resume", id, "x"])).stderr).toContain("it has no agent");
    expect(await run(["--resume", "ffffffff", "x"])).toMatchObject({ status: 2 });
    const other = path.join(here.home, "other");
    fs.mkdirSync(other);
    const elsewhere = await run(["--resume", id, "x"], edits, { cwd: other });
    expect(elsewhere.status).toBe(2);
    expect(elsewhere.stderr).toContain(`--root ${here.root}`);
  });

  test("not in another placement: that breaks with what it was, and exits 6", async () => {
    await run(["first"]);
    const ran = await run(["--continue", "--shared", "x"]);
    expect(ran.status).toBe(6);
    expect(ran.stderr).toContain("its configuration differs in placement.mode");
    expect((await run(["--shared", "y"], [{ text: "." }])).status).toBe(0);
    // A shared one stays so without being told.
    expect(await run(["--continue", "z"], [{ text: "Shared." }])).toMatchObject({ status: 0, stdout: "Shared.\n" });
  });

  test("in a directory that took the place of the recorded one only with --adopt-root", async () => {
    await run(["first"]);
    fs.renameSync(here.root, `${here.root}.old`);
    fs.mkdirSync(here.root);
    here.write({ "a.txt": "new\n" });
    for (const words of [["--continue", "x"], ["x"]]) {
      expect((await run(words, [{ text: "." }])).status).toBe(6);
    }
    expect((await run(["x", "--adopt-root"], [{ text: "Adopted." }])).stdout).toBe("Adopted.\n");
  });
});

describe("the root", () => {
  test("is held by one agent at a time, which is named; --shared lets others in", async () => {
    const steps: readonly ScriptStep[] = [
      { calls: [shell(`touch '${here.home}/up'; while [ ! -e '${here.home}/end' ]; do sleep 0.05; done`)] },
      { text: "." },
    ];
    const one = here.start(["run", "hold it", "--allow", "bash", "--json", "--model", here.script(steps, "hold.json")]);
    for (let line = await one.line(); !line.includes('"tool-started"'); line = await one.line());
    const busy = await run(["x"]);
    expect(busy.status).toBe(5);
    expect(busy.stderr).toMatch(/^looprig: ~\/calc is in use: run "hold it", session [0-9a-f]{4}, pid \d+, since /);
    expect((await here.run(["status"])).stdout).toContain('in use: run "hold it"');
    fs.writeFileSync(path.join(here.home, "end"), "");
    expect((await one.ended).code).toBe(0);
    expect((await run(["x"])).status).toBe(0);
  });

  test("leaves out what --exclude says, and is never a home directory", async () => {
    here.write({ "big/x": "x" });
    expect((await run(["x", "--exclude", "/big/"])).stderr).toContain("c1 baseline, 1 file\n");
    expect((await run(["x"], edits, { cwd: here.home })).status).toBe(6);
  });
});

test("nothing a model, a tool or a file's name says reaches the terminal as more than text", async () => {
  const nasty = "\u001b]0;title\u0007\u001b[2J\r\u202e";
  const steps: readonly ScriptStep[] = [
    {
      text: `think ${nasty}`,
      calls: [{ tool: `Re${nasty}ad`, input: { file_path: nasty } }, shell(`printf '${nasty}'`)],
    },
    { calls: [{ tool: "Write", input: { file_path: `f${nasty}`, content: nasty } }] },
    { text: `answer ${nasty}` },
  ];
  const ran = await run([`prompt ${nasty}`, "--allow", "bash"], steps);
  expect(ran.status).toBe(0);
  for (const said of [
    ran.stdout,
    ran.stderr,
    (await here.run(["log"])).stdout,
    (await here.run(["sessions"])).stdout,
  ]) {
    expect(said).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
  }
});
