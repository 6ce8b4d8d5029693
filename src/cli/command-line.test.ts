/** The command line up to the point where a command would touch anything. The world is one in which touching fails. */
import { describe, expect, test } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import { parseScript } from "../loop/index.js";
import { runCommandLine } from "./command-line.js";
import { commands } from "./command-table.js";
import type { Environment } from "./environment.js";
import { Output } from "./output.js";
import type { OutputStream } from "./output.js";
import { at, home } from "./testing/samples.js";

interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Collected implements OutputStream {
  text = "";
  write(chunk: string | Uint8Array, done: (error?: Error | null) => void): boolean {
    this.text += String(chunk);
    done();
    return true;
  }
  on(): this {
    return this;
  }
}

async function run(words: readonly string[], more: Partial<Environment> = {}): Promise<Ran> {
  const [stdout, stderr] = [new Collected(), new Collected()];
  const status = await runCommandLine({
    ...{
      words,
      env: {},
      platform: "linux",
      nodeVersion: "20.20.2",
      uid: 0,
      cwd: "/nowhere",
      home,
      homes: [home],
      now: () => at(14, 0),
    },
    stdin: {
      terminal: false,
      readLine: () => Promise.reject(new Error("nothing may be read")),
      readAll: () => Promise.reject(new Error("nothing may be read")),
    },
    stdout: new Output(false, () => stdout),
    stderr: new Output(false, () => stderr),
    fileSystem: interceptFileSystem(nodeFileSystem, ({ name }) => {
      throw new Error(`${name} was called`);
    }),
    signals: { on: () => undefined, off: () => undefined },
    stop: () => undefined,
    ...more,
  });
  return { status, stdout: stdout.text, stderr: stderr.text };
}

describe("a wrong command line is refused before anything is touched", () => {
  test.each<[string[], number, string]>([
    [["frob"], 2, 'Cannot run "frob": there is no such command'],
    [["statsu"], 2, "did you mean status"],
    [
      ["a\u001b[2J\nb"],
      2,
      "\n  looprig exec -- $'a\\x1b[2J\\x0ab' runs a program of that name; looprig --help lists the commands\n",
    ],
    [["undo", "t1", "it's\n"], 2, "\n  looprig undo t1 -- $'it\\'s\\x0a'\n"],
    [["status", "--jsno"], 2, "did you mean --json"],
    [["undo", "4"], 2, 'Cannot undo "4": wanted a turn such as t4'],
    [["undo", "t1", "src/x"], 2, 'paths stand after "--"'],
    [["restore"], 2, "Cannot run restore without REF"],
    [["restore", "c1", "--to", "/tmp/x", "--exact"], 2, "Cannot use --exact with --to"],
    [["log", "-n", "0"], 2, 'Cannot use "0" for -n'],
    [["show"], 2, "without REF[:PATH]"],
    ...[
      "c12",
      "t4",
      "t4^",
      "now",
      "last",
      "v1:sha256:0",
      "a:b",
      "0123abcd",
      "-x",
      "a\u001bb",
      "caf\udce9",
      "x\u0085",
    ].map((label): [string[], number, string] => [["snapshot", `-m${label}`], 2, "for -m: wanted a label"]),
    [["sessions", "rm"], 2, "without its ID"],
    [["sessions", "list"], 2, 'takes only "rm ID"'],
    [["--root"], 2, "alone: wanted a command"],
    [["status", "--root", ""], 2, "for --root: wanted a directory"],
    [["status", "--session", "3f"], 2, "four or more characters"],
    [["exec", "npm", "test"], 125, 'the command stands after "--"'],
    [["exec"], 125, "without a command"],
    [["exec", "--every", "60", "--", "true"], 125, 'Cannot use "60" for --every'],
    [["exec", "--every", "1ms", "--", "true"], 125, "from 100ms to 24h"],
    [["exec", "--", "cat", "caf\udce9"], 125, "not UTF-8"],
    [["snapshot", "-m", " "], 2, "wanted a label"],
  ])("looprig %j exits %i", async (words, status, message) => {
    const ran = await run(words);
    expect(ran.stderr).toContain(message);
    expect(ran).toMatchObject({ status, stdout: "" });
  });

  test("as a document on stdout with --json, with the same status", async () => {
    const ran = await run(["undo", "4", "--json"]);
    expect(ran).toMatchObject({ status: 2, stderr: "" });
    expect(JSON.parse(ran.stdout)).toMatchObject({
      schema: "looprig.error/1",
      code: "usage.invalid",
      details: { field: "TURN" },
    });
  });

  test("exec writes nothing to stdout even then", async () => {
    const ran = await run(["exec", "--json", "--every", "x", "--", "true"]);
    expect(ran.stdout).toBe("");
    expect(JSON.parse(ran.stderr)).toMatchObject({ code: "usage.invalid", details: { field: "--every" } });
    expect(ran.status).toBe(125);
  });

  test("a --json or --help behind -- is the command's own", async () => {
    const ran = await run(["exec", "--every", "x", "--", "tool", "--json", "--help", "--version"]);
    expect(ran.stderr).toMatch(/^looprig: Cannot use "x"/);
  });
});

describe("help", () => {
  test("without a command it goes to stderr and exits 2, asked for to stdout and 0", async () => {
    const bare = await run([]);
    expect(bare).toMatchObject({ status: 2, stdout: "" });
    const asked = await run(["--help"]);
    expect(asked).toMatchObject({ status: 0, stderr: "", stdout: bare.stderr });
  });

  test("every command has one, whatever else is wrong on the line", async () => {
    for (const name of Object.keys(commands)) {
      const ran = await run([name, "-h"]);
      expect(ran, name).toMatchObject({ status: 0, stderr: "" });
      expect(ran.stdout, name).toMatch(new RegExp(`^looprig ${name}`));
    }
  });

  test("the overview names every command that exists, and none that does not", async () => {
    const { stdout } = await run(["--help"]);
    const named = [...stdout.matchAll(/^ {2}([a-z]+)\b/gm)].map((match) => match[1]);
    expect(named).toEqual(Object.keys(commands));
  });

  test("the overview lists --session where it is taken, and only there", async () => {
    const { stdout } = await run(["--help"]);
    const named = /^(.*): {2}--session ID$/m.exec(stdout)?.[1]?.split(", ");
    const taking: string[] = [];
    for (const name of Object.keys(commands)) {
      if ((await run([name, "--help"])).stdout.includes(" --session ID ")) taking.push(name);
    }
    expect(named?.toSorted()).toEqual(taking.toSorted());
  });

  test("run says what its --json prints, and shows a script that can be played", async () => {
    const { stdout } = await run(["run", "--help"]);
    expect(stdout).toMatch(/^ {2}--json +the session's events, one JSON document per line$/m);
    expect(parseScript(/\[\{.*\}\]/.exec(stdout)?.[0] ?? "")).toHaveLength(2);
  });

  test("exec says once, plainly, what is not covered", async () => {
    const { stdout } = await run(["exec", "--help"]);
    const text = stdout.replaceAll("\n", " ");
    expect(text).toContain("looprig brings files back; it does not stop a command from leaving the directory.");
    expect(text).toContain(".git is git's to keep");
    expect(text).toContain("secrets among them, are copied to the state directory");
  });

  test("no line is wider than a terminal of 120 columns", async () => {
    for (const words of [["--help"], ...Object.keys(commands).map((name) => [name, "--help"])]) {
      for (const line of (await run(words)).stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(120);
    }
  });
});

test("--version prints the version of the package", async () => {
  const ran = await run(["--version"], { fileSystem: nodeFileSystem });
  expect(ran.status).toBe(0);
  expect(ran.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
