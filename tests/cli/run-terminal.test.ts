/** `looprig run` on a real pseudo-terminal: questions about commands, what streams, and Ctrl-C. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ScriptStep } from "../../src/loop/index.js";
import { TerminalHome } from "./terminal-home.js";

const script = spawnSync("script", ["--version"], { encoding: "utf8" });
const available = script.status === 0 && script.stdout.includes("util-linux");
if (!available) console.warn("no pseudo-terminal: `script` of util-linux is not on this machine");

let here: TerminalHome;
beforeEach(() => (here = new TerminalHome()));
afterEach(() => here[Symbol.dispose]());

const shell = (command: string) => ({ tool: "Bash", input: { command } });
const twice: readonly ScriptStep[] = [
  { text: "I try.", calls: [shell("echo 1 > one")] },
  { calls: [shell("echo 2 > two\necho 3 > three")] },
  { text: "Tried." },
];
const question = "[n] no  ";

describe.runIf(available)("on a terminal", () => {
  test("y runs a command once, n with a reason is told to the agent, and the whole command is shown", async () => {
    const ran = await here.onTerminalDialogue(
      ["run", "try", "--model", here.script(twice)],
      [
        { when: question, type: "y\n" },
        { when: question, type: "n use a file tool\n" },
      ],
    );
    const text = plain(ran.stdout);
    expect(ran.status).toBe(0);
    expect(text).toMatch(
      /^› Bash {3}echo 1 > one {8}allow\? {2}\[y\] once {2}\[a\] always {2}\[n\] no {2}y\n {29}exit 0 {3}\d+\.\d s\n/m,
    );
    expect(text).toContain("› Bash\n    echo 2 > two\n    echo 3 > three\n  allow?  ");
    expect(text).toMatch(
      /\n {29}not approved: use a file tool\n\nTried\.\n\nt1 done {3}2 calls {3}c2\n {2}A one {2}\+1 -0\n/,
    );
    expect(Object.keys(here.tree())).toEqual(["one"]);
  });

  test("a asks no more in this session; what is neither is asked again", async () => {
    const ran = await here.onTerminalDialogue(
      ["run", "try", "--model", here.script(twice)],
      [
        { when: question, type: "\n" },
        { when: question, type: "always\n" },
      ],
    );
    expect(ran.status).toBe(0);
    expect(plain(ran.stdout).match(/allow\?/g)).toHaveLength(2);
    expect(Object.keys(here.tree()).sort()).toEqual(["one", "three", "two"]);
    // Another process, without a terminal: the session remembers. A new session does not.
    const model = here.script([{ calls: [shell("echo 4 > four")] }, { text: "Done." }], "more.json");
    expect((await here.run(["run", "new", "--model", model])).stderr).toContain("not approved");
    const [, session = ""] = /session ([0-9a-f]+)/.exec(ran.stdout) ?? [];
    expect((await here.run(["run", "--resume", session, "more", "--model", model])).stderr).toContain("exit 0");
    expect(here.read("four")).toBe("4\n");
  });

  test("the talk is dim and the answer is not; --no-color colours nothing", async () => {
    const words = ["run", "say", "--model", here.script([{ text: "It  is\n  so." }])];
    const ran = await here.onTerminal(words, "");
    expect(ran.stdout.replaceAll("\r\n", "\n")).toContain(
      "\n\nIt  is\n  so.\n\n\u001b[2mt1 done   changed nothing\u001b[22m\n",
    );
    expect((await here.onTerminal([...words, "--no-color"], "")).stdout).not.toContain("\u001b");
  });

  test("Ctrl-C at a question interrupts the turn, says how to go on, and the session does", async () => {
    const words = ["run", "try", "--model", here.script(twice)];
    const ran = await here.onTerminalWhen(words, question, "\u0003");
    const text = plain(ran.stdout);
    expect(ran.status).toBe(130);
    expect(text).toMatch(
      /interrupting; once more stops at once\n[^]*\nt1 interrupted {3}1 call {3}changed nothing\nlooprig run --continue --model \S+ "go on"\n/,
    );
    expect(here.tree()).toEqual({});
    expect((await here.json(["status"]))["holder"]).toBeNull();
    const more = await here.run(["run", "--continue", "go on", "--model", here.script([{ text: "Gone on." }])]);
    expect(more).toMatchObject({ status: 0, stdout: "Gone on.\n" });
    expect(more.stderr).toContain(", 1 turn before");
  });

  test("Ctrl-C ends a running command too; what it had written is captured, and undone", async () => {
    const steps: readonly ScriptStep[] = [
      { calls: [shell("echo half > half; touch ../up; sleep 600")] },
      { text: "Never." },
    ];
    const up = path.join(here.home, "up");
    const ran = await here.onTerminalDialogue(
      ["run", "wait", "--allow", "bash", "--model", here.script(steps)],
      [{ when: () => fs.existsSync(up), type: "\u0003" }],
    );
    expect(ran.status).toBe(130);
    expect(plain(ran.stdout)).toMatch(
      /interrupted {3}\d+\.\d s\n\nt1 interrupted {3}1 call {3}c2\n {2}A half {2}\+1 -0\nlooprig run --continue .* · looprig diff · looprig undo\n/,
    );
    expect((await here.run(["undo", "--yes"])).status).toBe(0);
    expect(here.tree()).toEqual({});
  });

  test("a second Ctrl-C stops at once, nothing stays locked, and the session goes on", async () => {
    // The command does not end when it is asked to, so the first interrupt is still at work.
    const stubborn = "trap '' TERM INT; echo half > half; touch ../up; while :; do sleep 0.1; done";
    const up = path.join(here.home, "up");
    const ran = await here.onTerminalDialogue(
      ["run", "wait", "--allow", "bash", "--model", here.script([{ calls: [shell(stubborn)] }, { text: "Never." }])],
      [
        { when: () => fs.existsSync(up), type: "\u0003" },
        { when: "once more stops at once", type: "\u0003" },
      ],
    );
    expect(ran.status).toBe(130);
    expect(plain(ran.stdout)).not.toContain("t1 interrupted");
    expect((await here.json(["status"]))["holder"]).toBeNull();
    const more = await here.run(["run", "--continue", "go on", "--model", here.script([{ text: "Gone on." }])]);
    expect(more).toMatchObject({ status: 0, stdout: "Gone on.\n" });
    expect(more.stderr).toContain("the last turn was cut short; it counts as interrupted\n");
  });
});

const plain = (text: string): string => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").replaceAll("\r\n", "\n");
