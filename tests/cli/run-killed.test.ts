/** A command line that was killed while its agent worked: nothing is locked, and everything can be undone or gone on with. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ScriptStep } from "../../src/loop/index.js";
import type { TestProcess } from "../processes.js";
import { TerminalHome } from "./terminal-home.js";

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ "a.txt": "1\n" });
});
afterEach(() => here[Symbol.dispose]());

const write = { tool: "Edit", input: { file_path: "a.txt", old_string: "1", new_string: "2" } };
const wait = { tool: "Bash", input: { command: "echo up > up; sleep 600" } };
const steps: readonly ScriptStep[] = [{ calls: [write] }, { calls: [wait] }, { text: "Never." }];

/** An agent that has written a file and runs a command. */
async function working(): Promise<TestProcess> {
  const agent = here.start(["run", "work", "--allow", "bash", "--json", "--model", here.script(steps)]);
  let started = 0;
  while (started < 2) if ((await agent.line()).includes('"tool-started"')) started++;
  return agent;
}

async function killed(agent: TestProcess, signal: NodeJS.Signals): Promise<number | null> {
  const [exit] = [once(agent.child, "exit")];
  agent.kill(signal);
  const [code] = (await exit) as [number | null];
  return code;
}

describe("after kill -9", () => {
  test("undo settles the turn and takes it back", async () => {
    const agent = await working();
    await vi.waitFor(() => here.read("up"), { timeout: 30_000 });
    await killed(agent, "SIGKILL");
    expect(await here.json(["status"])).toMatchObject({
      ...{ holder: null, unsettledTurns: ["t1"], waitingTurns: [] },
      changes: [{ path: "up", by: { kind: "other-session", strength: "window", turn: "t1" } }],
    });
    expect((await here.run(["status"])).stdout).not.toContain("not by looprig");
    const undo = await here.run(["undo", "--yes"]);
    expect(undo.status).toBe(0);
    expect(here.read("a.txt")).toBe("1\n");
  });

  test("run --continue goes on at once, and knows what was said and cut short", async () => {
    await killed(await working(), "SIGKILL");
    const ran = await here.run(["run", "--continue", "go on", "--model", here.script([{ text: "Gone on." }])]);
    expect(ran).toMatchObject({ status: 0, stdout: "Gone on.\n" });
    expect(ran.stderr).toContain("the last turn was cut short; it counts as interrupted\n");
    expect(here.read("a.txt")).toBe("2\n");
    expect((await here.run(["log"])).stdout).toMatch(/t1 {2}"work" .*interrupted/);
  });
});

test.each<[NodeJS.Signals, number]>([
  ["SIGTERM", 143],
  ["SIGHUP", 129],
])("%s interrupts the turn and closes the session, with status %i", async (signal, status) => {
  const agent = await working();
  expect(await killed(agent, signal)).toBe(status);
  const { lines } = await agent.ended;
  const types = lines.map((line) => (JSON.parse(line) as { type?: string; code?: string }).type);
  expect(types.slice(types.indexOf("turn-interrupted"))).toEqual(
    expect.arrayContaining(["session-idle", "session-closed"]),
  );
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ schema: "looprig.error/1", code: "interrupted" });
  expect((await here.run(["sessions"])).stdout).toContain("closed");
});

const hasTerminal = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout.includes("util-linux");

describe.runIf(hasTerminal)("a question that was open when its process was killed", () => {
  const asks: readonly ScriptStep[] = [
    { calls: [{ tool: "Bash", input: { command: "echo 3 > a.txt" } }] },
    { text: "Never." },
  ];
  const after = (): string => here.script([{ text: "Written." }], "after.json");

  /** Killed at the question. */
  async function asking(): Promise<void> {
    await here.onTerminalDialogue(
      ["run", "ask me", "--model", here.script(asks)],
      [{ when: "[n] no  ", kill: "SIGKILL" }],
    );
    const status = await here.json(["status"]);
    expect(status).toMatchObject({ holder: null, unsettledTurns: ["t1"], waitingTurns: ["t1"] });
    expect(here.read("a.txt")).toBe("1\n");
  }

  test("is asked again by run --continue, without another prompt, and its turn goes on", async () => {
    await asking();
    const ran = await here.onTerminalDialogue(
      ["run", "--continue", "--model", after()],
      [{ when: "[n] no  ", type: "y\n" }],
    );
    expect(ran.status).toBe(0);
    expect(ran.stdout).toContain("echo 3 > a.txt");
    expect(ran.stdout).toMatch(/Written\.[^]*t1 done/);
    expect(here.read("a.txt")).toBe("3\n");
    expect((await here.run(["undo", "--yes"])).status).toBe(0);
    expect(here.read("a.txt")).toBe("1\n");
  });

  test("is refused where there is no terminal, and the next prompt follows", async () => {
    await asking();
    const model = here.script([{ text: "I may not." }, { text: "Something else." }], "after.json");
    const ran = await here.run(["run", "--continue", "then something else", "--model", model]);
    expect(ran).toMatchObject({ status: 0, stdout: "I may not.\nSomething else.\n" });
    expect(ran.stderr).toMatch(/t1 done[^]*t2 done/);
    expect(here.read("a.txt")).toBe("1\n");
  });

  test("is not asked where shell commands are allowed", async () => {
    await asking();
    expect(await here.run(["run", "--continue", "--allow", "bash", "--model", after()], { input: "" })).toMatchObject({
      ...{ status: 0, stdout: "Written.\n" },
    });
    expect(here.read("a.txt")).toBe("3\n");
  });
});
