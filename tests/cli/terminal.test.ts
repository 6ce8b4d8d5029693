/**
 * The questions, on a real pseudo-terminal. It is made by `script` of util-linux, which is part of every Linux of ours; where
 * it is absent the reason is said and these tests do not run.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TerminalHome } from "./terminal-home.js";

const script = spawnSync("script", ["--version"], { encoding: "utf8" });
const available = script.status === 0 && script.stdout.includes("util-linux");
if (!available) console.warn("no pseudo-terminal: `script` of util-linux is not on this machine");

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ a: "1\n", b: "1\n" });
});
afterEach(() => here[Symbol.dispose]());

describe.runIf(available)("on a terminal", () => {
  test("an undo shows its plan, asks [Y/n], and Enter is a yes", async () => {
    await here.did("echo 2 > a; echo 2 > b");
    const ran = await here.onTerminal(["undo"], "\n");
    expect(plain(ran.stdout)).toMatch(
      /restore {2}a {2}\+1 -1[\s\S]*Restore 2 files\? \[Y\/n\] [\s\S]*2 files restored\. looprig redo/,
    );
    expect(ran.status).toBe(0);
    expect(here.read("a")).toBe("1\n");
  });

  test("deletes ask [y/N], and Enter is a no", async () => {
    await here.did("echo 2 > made");
    const ran = await here.onTerminal(["undo"], "\n");
    expect(plain(ran.stdout)).toMatch(/Delete 1 file\? \[y\/N\] [\s\S]*Nothing was written\./);
    expect(ran.status).toBe(1);
    expect(here.read("made")).toBe("2\n");
  });

  test("a restore asks [y/N]; yes is understood, and what is neither is asked again", async () => {
    await here.did("echo 2 > a");
    const ran = await here.onTerminal(["restore", "c1"], "maybe\ny\n");
    expect(plain(ran.stdout).match(/\[y\/N\]/g)).toHaveLength(2);
    expect(ran.status).toBe(0);
    expect(here.read("a")).toBe("1\n");
  });

  test("the end of input is a no", async () => {
    await here.did("echo 2 > a");
    const ran = await here.onTerminal(["undo"], "\u0004");
    expect(ran.status).toBe(1);
    expect(here.read("a")).toBe("2\n");
  });

  test("Ctrl-C at the question writes nothing and exits 130", async () => {
    await here.did("echo 2 > a");
    const ran = await here.onTerminalWhen(["undo"], "[Y/n]", "\u0003");
    expect(ran.status).toBe(130);
    expect(here.read("a")).toBe("2\n");
    expect((await here.json(["status"]))["holder"]).toBeNull();
  });

  test("colour is for terminals: there with one, absent through a pipe and with --no-color", async () => {
    await here.did("echo 2 > a");
    expect((await here.onTerminal(["diff"], "")).stdout).toContain("\u001b[");
    expect((await here.onTerminal(["diff", "--no-color"], "")).stdout).not.toContain("\u001b[");
    expect((await here.run(["diff"])).stdout).not.toContain("\u001b[");
  });

  test("beside a command of a killed session it asks to wait or to go on, and without a terminal refuses, naming it", async () => {
    const orphan = here.start(["exec", "--", "sh", "-c", "echo 2 > a; echo $$; exec sleep 600"]);
    const pid = Number(await orphan.line());
    const gone = once(orphan.child, "exit");
    orphan.kill("SIGKILL");
    await gone;
    try {
      const refused = await here.run(["undo", "--yes"]);
      expect(refused.status).toBe(5);
      expect(refused.stderr).toContain(`kill ${pid}`);
      const neither = await here.onTerminalWhen(["snapshot"], "[n] neither", "n\n");
      expect(neither.status).toBe(5);
      const beside = await here.onTerminalWhen(["snapshot"], "[n] neither", "g\n");
      expect(beside.status).toBe(0);
      const end = (): void => void process.kill(pid, "SIGKILL");
      const waited = await here.onTerminalWhen(["snapshot"], "[n] neither", "w\n", end);
      expect(waited.status).toBe(0);
    } finally {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended as it should.
      }
    }
  });

  test("a command of exec has the terminal to itself, and Ctrl-C is its own", async () => {
    const command =
      "trap 'exit 9' INT; echo 3 > a; test -t 0 && test -t 1 && test -t 2 && echo terminal; while :; do sleep 0.05; done";
    const ran = await here.onTerminalWhen(["exec", "--", "sh", "-c", command], "terminal", "\u0003");
    expect(ran.status).toBe(9);
    expect(plain(ran.stdout)).toContain("looprig: t1, 1 file changed");
  });
});

const plain = (text: string): string => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").replaceAll("\r\n", "\n");
