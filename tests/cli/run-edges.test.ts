/** `looprig run` at its edges: what it refuses to read and send, an output that fails, and how a turn that goes on is told. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ScriptStep } from "../../src/loop/index.js";
import { delta, openAiServer, streams } from "../../src/loop/testing/openai-server.js";
import { builtFile } from "../build.js";
import { TerminalHome } from "./terminal-home.js";

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ "a.txt": "1\n" });
});
afterEach(() => here[Symbol.dispose]());

describe("what the agent is told", () => {
  test("an AGENTS.md that leads out of the directory is not sent, and one line says so", async () => {
    fs.writeFileSync(path.join(here.home, "secret"), "the secret of the house\n");
    fs.symlinkSync("../secret", here.at("AGENTS.md"));
    await using server = await openAiServer([streams(delta({ content: "Yes." }), delta({}, "stop"))]);
    const ran = await here.run(["run", "x", "--base-url", server.baseURL, "--model", "m"]);
    expect(ran).toMatchObject({ status: 0, stdout: "Yes.\n" });
    expect(ran.stderr.match(/^.*AGENTS\.md.*$/gm)).toEqual([
      "AGENTS.md was not read: it is a link that leads out of the directory",
    ]);
    expect(JSON.stringify(server.requests[0]?.messages)).not.toContain("the secret");
  });

  test("--system may be anywhere, and is refused when it is binary", async () => {
    const words = ["run", "x", "--model", here.script([{ text: "Yes." }])];
    const file = path.join(here.home, "more");
    fs.writeFileSync(file, "Be brief.");
    fs.symlinkSync(file, here.at("link"));
    expect((await here.run([...words, "--system", "link"])).status).toBe(0);
    fs.writeFileSync(file, "\0ELF");
    const ran = await here.run([...words, "--system", file]);
    expect(ran).toMatchObject({ status: 2, stdout: "" });
    expect(ran.stderr).toContain(`Cannot read "${file}" for --system: it is binary: it holds NUL bytes`);
  });
});

describe("an output that fails", () => {
  /** With a full disk behind stdout. */
  async function overfull(
    words: readonly string[],
  ): Promise<{ readonly status: number | null; readonly stderr: string }> {
    const full = fs.openSync("/dev/full", "w");
    const child = spawn(process.execPath, [builtFile("src/cli/main.ts"), ...words], {
      cwd: here.root,
      env: here.env(),
      stdio: ["ignore", full, "pipe"],
    });
    fs.closeSync(full);
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const status = await new Promise<number | null>((resolve) => child.on("close", resolve));
    return { status, stderr };
  }

  test.each([[["--json"]], [[]]])("interrupts the turn, closes the session and is reported, with %j", async (more) => {
    const steps: readonly ScriptStep[] = [
      { text: "I begin.", calls: [{ tool: "Write", input: { file_path: "w.txt", content: "x" } }] },
      { calls: [{ tool: "Bash", input: { command: "sleep 600; echo hi > hi.txt" } }] },
      { text: "Done." },
    ];
    const script = more.length > 0 ? steps : [steps[0] as ScriptStep, { text: "Done." }];
    const ran = await overfull(["run", "x", "--allow", "bash", "--model", here.script(script), ...more]);
    expect(ran.status).toBe(1);
    const [report] = ran.stderr.match(/^looprig: [^]*/m) ?? [];
    expect(report).toMatch(/^looprig: Cannot write the output: no space left on device \(ENOSPC\); [^\n]*\n$/);
    expect((await here.run(["sessions"])).stdout).toContain("closed");
    expect(await here.json(["status"])).toMatchObject({ holder: null, unsettledTurns: [] });
    expect(fs.existsSync(here.at("hi.txt"))).toBe(false);
  });
});

const hasTerminal = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout.includes("util-linux");

describe.runIf(hasTerminal)("a turn that goes on after its process was killed at a question", () => {
  test.each([
    ["allowed", ["--allow", "bash"], /^~\/calc .*[^]*^› Bash {3}echo 3 > a\.txt +exit 0 +\d+\.\d s$/m],
    ["refused", [], /^~\/calc .*[^]*^› Bash {3}echo 3 > a\.txt +not approved: /m],
  ])("shows the command that is %s", async (_, more, shown) => {
    const asks = [{ calls: [{ tool: "Bash", input: { command: "echo 3 > a.txt" } }] }];
    await here.onTerminalDialogue(
      ["run", "ask me", "--model", here.script(asks)],
      [{ when: "[n] no  ", kill: "SIGKILL" }],
    );
    const after = here.script([{ text: "Well." }], "after.json");
    const ran = await here.run(["run", "--continue", "--model", after, ...more], { input: "" });
    expect(ran).toMatchObject({ status: 0, stdout: "Well.\n" });
    expect(ran.stderr).toMatch(shown);
    expect(ran.stderr).toMatch(/^t1 done {3}1 call {3}/m);
  });
});
