/** Every command but `exec`, with real processes on a real tree: what it prints, what it exits with, what it left. */
import fs from "node:fs";
import path from "node:path";
import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { builtFile } from "../build.js";
import { TerminalHome } from "./terminal-home.js";

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ "src/parse.js": "a\nb\nc\n", "src/round.js": "floor\n", "README.md": "hi\n" });
});
afterEach(() => here[Symbol.dispose]());

const agent = "echo B > src/parse.js; rm src/round.js; mkdir -p new/dir; echo x > new/dir/file";

describe("undo, redo and restore", () => {
  test("undo puts everything back, redo the other way, and both end with what reverses them", async () => {
    const before = here.tree();
    await here.did(agent);
    const after = here.tree();
    const undone = await here.run(["undo", "--yes"]);
    expect(undone).toMatchObject({ status: 0, stderr: "" });
    expect(undone.stdout).toContain("2 files restored, 1 deleted. looprig redo puts them back.\n");
    expect(here.tree()).toEqual(before);
    const redone = await here.run(["redo", "--yes"]);
    expect(redone.stdout).toContain("looprig undo takes that back.\n");
    expect(here.tree()).toEqual(after);
  });

  test("files made meanwhile stay, and only the named paths are taken back", async () => {
    await here.did(agent);
    here.write({ "notes.md": "mine\n" });
    const ran = await here.run(["undo", "--yes", "--", "round.js"], { cwd: here.at("src") });
    expect(ran).toMatchObject({ status: 0, stderr: "looprig: in ~/calc\n" });
    expect(here.read("src/round.js")).toBe("floor\n");
    expect(here.read("src/parse.js")).toBe("B\n");
    expect(here.read("notes.md")).toBe("mine\n");
  });

  test("without a terminal and without --yes nothing is written and it exits 2", async () => {
    await here.did(agent);
    const after = here.tree();
    for (const words of [["undo"], ["restore", "c1"]]) {
      const ran = await here.run(words);
      expect(ran, words.join(" ")).toMatchObject({ status: 2, stdout: "" });
      expect(ran.stderr).toContain("--yes answers it");
    }
    expect(await here.run(["undo", "--json"]).then(({ stdout }) => JSON.parse(stdout) as unknown)).toMatchObject({
      ...{ schema: "looprig.error/1", code: "consent.needed", details: { action: "undo" } },
    });
    expect(here.tree()).toEqual(after);
    const sessions = await here.json(["sessions"]);
    expect(sessions["sessions"]).toHaveLength(1);
  });

  test("a dry run writes nothing and takes no lease", async () => {
    await here.did(agent);
    const after = here.tree();
    const ran = await here.run(["undo", "--dry-run"]);
    expect(ran.status).toBe(0);
    expect(ran.stdout).toContain("2 files to restore, 1 to delete, 0 conflicts. Nothing was written.\n");
    expect(here.tree()).toEqual(after);
  });

  test("a conflict writes nothing, exits 4 and says what to type; --skip-conflicts does the rest", async () => {
    await here.did(agent);
    here.write({ "src/parse.js": "mine\n" });
    const stopped = await here.run(["undo", "--yes"]);
    expect(stopped.status).toBe(4);
    expect(stopped.stdout).toMatch(/^ {2}conflict {2}src\/parse\.js +changed since, not by looprig$/m);
    expect(stopped.stdout).toContain("1 conflict, so nothing was written.\n  looprig diff t1 now -- src/parse.js ");
    expect(fs.existsSync(here.at("src/round.js"))).toBe(false);
    const document = await here.json(["undo", "--yes"]);
    expect(document).toMatchObject({ schema: "looprig.undo/1", result: "conflict", written: [], safety: null });

    const skipped = await here.run(["undo", "--yes", "--skip-conflicts"]);
    expect(skipped.status).toBe(0);
    expect(here.read("src/parse.js")).toBe("mine\n");
    expect(here.read("src/round.js")).toBe("floor\n");
  });

  test("what was not captured is not promised back: exit 6, and it is named", async () => {
    await here.run(["snapshot", "--exclude", "*.env"]);
    here.write({ "x.env": "secret\n" });
    await here.did("rm x.env");
    const { status, stdout } = await here.run(["undo", "--yes"]);
    expect({ status, stdout }).toMatchObject({
      status: 6,
      stdout: expect.stringMatching(/^t1: nothing can be taken back\. /) as string,
    });
    expect(stdout).toContain("x.env was not captured and is gone; it cannot be brought back.");
    expect(await here.json(["undo", "--dry-run"])).toMatchObject({ result: "refused", kept: [{ path: "x.env" }] });
  });

  test("a name that is nowhere is told from one with nothing to do", async () => {
    await here.did(agent);
    const after = here.tree();
    for (const [words, told] of [
      [["undo", "--yes"], "Cannot undo src/prase.js: nothing of that name in t1 or here"],
      [["restore", "c1", "--yes"], "Cannot restore src/prase.js: nothing of that name in c1 or here"],
      [["diff", "c1", "t1"], "Cannot diff src/prase.js: nothing of that name in c1 or t1"],
    ] as const) {
      const ran = await here.run([...words, "--", "src/prase.js", "src/round.js"]);
      expect(ran, words[0]).toMatchObject({ status: 3, stdout: "", stderr: `looprig: ${told}\n` });
    }
    expect(here.tree()).toEqual(after);
  });

  test("with nothing to do it exits 3", async () => {
    await here.did("true");
    expect(await here.run(["undo", "--yes"])).toMatchObject({ status: 3 });
    expect(await here.run(["redo", "--yes"])).toMatchObject({ status: 3, stdout: "There is nothing to redo here.\n" });
    expect(await here.json(["redo", "--yes"])).toMatchObject({
      schema: "looprig.redo/1",
      result: "nothing",
      entry: null,
    });
  });

  test("a restore keeps what looprig did not write; --exact lists it first and replaces it", async () => {
    await here.did(agent);
    here.write({ "README.md": "mine\n", "notes.md": "mine\n" });
    const kept = await here.run(["restore", "c1", "--yes"]);
    expect(kept.stdout).toMatch(/^ {2}keep +README\.md +not by looprig$/m);
    expect(here.read("README.md")).toBe("mine\n");
    const exact = await here.run(["restore", "c1", "--exact", "--yes"]);
    expect(exact.stdout).toMatch(
      /^not written by looprig, and replaced or deleted all the same\n {2}README\.md\n {2}notes\.md\n/,
    );
    expect(here.read("README.md")).toBe("hi\n");
    expect(fs.existsSync(here.at("notes.md"))).toBe(false);
    const undone = await here.json(["undo", "--yes"]);
    expect(undone).toMatchObject({ schema: "looprig.undo/1", action: "undo", result: "done", reverse: "looprig redo" });
    expect(here.read("notes.md")).toBe("mine\n");
  });

  test("REF:PATH restores one file", async () => {
    await here.did(agent);
    expect((await here.run(["restore", "c1:src/round.js", "--yes"])).status).toBe(0);
    expect(here.read("src/round.js")).toBe("floor\n");
    expect(here.read("src/parse.js")).toBe("B\n");
  });

  test("--to writes the files elsewhere, all or some, and refuses a directory that is not empty", async () => {
    const before = here.tree();
    await here.did(agent);
    const there = path.join(here.home, "copy");
    const ran = await here.run(["restore", "c1", "--to", there]);
    expect(ran).toMatchObject({ status: 0 });
    expect(here.tree(there)).toEqual(before);
    expect((await here.run(["restore", "c1", "--to", there])).status).toBe(6);
    const some = path.join(here.home, "some");
    expect((await here.run(["restore", "c1", "--to", some, "--", "src"])).status).toBe(0);
    expect(Object.keys(here.tree(some))).toEqual(["src", "src/parse.js", "src/round.js"]);
  });

  test("a root that is gone is refused by others and built again by restore", async () => {
    const before = here.tree();
    await here.did("echo B > src/parse.js");
    fs.rmSync(here.root, { recursive: true });
    const from = { cwd: here.home };
    const at = ["--root", here.root];
    const undo = await here.run(["undo", "--yes", ...at], from);
    expect(undo).toMatchObject({ status: 6 });
    expect(undo.stderr).toContain("looprig restore last builds it again");
    const refused = await here.run(["restore", "c1", ...at], from);
    expect(refused.status).toBe(2);
    expect(fs.existsSync(here.root)).toBe(false);
    expect((await here.run(["restore", "c1", "--yes", ...at], from)).status).toBe(0);
    expect(here.tree()).toEqual(before);
  });

  test("another directory at the root is refused until it is adopted", async () => {
    await here.did(agent);
    fs.renameSync(here.root, `${here.root}-moved`);
    fs.mkdirSync(here.root);
    const refused = await here.sh("true");
    expect(refused.status).toBe(125);
    expect((await here.run(["undo", "--yes"])).status).toBe(6);
    expect((await here.sh("echo 1 > new", ["--adopt-root"])).status).toBe(0);
  });
});

describe("where nothing is", () => {
  const state = (): boolean => fs.existsSync(path.join(here.home, "state"));

  test("commands that read make no state directory", async () => {
    for (const words of [["status"], ["sessions"], ["undo", "--yes"], ["show", "now"]]) {
      const ran = await here.run(words);
      expect(ran.status, ran.stderr).toBe(words[0] === "undo" ? 3 : 0);
    }
    expect(state()).toBe(false);
  });

  test("a root that does not exist is refused, not made, and so is one that is a file", async () => {
    for (const [words, status] of [
      [["snapshot"], 2],
      [["exec", "--root", "nope", "--", "true"], 125],
    ] as const) {
      const ran = await here.run(words[0] === "exec" ? words : [...words, "--root", "README.md"]);
      expect(ran.status).toBe(status);
      expect(ran.stderr).toMatch(/^looprig: Cannot use "(nope|README\.md)" for --root: /);
    }
    expect(fs.existsSync(here.at("nope"))).toBe(false);
    expect(state()).toBe(false);
  });

  test("a current directory that is gone is told so", async () => {
    fs.mkdirSync(here.at("gone"));
    const looprig = `${process.execPath} ${builtFile("src/cli/main.ts")}`;
    const script = `cd gone; rmdir ../gone; ${looprig} status; echo $?; unset PWD; ${looprig} exec -- true; echo $?`;
    const child = spawn("sh", ["-c", script], { cwd: here.root, env: here.env(), stdio: ["ignore", "pipe", "pipe"] });
    const out: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => out.push(text));
    await new Promise((resolve) => child.on("close", resolve));
    expect(out.join("").match(/the current directory is gone/g)).toHaveLength(2);
    expect(out.join("")).toMatch(/^2$[^]*^125$/m);
  });

  test("state is never kept at a place that is another one in every directory", async () => {
    for (const [name, env] of [
      ["LOOPRIG_HOME", { LOOPRIG_HOME: "state" }],
      ["HOME", { LOOPRIG_HOME: "", HOME: "home" }],
    ] as const) {
      const ran = await here.run(["snapshot", "--json"], { env });
      expect(ran.status).toBe(2);
      expect(JSON.parse(ran.stdout)).toMatchObject({ code: "usage.invalid", details: { field: name } });
    }
    expect(fs.readdirSync(here.root)).toEqual(["README.md", "src"]);
  });
});

describe("status, log, diff and show", () => {
  test("status tells apart what the turn did and what somebody else did", async () => {
    await here.did(agent);
    here.write({ "notes.md": "mine\n" });
    const { stdout, status } = await here.run(["status"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^~\/calc {3}free, last used by [0-9a-f]{4} .* c2 /);
    expect(stdout).toContain("\nnot by looprig, since c2\n  A notes.md\nt1 exec sh -c ");
    expect(stdout).toMatch(/\nlooprig undo takes back t1; notes\.md stays\.\n$/);
    expect(await here.json(["status"])).toMatchObject({
      ...{ schema: "looprig.status/1", root: here.root, holder: null, last: { checkpoint: "c2" } },
      changes: [{ path: "notes.md", kind: "added", by: { kind: "foreign" } }],
      undoable: { turn: "t1" },
    });
  });

  test("log lists turns and checkpoints, as text and as a document", async () => {
    await here.did(agent);
    await here.run(["snapshot", "-m", "before lunch"]);
    const { stdout } = await here.run(["log"]);
    expect(stdout).toMatch(/^ {2}c3 .* "before lunch", equal to c2$/m);
    expect(stdout).toMatch(/^ {2}c2 .* t1 {2}exec sh -c /m);
    const document = await here.json(["log"]);
    expect(document["entries"]).toMatchObject([
      { checkpoint: "c3", trigger: "manual", label: "before lunch" },
      { checkpoint: "c2", turn: "t1", protected: true },
      { checkpoint: "c1", trigger: "baseline", consistency: "quiescent", completeness: "complete", files: 3 },
    ]);
  });

  test("diff shows the last turn, or two refs, narrowed to paths", async () => {
    await here.did(agent);
    const { stdout } = await here.run(["diff"]);
    expect(stdout).toContain("--- a/src/parse.js\n+++ b/src/parse.js\n");
    expect(stdout).toContain("-floor\n");
    const stat = await here.run(["diff", "--stat", "c1", "c2", "--", "src"]);
    expect(stat.stdout).toBe("  M src/parse.js  +1 -3\n  D src/round.js  +0 -1\n2 files, +1 -4\n");
    here.write({ "src/parse.js": "now\n" });
    expect((await here.run(["diff", "t1", "now"])).stdout).toContain("+now\n");
    const document = await here.json(["diff", "t1^", "t1"]);
    expect(document["changes"]).toContainEqual(
      expect.objectContaining({ path: "src/round.js", kind: "deleted", added: 0, removed: 1 }),
    );
  });

  test("show lists a checkpoint and writes a file's bytes as they are", async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 251));
    fs.writeFileSync(here.at("blob"), bytes);
    await here.did("rm blob");
    expect((await here.run(["show", "c1:blob"])).bytes.equals(bytes)).toBe(true);
    expect((await here.run(["show", "c1"])).stdout).toMatch(/^0644 +70000 {2}blob$/m);
    expect((await here.json(["show", "c1"]))["entries"]).toContainEqual({
      path: "blob",
      kind: "file",
      mode: "0644",
      size: 70_000,
    });
    expect(await here.run(["show", "c1:nothing"])).toMatchObject({ status: 2, stdout: "" });
    expect(await here.run(["show", "c99"])).toMatchObject({ status: 2, stdout: "" });
  });

  test("names of any bytes are shown reversibly and understood again, raw or as shown", async () => {
    const raw = Buffer.concat([Buffer.from(`${here.root}/caf`), Buffer.of(0xe9)]);
    fs.writeFileSync(raw, "latin\n");
    here.write({ "a\nb": "lines\n", " lead": "x\n" });
    await here.did("rm -- *");
    const shown = await here.run(["diff", "--stat"]);
    for (const name of ['"caf\\xe9"', '"a\\nb"', '" lead"']) expect(shown.stdout).toContain(`D ${name}`);
    expect((await here.run(["show", 'c1:"caf\\xe9"'])).stdout).toBe("latin\n");
    expect((await here.run(["undo", "--yes", "--", '"caf\\xe9"', "a\nb"])).status).toBe(0);
    expect(fs.readFileSync(raw, "utf8")).toBe("latin\n");
    expect(here.read("a\nb")).toBe("lines\n");
    fs.unlinkSync(raw);
    // A shell can type the bytes themselves; Node alone would lose them.
    const typed = `${process.execPath} ${builtFile("src/cli/main.ts")} show "c1:$(printf 'caf\\351')"`;
    expect((await here.sh(typed)).stdout).toBe("latin\n");
  });

  test("a root without a history is told from one above or below it", async () => {
    await here.did(agent);
    const above = await here.run(["status"], { cwd: here.home });
    expect(above).toMatchObject({ status: 0, stdout: "" });
    expect(above.stderr).toBe(
      "looprig has no history of ~; it has one of ~/calc below it.\n  --root " + here.root + "\n",
    );
    const below = await here.run(["undo", "--yes", "--root", here.at("src")]);
    expect(below.status).toBe(3);
    expect(below.stderr).toContain("it has one of ~/calc above it");
    expect((await here.run(["show", "c1"], { cwd: here.home })).status).toBe(2);
  });

  test("a reader that goes away ends a listing quietly", async () => {
    here.write(Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`many/file-with-a-long-name-${i}`, ""])));
    await here.did("true");
    const child = spawn(process.execPath, [builtFile("src/cli/main.ts"), "show", "c1"], {
      cwd: here.root,
      env: here.env(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.stdout.once("data", () => child.stdout.destroy());
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  test("a full disk behind stdout is a failure", async () => {
    await here.did("true");
    const full = fs.openSync("/dev/full", "w");
    const child = spawn(process.execPath, [builtFile("src/cli/main.ts"), "log"], {
      cwd: here.root,
      env: here.env(),
      stdio: ["ignore", full, "pipe"],
    });
    fs.closeSync(full);
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    expect(await new Promise((resolve) => child.on("close", resolve))).toBe(1);
    expect(stderr).toMatch(/^looprig: Cannot write the output: no space left on device \(ENOSPC\); /);
  });
});

describe("snapshot and sessions", () => {
  test("a snapshot can be found by its label and says how to bring it back", async () => {
    const ran = await here.run(["snapshot", "-m", "start"]);
    expect(ran.stdout).toBe('c1 "start", 3 files. looprig restore c1 brings them back.\n');
    expect((await here.run(["show", "start:README.md"])).stdout).toBe("hi\n");
    expect(await here.json(["snapshot"])).toMatchObject({
      ...{ schema: "looprig.snapshot/1", checkpoint: "c2", unchanged: true, completeness: "complete", omitted: [] },
    });
  });

  test("--exclude is kept with the root", async () => {
    here.write({ "dist/big": "x" });
    expect((await here.json(["snapshot", "--exclude", "dist/"]))["omitted"]).toEqual([
      { path: "dist", class: "excluded" },
    ]);
    expect((await here.json(["snapshot"]))["omitted"]).toEqual([{ path: "dist", class: "excluded" }]);
  });

  test("sessions are listed and, with a yes, deleted by the beginning of their id", async () => {
    await here.did(agent);
    const { sessions } = (await here.json(["sessions"])) as { sessions: { id: string; state: string; root: string }[] };
    expect(sessions).toMatchObject([{ root: here.root, turns: 1, state: "closed" }]);
    const id = sessions[0]?.id.slice(0, 4) ?? "";
    expect((await here.run(["sessions"])).stdout).toMatch(new RegExp(`^${id} {2}closed {2}~/calc `));
    const other = await here.run(["sessions", "--session", id.startsWith("ffff") ? "eeee" : "ffff"]);
    expect(other).toMatchObject({ status: 2, stdout: "" });
    expect(other.stderr).toContain("no session here has an id like it");
    expect((await here.run(["sessions", "rm", id])).status).toBe(2);
    expect((await here.run(["sessions", "rm", id, "--yes"])).stdout).toMatch(
      new RegExp(`^Session ${id} is deleted; files stay as they are\\. looprig gc frees [\\d.]+ KiB from .+ on\\.\n$`),
    );
    expect((await here.json(["sessions"]))["sessions"]).toEqual([]);
  });
});
