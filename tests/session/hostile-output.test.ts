/**
 * Outputs and commands without measure or manners: what the model is told is bounded and readable, what is on record is small,
 * and a command that will not end, hides, or destroys the place it stands in leaves a session that goes on.
 */
import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resultCharsMax } from "../../src/loop/index.js";
import { calls, finish } from "../../src/loop/testing/models.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import type { ToolDefinition, ToolOutput } from "../../src/tool/index.js";
import { startProcess } from "../processes.js";
import { HostileScene } from "./hostile-scene.js";
import type { Attack } from "./hostile-scene.js";

const anything = jsonSchema<object>({ type: "object" });
const speaker = (
  name: string,
  execute: (input: object, context: { readonly progress: (text: string) => void }) => ToolOutput,
): ToolDefinition => defineTool({ name, description: "Answers", inputSchema: anything, execute });
/** More than one answer holds, and little enough to be read to its end. */
const numbers = Array.from({ length: 30_000 }, (_, i) => `line ${i}`).join("\n");
const ten = "x".repeat(10_000_000);

/** Bounded for the model and on record, and text that every server takes. */
function bounded({ told, events, result }: Attack): string {
  expect(result).toMatchObject({ status: "done" });
  const text = told[0]?.text ?? "";
  expect(text.length).toBeLessThan(resultCharsMax + 200);
  expect(text).not.toMatch(/\p{Surrogate}/u);
  for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(200_000);
  return text;
}

describe("output of 10 MB", () => {
  const scene = new HostileScene({
    tools: [
      speaker("Text", () => ten),
      speaker("Lines", () => numbers),
      speaker("Throws", () => {
        throw new Error(ten);
      }),
      speaker("Data", () => ({ text: "small", data: { ten } })),
      speaker("Shows", (_, { progress }) => {
        for (let i = 0; i < 20_000; i++) progress(ten);
        return "shown";
      }),
      speaker("Halves", () => "\ud83d\ude00".repeat(1_000_000)),
    ],
  });
  afterAll(() => scene[Symbol.asyncDispose]());
  beforeAll(() => {
    scene.place.write({
      "lines.txt": "a line that is found\n".repeat(450_000),
      "line.txt": "y".repeat(9_000_000),
      "large.txt": "z".repeat(11_000_000),
      ...Object.fromEntries(Array.from({ length: 1_200 }, (_, i) => [`many/${i}`, ""])),
    });
  });

  /** All of an output that was cut, as the model can read it piece by piece. */
  async function readWhole(text: string): Promise<string> {
    const name = /; Read shows all of them, as the file "(output:[0-9a-f]{8})"\]/.exec(text)?.[1] ?? "";
    let lines = "";
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const { told } = await scene.turn([[calls("Read", { file_path: name, offset }), finish("tool-calls")]]);
      const piece = told[0]?.text ?? "";
      lines += piece.replaceAll(/^ *\d+\t/gm, "").replace(/\n\[lines .*$/s, "\n");
      const next: string | undefined = /go on with offset (\d+)\]$/.exec(piece)?.[1];
      offset = next === undefined ? undefined : Number(next);
    }
    return lines;
  }

  it("of a tool is cut in the middle, and says how to read all of it", async () => {
    const text = bounded(await scene.call("Text", {}));
    expect(text).toMatch(
      /^x+\n\[9950000 of 10000000 characters are left out here; Read shows all of them, as .*\]\nx+$/,
    );
    const lines = bounded(await scene.call("Lines", {}));
    expect(await readWhole(lines)).toBe(`${numbers}\n`);
  });
  it("of a command is kept as well, without an end of a line too", async () => {
    const text = bounded(await scene.call("Bash", { command: "head -c 200000 /dev/zero | tr '\\0' y; echo end" }));
    expect((await readWhole(text)).replaceAll("\n", "")).toBe(`${"y".repeat(200_000)}end`);
  });
  it("that is not kept any more is said to be so", async () => {
    expect(bounded(await scene.call("Read", { file_path: "output:00000000" }))).toMatch(/not kept any more.*again$/);
    expect(bounded(await scene.call("Read", { file_path: "./output:00000000" }))).toMatch(/no such file/);
  });
  it("that a tool throws is cut like any other", async () => {
    expect(bounded(await scene.call("Throws", {}))).toContain("characters are left out here");
  });
  it("in the data of a tool is left out, and its text kept", async () => {
    const attack = await scene.call("Data", {});
    expect(bounded(attack)).toBe("small");
    expect(attack.events.find(({ type }) => type === "tool-done")).not.toHaveProperty("data");
  });
  it("as progress, many times over, reaches no record", async () => {
    expect(bounded(await scene.call("Shows", {}))).toBe("shown");
  });
  it("is never cut within a character", async () => {
    expect(bounded(await scene.call("Halves", {}))).not.toContain("\ufffd");
  });

  it("of a file is read in pieces, to its last line", async () => {
    const text = bounded(await scene.call("Read", { file_path: "lines.txt" }));
    const next = Number(/of 450000; go on with offset (\d+)\]$/.exec(text)?.[1]);
    expect(next).toBeGreaterThan(1_000);
    expect(bounded(await scene.call("Read", { file_path: "lines.txt", offset: next }))).toContain(`${next}\t`);
    expect(bounded(await scene.call("Read", { file_path: "lines.txt", offset: 450_000 }))).toContain("450000\ta line");
  });
  it("in one line is shown as far as a line is, and says so", async () => {
    expect(bounded(await scene.call("Read", { file_path: "line.txt" }))).toMatch(/characters/);
  });
  it("and more in a file is refused, with what to do", async () => {
    expect(bounded(await scene.call("Read", { file_path: "large.txt" }))).toMatch(/use a program that reads parts/);
  });
  it("of a search says that there is more, and how to see less at once", async () => {
    expect(bounded(await scene.call("Grep", { pattern: "found" }))).toMatch(/left out|many more/);
    expect(bounded(await scene.call("Grep", { pattern: "y" }))).toContain("line.txt:1:");
  });
  it("of a directory says how many names are left out", async () => {
    expect(bounded(await scene.call("List", { path: "many" }))).toMatch(/200 of 1200 entries are left out; use Glob/);
    expect(bounded(await scene.call("Glob", { pattern: "many/119*" })).split("\n")).toHaveLength(11);
  });
  it("of a command keeps both ends, and counts what is between", async () => {
    const text = bounded(
      await scene.call("Bash", { command: "echo begin; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end" }),
    );
    expect(text).toMatch(/^begin\nx+/);
    expect(text).toMatch(/x+\nend$/);
    expect(text).toMatch(/\d+ of \d+ characters are left out here; Read shows/);
  });
  it("of a command that is no text is text all the same", async () => {
    expect(bounded(await scene.call("Bash", { command: "head -c 3000000 /dev/urandom" }))).toContain("\ufffd");
    expect(bounded(await scene.call("Bash", { command: "printf 'a\\377\\200b\\0c'" }))).toMatch(/^a\ufffd+b.c$/s);
  });
  it("of a command that never stops is ended by its time", async () => {
    expect(bounded(await scene.call("Bash", { command: "yes", timeout_ms: 300 }))).toMatch(/\[ended after 300 ms/);
  });

  it("stays small in a conversation which another session goes on with", () => scene.proveResumable());
});

describe("a command that", () => {
  const scene = new HostileScene();
  const { place } = scene;
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each<[string, object, RegExp]>([
    ["has a millisecond", { command: "sleep 30", timeout_ms: 1 }, /ended after 1 ms/],
    ["reads its input", { command: "cat; read x; echo $?" }, /^1$/],
    ["leaves a loop in the background", { command: "(while :; do :; done) & echo left" }, /left\n\[processes it left/],
    [
      "leaves one that minds no hang-up",
      { command: "nohup sleep 30 >/dev/null & echo left" },
      /left\n\[processes it left/,
    ],
    ["leaves a child of a child", { command: "( (sleep 30 &) & ); echo left" }, /left\n\[processes it left/],
    ["closes its output and lives on", { command: "exec >&- 2>&-; sleep 30", timeout_ms: 200 }, /ended after 200 ms/],
    ["closes all it has", { command: "exec 0<&- 1>&- 2>&- 3>&- 4>&-" }, /no output/],
    ["stops itself", { command: "kill -STOP $$", timeout_ms: 200 }, /ended after 200 ms/],
    ["kills itself", { command: "kill -9 $$" }, /exit code 137/],
    ["kills its group", { command: "kill -9 0" }, /exit code 137/],
    ["goes away", { command: "cd /; echo away" }, /away\n\[it ended outside of the workspace/],
    ["removes where it stands", { command: "mkdir gone; cd gone; rmdir ../gone" }, /./],
    ["is told where the next begins", { command: "pwd" }, /\/root$/],
    ["is no command", { command: ")" }, /syntax error/],
    ["takes over the way it reports", { command: "trap - EXIT; exec 3>&-; cd /" }, /./],
    ["reports a place that is not its own", { command: "echo /etc >&3; exit 0" }, /./],
    ["writes a name full of escapes", { command: "printf '\\033]0;x\\007\\033[2J'; touch $'e\\033[31m\\n'" }, /./],
  ])("%s is answered, and the next one runs", async (_, input, wanted) => {
    const { told, result } = await scene.call("Bash", input);
    expect(result).toMatchObject({ status: "done" });
    expect(told[0]?.text).toMatch(wanted);
    const next = await scene.turn([[calls("Bash", { command: "echo fine" }), finish("tool-calls")]]);
    expect(next.told[0]?.text).toMatch(/(?:^|\n)fine(?:\n\[.*)?$/);
  });

  it("will not end when asked is killed, whatever it traps", async () => {
    const command = "trap '' TERM HUP INT; (trap '' TERM; while :; do sleep 0.1; done) & while :; do sleep 0.1; done";
    const { told } = await scene.call("Bash", { command, timeout_ms: 100 });
    expect(told[0]).toMatchObject({
      type: "error-text",
      text: expect.stringContaining("ended after 100 ms") as string,
    });
  });

  it("leaves a process in a session of its own is answered all the same", async () => {
    // Not before it has left the group.
    const command = 'setsid sleep 60 & until [ "$(cut -d" " -f6 /proc/$!/stat)" = $! ]; do :; done; echo $!';
    const { told } = await scene.call("Bash", { command });
    const pid = Number(/^(\d+)$/m.exec(told[0]?.text ?? "")?.[1]);
    expect(told[0]?.type).toBe("text");
    // It is outside of what is ended (docs say so); here the test does it.
    process.kill(pid, "SIGKILL");
  });

  it("tries to write outside through what is ours changes nothing there", async () => {
    const { told } = await scene.call("Bash", { command: "ls -l /proc/self/fd; ls /proc/$$/fd | wc -l" });
    expect(told[0]?.text).not.toContain(place.stateDir);
  });

  it("removes the root ends no session: it can be built anew", async () => {
    const outside = scene.beside();
    const gone = await scene.turn([[calls("Bash", { command: 'rm -rf "$LOOPRIG_ROOT"' }), finish("tool-calls")]]);
    expect(gone.result).toMatchObject({ status: "failed", error: { code: "workspace_root.changed" } });
    expect(gone.events.at(-1)).toMatchObject({ type: "turn-failed", code: "workspace_root.changed" });
    const { id } = await scene.session();
    await scene.close();
    expect(fs.existsSync(place.root)).toBe(false);
    scene.adopt(await (await scene.rig()).resumeSession(id, { root: "recreate" }));
    expect(place.read("a.txt")).toBe("one\ntwo\n");
    await scene.proveUsable();
    expect(scene.beside()).toEqual(outside);
  });
});

it("E1: whoever reads a turn slowly, or not at all, loses live parts and no event, and delays nothing", async () => {
  const floods = speaker("Floods", (_, { progress }) => {
    for (let i = 0; i < 50_000; i++) progress(`${i}`);
    return "flooded";
  });
  await using scene = new HostileScene({ tools: [floods] });
  const session = await scene.session();
  scene.answer([calls("Floods", {}), finish("tool-calls")]);
  const turn = await session.submit("go on");
  const slow = turn[Symbol.asyncIterator]();
  await slow.next();
  // Nobody takes what comes until the turn is over.
  expect(await turn.done).toMatchObject({ status: "done", text: "Fine." });
  const types: string[] = [];
  for (let next = await slow.next(); next.done !== true; next = await slow.next()) types.push(next.value.type);
  expect(types.filter((type) => type === "tool-progress").length).toBeLessThanOrEqual(1_000);
  for (const type of ["tool-started", "tool-done", "turn-done"]) expect(types).toContain(type);
  const late: string[] = [];
  for await (const part of turn) late.push(part.type);
  expect(late).toEqual(expect.arrayContaining(["turn-started", "step-started", "turn-done"]));
});

it("a command that kills looprig itself ends what it started, and the session goes on in the next process", async () => {
  await using scene = new HostileScene();
  const { place } = scene;
  const child = startProcess("tests/processes/hostile-session.ts", [place.root, place.stateDir]);
  const id = await child.line();
  await child.ended;
  scene.adopt(await scene.resume(id as never));
  await scene.proveUsable();
  const { turns } = await (await scene.session()).workspace.history();
  expect(turns[0]).toMatchObject({ number: 1, state: "interrupted" });
});
