/**
 * `looprig exec` with real processes: the child has our terminal, streams and status to itself, and what it changed can be
 * taken back.
 */
import fs from "node:fs";
import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { builtFile } from "../build.js";
import { TerminalHome } from "./terminal-home.js";

let here: TerminalHome;
beforeEach(() => (here = new TerminalHome()));
afterEach(() => here[Symbol.dispose]());

describe("the child's streams", () => {
  test("stdin and stdout are its own, and nothing of ours is written to stdout", async () => {
    const ran = await here.run(["exec", "--", "sh", "-c", "cat; printf done; echo x > made"], { input: "in" });
    expect(ran).toMatchObject({ status: 0, stdout: "indone" });
    expect(ran.stderr).toMatch(/^looprig: t1, 1 file changed, in \S+ s\. looprig undo takes it back\.$/m);
  });

  test("the coverage of a root is said once", async () => {
    const [one, two] = [await here.sh("echo 1 > a"), await here.sh("echo 2 > a")];
    expect(one.stderr).toContain(
      "looprig: only files below ~/calc are covered; .git is not. This line is shown once.\n",
    );
    expect(two.stderr).not.toContain("shown once");
  });

  test("where nothing changed nothing is said", async () => {
    expect(await here.sh("true")).toMatchObject({ status: 0, stdout: "", stderr: "" });
  });

  test("--quiet says nothing and does not use up what is said once", async () => {
    expect((await here.sh("echo 1 > a", ["-q"])).stderr).toBe("");
    expect((await here.sh("echo 2 > a")).stderr).toContain("shown once");
  });

  test("--json writes its one line as a document on stderr", async () => {
    const ran = await here.sh("echo 1 > a; rm -f b; exit 3", ["--json"]);
    expect(ran).toMatchObject({ status: 3, stdout: "" });
    expect(ran.stderr.split("\n")).toHaveLength(2);
    expect(JSON.parse(ran.stderr)).toMatchObject({
      ...{ schema: "looprig.exec/1", root: here.root, turn: "t1", exitCode: 3, protected: true, undone: false },
      changes: [{ path: "a", kind: "added", by: { kind: "session", strength: "window", turn: "t1" } }],
      checkpoints: ["c1", "c2"],
    });
  });

  test("it finds root and session in its environment, and starts where we stand inside the root", async () => {
    here.write({ "sub/x": "" });
    await here.sh("true");
    const script = ["exec", "--", "sh", "-c", 'echo "$LOOPRIG_ROOT $LOOPRIG_SESSION $PWD"'];
    const ran = await here.run(script, { cwd: here.at("sub") });
    expect(ran.stdout).toMatch(new RegExp(`^${here.root} [0-9a-f-]{36} ${here.at("sub")}\n$`));
  });
});

describe("exit statuses", () => {
  test.each<[string[], number]>([
    [["sh", "-c", "exit 7"], 7],
    [["sh", "-c", "kill -TERM $$"], 143],
    [["no-such-program-anywhere"], 127],
    [["./not-executable"], 126],
  ])("%j ends with %i", async (command, status) => {
    here.write({ "not-executable": "x" });
    expect((await here.run(["exec", "--", ...command])).status).toBe(status);
  });

  test("125 for a refusal of ours: a second command on the root, naming the first", async () => {
    const one = here.start(["exec", "--", "sh", "-c", "echo up; read end"]);
    expect(await one.line()).toBe("up");
    const two = await here.sh("echo never > ran");
    expect(two.status).toBe(125);
    expect(two.stderr).toMatch(
      new RegExp(
        `^looprig: ~/calc is in use: exec "sh -c echo up; read end", session [0-9a-f]{4}, pid ${one.pid}, since `,
      ),
    );
    expect(fs.existsSync(here.at("ran"))).toBe(false);
    const status = await here.run(["status"]);
    expect(status.stdout).toMatch(
      /^~\/calc {3}in use: exec "sh -c echo up; read end", session [0-9a-f]{4}, pid \d+, since /,
    );
    expect((await here.run(["undo", "--yes"])).status).toBe(5);
    one.say("");
    expect((await one.ended).code).toBe(0);
  });

  test("busy says plainly when it is the session the command was started from", async () => {
    const looprig = `${process.execPath} ${builtFile("src/cli/main.ts")}`;
    const ran = await here.sh(`${looprig} undo --yes; echo "undo: $?"`);
    expect(ran.stdout).toContain("undo: 5\n");
    expect(ran.stderr).toContain("That is the session this command was started from");
  });

  test("a state directory below the root is refused before anything runs", async () => {
    const env = { LOOPRIG_HOME: here.at("state") };
    const ran = await here.run(["exec", "--", "touch", here.at("ran")], { env });
    expect(ran.status).toBe(125);
    expect(fs.existsSync(here.at("ran"))).toBe(false);
  });

  test("a home directory is too broad to be a root", async () => {
    const ran = await here.run(["exec", "--", "true"], { cwd: here.home });
    expect(ran.status).toBe(125);
    expect(ran.stderr).toContain("choose a directory inside it\n  --root DIR names one");
    expect((await here.run(["snapshot"], { cwd: here.home })).status).toBe(6);
  });
});

describe("--undo-on-failure", () => {
  test("takes everything back when the command fails", async () => {
    here.write({ a: "1\n" });
    const before = here.tree();
    const ran = await here.sh("echo 2 > a; mkdir -p new; echo x > new/b; exit 4", ["--undo-on-failure"]);
    expect(ran.status).toBe(4);
    expect(ran.stderr).toContain("Taken back, because it ended with 4. looprig redo puts it back.");
    expect(here.tree()).toEqual(before);
  });

  test("leaves everything when it succeeds", async () => {
    await here.sh("echo 2 > a", ["--undo-on-failure"]);
    expect(here.read("a")).toBe("2\n");
  });
});

describe("signals", () => {
  test("belong to the command: an interrupt ends it, not us, and what it did is captured", async () => {
    const command = here.start([
      "exec",
      "--",
      "sh",
      "-c",
      "echo 1 > a; trap 'exit 9' INT; echo up; while :; do sleep 0.05; done",
    ]);
    expect(await command.line()).toBe("up");
    // What Ctrl-C does: the terminal tells both of us.
    process.kill(command.pid, "SIGINT");
    const child = childOf(command.pid);
    process.kill(child, "SIGINT");
    const { code, stderr } = await command.ended;
    expect(code).toBe(9);
    expect(stderr).toContain("looprig: t1, 1 file changed");
    expect((await here.json(["status"]))["holder"]).toBeNull();
  });

  test("a termination of ours is passed on", async () => {
    const command = here.start(["exec", "--", "sh", "-c", "trap 'exit 8' TERM; echo up; while :; do sleep 0.05; done"]);
    expect(await command.line()).toBe("up");
    command.kill("SIGTERM");
    expect((await command.ended).code).toBe(8);
  });
});

/** The one child of a process, found as the kernel tells. */
function childOf(pid: number): number {
  const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  expect(children).toHaveLength(1);
  return children[0] ?? -1;
}

test("a child that writes a pipe full finds it blocking, as without us", async () => {
  const child = spawn(
    process.execPath,
    [builtFile("src/cli/main.ts"), "exec", "--", "sh", "-c", "head -c 3000000 /dev/zero; echo $? >&2"],
    { cwd: here.root, env: here.env(), stdio: ["ignore", "pipe", "pipe"] },
  );
  let stderr = "";
  let read = 0;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  for await (const chunk of child.stdout) {
    read += (chunk as Buffer).length;
    await new Promise(setImmediate);
  }
  expect(read).toBe(3_000_000);
  expect(stderr).toBe("0\n");
});

test("a turn that was cut short is named by status, and undo asks before it takes it back", async () => {
  here.write({ a: "1\n" });
  // The command ends right after its session did: none of it is left to be waited for.
  await here.sh("echo 2 > a; exec kill -9 $PPID");
  const status = await here.run(["status"]);
  expect(status.stdout).toMatch(/^! t1 exec sh -c .* was cut short; the next command that writes settles it/m);
  expect(await here.json(["status"])).toMatchObject({ unsettledTurns: ["t1"], undoable: { turn: "t1", paths: ["a"] } });
  expect((await here.run(["undo"])).status).toBe(2);
  expect((await here.run(["undo", "--dry-run"])).stdout).toMatch(/^ {2}restore {2}a {2}\+1 -1$/m);
  expect(here.read("a")).toBe("2\n");
  expect((await here.run(["undo", "--yes"])).status).toBe(0);
  expect(here.read("a")).toBe("1\n");
});
