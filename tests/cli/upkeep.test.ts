/** gc, verify, doctor and the deletion of sessions, with real processes on a real store. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CanonicalRoot } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { dropCheckpoints } from "../../src/workspace/index.js";
import { TerminalHome } from "./terminal-home.js";

const script = spawnSync("script", ["--version"], { encoding: "utf8" });
const hasTerminal = script.status === 0 && script.stdout.includes("util-linux");

let here: TerminalHome;
beforeEach(() => {
  here = new TerminalHome();
  here.write({ a: "1\n" });
});
afterEach(() => here[Symbol.dispose]());

const state = (...names: string[]): string => path.join(here.home, "state", ...names);
const packsOf = (): string[] => fs.readdirSync(state("blobs", "packs")).map((name) => state("blobs", "packs", name));
const stored = (): number => packsOf().reduce((sum, file) => sum + fs.statSync(file).size, 0);

const largestPack = (): string => packsOf().sort((x, y) => fs.statSync(y).size - fs.statSync(x).size)[0] ?? "";

/** A session whose bytes nobody else keeps, and one after it that has let go of them. */
async function twoSessions(): Promise<void> {
  await here.did("head -c 300000 /dev/urandom > big");
  fs.rmSync(here.at("big"));
  await here.did("echo 2 > a");
}
async function sessionIds(): Promise<string[]> {
  const { sessions } = (await here.json(["sessions"])) as { sessions: { id: string }[] };
  return sessions.map(({ id }) => id);
}
/** Flips a byte in the middle of the largest pack, which is in the bytes of `big`. */
function spoil(): void {
  const file = largestPack();
  const bytes = fs.readFileSync(file);
  bytes[150_000] = (bytes[150_000] ?? 0) ^ 0xff;
  fs.writeFileSync(file, bytes);
}

describe("gc", () => {
  test("with nothing to do it says so and exits 3, also where there is no store", async () => {
    expect(await here.run(["gc"])).toMatchObject({ status: 3, stderr: "" });
    expect(fs.existsSync(state())).toBe(false);
    await here.did("echo 2 > a");
    const ran = await here.run(["gc"]);
    expect(ran).toMatchObject({ status: 3, stderr: "" });
    expect(ran.stdout).toMatch(/^~\/state {3}[\d.]+ (?:B|KiB), all of it in use\nThere is nothing to free\.\n$/);
    expect(await here.json(["gc"])).toMatchObject({ schema: "looprig.gc/1", result: "nothing", policy: null });
  });

  test("a deleted session's space waits a day, and --now frees it after a yes", async () => {
    await twoSessions();
    const [, older = ""] = await sessionIds();
    const before = stored();
    const deleted = await here.run(["sessions", "rm", older, "--yes"]);
    expect(deleted.stdout).toMatch(/is deleted; files stay as they are\. looprig gc frees \d+ KiB from .+ on\.\n$/);
    const waits = await here.run(["gc"]);
    expect(waits).toMatchObject({ status: 0, stderr: "" });
    expect(waits.stdout).toMatch(
      /^Nothing is freed yet\.\n\d+ KiB can be freed from .+ on, .+ looprig gc --now does not wait\.\n$/,
    );
    expect(stored()).toBe(before);

    const refused = await here.run(["gc", "--now"]);
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toMatch(
      /^looprig: Cannot gc without a yes: it would free \d+ KiB, .+\n {2}--yes answers it/,
    );
    const dry = await here.json(["gc", "--now", "--dry-run"]);
    expect(dry).toMatchObject({ dryRun: true, result: "done" });
    expect(stored()).toBe(before);

    const freed = await here.run(["gc", "--now", "--yes"]);
    expect(freed.stdout).toMatch(/^\d+ KiB freed\.\n$/);
    expect(before - stored()).toBeGreaterThan(290_000);
    // Never more than the dry run said.
    expect(before - stored()).toBeLessThanOrEqual((dry as { freed: { bytes: number } }).freed.bytes);
    expect(await here.run(["verify", "--all"])).toMatchObject({ status: 0 });
  });

  test("a policy lets checkpoints go; every command says dropped by gc, and what stays works as before", async () => {
    for (const n of [2, 3, 4]) await here.did(`echo ${n} > a`);
    await here.run(["snapshot", "-m", "kept"]);
    for (const n of [5, 6]) await here.did(`echo ${n} > a`);
    const dry = (await here.json(["gc", "--keep-last", "1", "--dry-run"])) as { roots: unknown };
    // Each run is a session, whose newest checkpoint stays, and with it where it began.
    expect(dry.roots).toMatchObject([{ dropped: [], entries: [] }]);
    // The same an hour later, when all of them are old.
    const open = await openLocalStorage({ dir: state() });
    try {
      const clock = (): Date => new Date(Date.now() + 3_600_000);
      await dropCheckpoints(open, here.root as CanonicalRoot, { withinMs: 60_000 }, { clock });
    } finally {
      await open.close();
    }
    await here.run(["gc", "--now", "--yes"]);

    const log = (await here.run(["log"])).stdout;
    expect(log).toMatch(/^ {2}c1 .*dropped by gc/m);
    expect(log).toMatch(/ t1 .*undo dropped by gc/);
    expect(log).not.toMatch(/ t5 .*dropped/);
    for (const words of [
      ["show", "c1"],
      ["show", "c1:a"],
      ["restore", "c1", "--yes"],
      ["diff", "c1"],
      ["verify", "c1"],
    ]) {
      const ran = await here.run(words);
      expect(ran, words.join(" ")).toMatchObject({ status: 1, stdout: "" });
      expect(ran.stderr).toMatch(/^looprig: Cannot open c1: it was dropped by gc on \d{4}-\d\d-\d\d/);
    }
    expect((await here.run(["undo", "t1", "--yes"])).stderr).toContain(
      "Cannot undo t1: a tree it needs was dropped by gc",
    );
    expect(await here.run(["show", "kept:a"])).toMatchObject({ status: 0, stdout: "4\n" });
    expect(await here.run(["status"])).toMatchObject({ status: 0 });
    expect(await here.run(["verify"])).toMatchObject({ status: 0 });
    expect(await here.run(["undo", "--yes"])).toMatchObject({ status: 0 });
    expect(here.read("a")).toBe("5\n");
    expect(await here.run(["redo", "--yes"])).toMatchObject({ status: 0 });
  });

  test("a root in use keeps its checkpoints: exit 5 and a line that says so", async () => {
    await here.did("echo 2 > a");
    const running = here.start(["exec", "--", "sh", "-c", "echo begun; read _"]);
    expect(await running.line()).toBe("begun");
    const ran = await here.run(["gc", "--keep-last", "1"]);
    expect(ran.status).toBe(5);
    expect(ran.stdout).toContain("~/calc   left alone: a session is at work there\n");
    running.say("");
    await running.ended;
  });

  test.each([[["--all"]], [["--drop-labelled"]], [["--keep-last", "0"]], [["--keep-within", "soon"]]])(
    "%j makes no sense and is refused",
    async (words) => expect(await here.run(["gc", ...words])).toMatchObject({ status: 2, stdout: "" }),
  );

  test.runIf(hasTerminal)("on a terminal it shows what it would do and asks", async () => {
    await twoSessions();
    const [, older = ""] = await sessionIds();
    await here.run(["sessions", "rm", older, "--yes"]);
    const before = stored();
    const no = await here.onTerminal(["gc", "--now"], "\n");
    expect(no.stdout).toMatch(/kept by[\s\S]*to free now\.[\s\S]*Free \d+ KiB\? \[y\/N\] [\s\S]*Nothing was changed\./);
    expect(no.status).toBe(1);
    expect(stored()).toBe(before);
    const yes = await here.onTerminal(["gc", "--now"], "y\n");
    expect(yes).toMatchObject({ status: 0 });
    expect(stored()).toBeLessThan(before - 290_000);
  });
});

describe("verify", () => {
  test("is one line and exit 0 when all is sound, and exit 3 without a history", async () => {
    expect(await here.run(["verify"])).toMatchObject({ status: 3, stdout: "" });
    await here.did("echo 2 > a");
    const ran = await here.run(["verify"]);
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(ran.stdout).toMatch(/^~\/calc {3}2 trees, \d+ objects, \d+ B read: sound\n$/);
    expect(await here.json(["verify", "c1"])).toMatchObject({ schema: "looprig.verify/1", sound: true, trees: 1 });
  });

  test("names what is damaged with its checkpoints, exits 1, and leaves everything as it is", async () => {
    await twoSessions();
    spoil();
    const before = packsOf().map((file) => fs.readFileSync(file, "latin1"));
    const ran = await here.run(["verify"]);
    expect(ran).toMatchObject({ status: 1, stderr: "" });
    expect(ran.stdout).toMatch(/: 1 path damaged\n\n {2}big {2}damaged {2}c2\n\n/);
    expect(ran.stdout).toContain("  looprig restore c2 -- PATH ");
    expect(await here.json(["verify", "--all"])).toMatchObject({
      ...{ root: null, sound: false },
      damaged: [{ path: "big", root: here.root, problem: "damaged", checkpoints: ["c2"] }],
    });
    expect(await here.run(["verify", "c1", "t2"])).toMatchObject({ status: 0 });
    expect(packsOf().map((file) => fs.readFileSync(file, "latin1"))).toEqual(before);
    // What is whole of it can be had all the same.
    here.write({ a: "9\n" });
    expect(await here.run(["restore", "c2", "--yes", "--exact", "--", "a"])).toMatchObject({ status: 0 });
    expect(here.read("a")).toBe("1\n");
  });
});

describe("doctor", () => {
  test("a healthy store is told in two lines, and none at all is no trouble", async () => {
    expect(await here.run(["doctor"])).toMatchObject({ status: 0 });
    expect(fs.existsSync(state())).toBe(false);
    await here.did("echo 2 > a");
    const ran = await here.run(["doctor"]);
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(ran.stdout).toMatch(
      /^~\/state {3}format 1, [\d.]+ (?:B|KiB), 1 session, 1 root, .+ free\n\nNothing is wrong\. looprig verify reads the bytes themselves\.\n$/,
    );
  });

  test("names each trouble with what mends it, exits 1, and changes nothing", async () => {
    await twoSessions();
    fs.chmodSync(state(), 0o755);
    fs.renameSync(largestPack(), path.join(here.home, "moved-pack"));
    fs.renameSync(here.root, `${here.root}-elsewhere`);
    fs.mkdirSync(here.root);
    const before = here.tree(state("blobs"));
    const ran = await here.run(["doctor"]);
    expect(ran.status).toBe(1);
    const lines = ran.stdout.split("\n").filter((line) => line.startsWith("  "));
    expect(lines).toEqual([
      expect.stringMatching(
        /^ {2}! ~\/calc is not the directory that was recorded: .+ looprig snapshot --root .+ --adopt-root/,
      ),
      expect.stringMatching(/^ {2}! 1 pack is gone and left an index: .+ looprig verify --all$/),
      expect.stringMatching(/^ {2}· ~\/state is open to others \(mode 0755\)/),
    ]);
    expect(here.tree(state("blobs"))).toEqual(before);
    expect(fs.statSync(state()).mode & 0o777).toBe(0o755);
  });

  test("a database that is damaged, a format nobody knows, and somebody at work are told as such", async () => {
    await here.did("echo 2 > a");
    const running = here.start(["exec", "--", "sh", "-c", "echo begun; read _"]);
    expect(await running.line()).toBe("begun");
    const busy = await here.run(["doctor"]);
    expect(busy.status).toBe(0);
    expect(busy.stdout).toMatch(/· ~\/calc is in use: exec "sh -c echo begun; read _", session [0-9a-f]{4}, pid \d+/);
    running.say("");
    await running.ended;

    for (const suffix of ["-wal", "-shm"]) fs.rmSync(state(`state.db${suffix}`), { force: true });
    fs.writeFileSync(state("state.db"), Buffer.alloc(8192, 7));
    const document = await here.json(["doctor"]);
    expect(document).toMatchObject({ schema: "looprig.doctor/1", healthy: false, findings: [{ check: "database" }] });
    fs.writeFileSync(state("format"), "looprig state directory, format 99\n");
    const newer = await here.run(["doctor"]);
    expect(newer.status).toBe(1);
    expect(newer.stdout).toContain("! ~/state has format 99; this looprig knows up to 1");
  });
});

test("sessions --sizes tells what each keeps, and what only it keeps", async () => {
  await twoSessions();
  const { sessions } = (await here.json(["sessions", "--sizes"])) as {
    sessions: { bytes: number; ownBytes: number }[];
  };
  expect(sessions[1]?.ownBytes).toBeGreaterThan(300_000);
  expect(sessions[0]?.bytes).toBeLessThan(10_000);
  expect((await here.run(["sessions", "--sizes"])).stdout).toMatch(/2 checkpoints {2}29\d KiB {2}29\d KiB only by it/);
  const [, older = ""] = await sessionIds();
  const gone = await here.json(["sessions", "rm", older, "--now", "--yes"]);
  expect((gone as { freed: { bytes: number } }).freed.bytes).toBeGreaterThan(290_000);
});
