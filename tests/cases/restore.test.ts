/** Undo and restore take back exactly what they are asked to, in whole trees with real repositories, sessions and scripts. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { nameToBytes } from "../../src/core/index.js";
import { Playground, listTree } from "../playground.js";
import { looprig } from "./command-line.js";
import { commitAll, git, gitEnv, gitStatus } from "./git.js";
import { filesBelow, isGit, isIn, only, stamps } from "./look.js";
import { ok, refusal, startSession } from "./session.js";

const quiet = { stdio: "ignore" } as const;

describe("C001 undo in one of two live sessions", () => {
  /** A's turn edits foo, B's turn edits bar, the user makes notes.md. */
  async function bothAtWork(place: Playground) {
    place.write({ "src/foo.ts": "foo before\n", "src/bar.ts": "bar before\n" });
    commitAll(place.root, "first");
    const a = await place.open({ shared: true, command: "A" });
    const b = await place.open({ shared: true, command: "B" });
    await a.exec(place.sh("echo by A > src/foo.ts"), quiet);
    await b.exec(place.sh("echo by B > src/bar.ts"), quiet);
    place.write({ "notes.md": "mine\n" });
    return { a, b };
  }

  it("takes back its own turn alone: the other session's edit and the user's new file stay, and one path is named", async () => {
    await using place = new Playground();
    const { a, b } = await bothAtWork(place);
    // In a shared root a window proves nothing, so it takes a yes.
    const before = place.tree();
    await expect(a.undo({ turn: "t1" })).rejects.toMatchObject({ code: "undo.needs_consent" });
    expect(place.tree()).toEqual(before);
    const undone = await a.undo({ turn: "t1", includeWindow: true });
    expect(undone).toMatchObject({ result: "done", written: ["src/foo.ts"], deleted: [], conflicts: [] });
    expect(place.read("src/foo.ts")).toBe("foo before\n");
    expect(place.read("src/bar.ts")).toBe("by B\n");
    expect(place.read("notes.md")).toBe("mine\n");
    await a.close();
    await b.close();
  });

  it("without a turn named, takes the newest entry of the session that was asked for", async () => {
    await using place = new Playground();
    const { a, b } = await bothAtWork(place);
    const undone = await a.undo({ session: a.sessionId, includeWindow: true });
    expect(undone).toMatchObject({ entry: "t1", result: "done", written: ["src/foo.ts"], deleted: [] });
    expect(place.read("src/bar.ts")).toBe("by B\n");
    await a.close();
    await b.close();
  });

  it("changes nothing where the other session edited the file later, and names file and session", async () => {
    await using place = new Playground();
    const { a, b } = await bothAtWork(place);
    await b.exec(place.sh("echo by B too > src/foo.ts"), quiet);
    const before = place.tree();
    const untouched = stamps(place.root);
    const undone = await a.undo({ turn: "t1", includeWindow: true });
    expect(undone).toMatchObject({ result: "conflict", written: [], deleted: [], safety: null });
    expect(undone.conflicts).toEqual([
      {
        path: "src/foo.ts",
        by: expect.objectContaining({
          ...{ kind: "other-session", strength: "window", sessionId: b.sessionId, turn: 3 },
          command: "sh -c echo by B too > src/foo.ts",
        }) as unknown,
      },
    ]);
    expect(place.read("src/foo.ts")).toBe("by B too\n");
    expect(place.tree()).toEqual(before);
    expect(stamps(place.root)).toEqual(untouched);
    await a.close();
    await b.close();
  });

  it("in an exclusive root, where the sessions follow each other, keeps the later one's work as well", async () => {
    await using place = new Playground();
    place.write({ "src/foo.ts": "foo before\n", "src/bar.ts": "bar before\n" });
    commitAll(place.root, "first");
    const shell = (script: string) => looprig(place, ["exec", "-q", "--", "sh", "-c", script]);
    expect((await shell("echo by A > src/foo.ts")).code).toBe(0);
    expect((await shell("echo by B > src/bar.ts")).code).toBe(0);
    place.write({ "notes.md": "mine\n" });
    const told = await looprig(place, ["undo", "t1", "--yes", "--json"]);
    expect(told).toMatchObject({ code: 0 });
    expect(JSON.parse(told.stdout)).toMatchObject({ result: "done", written: ["src/foo.ts"], deleted: [] });
    expect(place.read("src/foo.ts")).toBe("foo before\n");
    expect(place.read("src/bar.ts")).toBe("by B\n");
    expect(place.read("notes.md")).toBe("mine\n");
  });
});

describe("C003 restore of a tree with output of an outside script", () => {
  /** A program that knows nothing of looprig. */
  const outsideScript = (place: Playground, name: string, fill: string): void => {
    const program = `require("fs").appendFileSync(process.argv[1], Buffer.alloc(16 * 1024 * 1024, process.argv[2]))`;
    execFileSync(process.execPath, ["-e", program, place.at(name), fill]);
  };

  it.each(["before the agent's turn", "after the agent's turn"])(
    "keeps and lists what the script wrote since the checkpoint, %s",
    async (when) => {
      await using place = new Playground();
      place.write({ "src/a": "before\n", "output/.keep": "" });
      commitAll(place.root, "first");
      outsideScript(place, "output/run1.jsonl", "1");
      const workspace = await place.open();
      const { ref } = await workspace.checkpoint();

      if (when.startsWith("before")) outsideScript(place, "output/run2.jsonl", "2");
      await workspace.exec(place.sh("wc -c output/*; echo edited > src/a"), quiet);
      if (when.startsWith("after")) outsideScript(place, "output/run2.jsonl", "2");
      outsideScript(place, "output/run1.jsonl", "3");
      const output = stamps(place.at("output"));

      const restored = await workspace.restore(ref);
      expect(restored).toMatchObject({ result: "done", written: ["src/a"], deleted: [] });
      expect(restored.kept).toEqual([
        { path: "output/run1.jsonl", reason: "foreign" },
        { path: "output/run2.jsonl", reason: "foreign" },
      ]);
      expect(place.read("src/a")).toBe("before\n");
      expect(stamps(place.at("output"))).toEqual(output);
      expect(fs.statSync(place.at("output/run1.jsonl")).size).toBe(32 * 1024 * 1024);
      expect(fs.statSync(place.at("output/run2.jsonl")).size).toBe(16 * 1024 * 1024);
      await workspace.close();
    },
  );

  it("deletes a file only if a recorded turn made it and its bytes are still those", async () => {
    await using place = new Playground();
    place.write({ "src/a": "before\n" });
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    await workspace.exec(place.sh("mkdir made; echo mine > made/left; echo mine > made/rewritten"), quiet);
    outsideScript(place, "made/rewritten", "x");
    const restored = await workspace.restore(ref);
    expect(restored.deleted).toEqual(["made/left"]);
    expect(restored.kept).toEqual([
      { path: "made", reason: "foreign" },
      { path: "made/rewritten", reason: "foreign" },
    ]);
    expect(fs.readdirSync(place.at("made"))).toEqual(["rewritten"]);
    await workspace.close();
  });
});

describe("C007 a second instance on the same root and store", () => {
  it.each([
    { placement: "an exclusive root, where it is told who is there", shared: false },
    { placement: "a shared root, where it works too", shared: true },
  ])("takes nothing away from the first, in $placement", async ({ shared }) => {
    await using place = new Playground();
    place.write({ "a.txt": "one\ntwo\nthree\n" });
    const first = await startSession(place, { shared, command: "first" });
    ok(await first.tell({ do: "exec", script: "sed -i s/two/TWO/ a.txt" }));
    expect(place.read("a.txt")).toBe("one\nTWO\nthree\n");

    const second = await startSession(place, { shared, command: "second" });
    if (shared) {
      ok(await second.tell({ do: "checkpoint" }));
      ok(await second.tell({ do: "close" }));
    } else {
      expect(refusal(second.opened)).toMatchObject({
        code: "workspace_root.busy",
        details: { holder: { command: "first", pid: first.process.pid } },
      });
    }
    expect((await second.process.ended).code).toBe(0);

    const undone = ok(await first.tell({ do: "undo", turn: "t1", includeWindow: true }));
    expect(undone).toMatchObject({ result: "done", written: ["a.txt"], deleted: [] });
    expect(place.read("a.txt")).toBe("one\ntwo\nthree\n");
    ok(await first.tell({ do: "close" }));
  });

  it("fails an undo whose content is missing, and leaves the file with the bytes it has", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "before\n", "b.txt": "b\n" });
    await using first = await place.open();
    const packs = (): string[] => filesBelow(place.stateDir).filter((file) => file.includes("/packs/"));
    await first.checkpoint();
    const ofA = packs();
    // A later checkpoint's own pack holds the tree that undo starts from; the content of a.txt is in the first alone.
    place.write({ "b.txt": "b again\n" });
    await first.checkpoint();
    await first.exec(place.sh("echo edited > a.txt"), quiet);
    for (const pack of ofA) fs.rmSync(pack);
    expect(ofA.length).toBeGreaterThan(0);

    const before = place.tree();
    // A new process has nothing of the missing pack in its memory.
    await first.close();
    const again = await startSession(place);
    ok(again.opened);
    const undone = refusal(await again.tell({ do: "undo", turn: "t1" }));
    expect(undone).toMatchObject({ code: "snapshot.object_missing", details: { path: "a.txt" } });
    expect(place.tree()).toEqual(before);
    expect(place.read("a.txt")).toBe("edited\n");
    ok(await again.tell({ do: "close" }));
  });
});

describe("C009 undo of a turn that changed nothing", () => {
  it("writes nothing, deletes nothing and leaves every time stamp and git's view as they were", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a1\n", "b.txt": "b1\n", "c.txt": "c1\n" });
    commitAll(place.root, "first");
    place.write({ "a.txt": "a2\n" });
    commitAll(place.root, "second");
    place.write({ "a.txt": "staged\n", "b.txt": "edited\n", "untracked/new.txt": "new\n" });
    git(place.root, "add", "a.txt");
    fs.rmSync(place.at("c.txt"));
    const [status, untouched, tree] = [gitStatus(place.root), stamps(place.root), place.tree()];

    const workspace = await place.open();
    const turn = await workspace.exec(place.sh("cat a.txt b.txt; echo I would change a lot"), quiet);
    expect(turn.changes).toEqual([]);
    const named = await workspace.undo({ turn: `t${turn.turn}` });
    expect(named).toMatchObject({ result: "nothing", written: [], deleted: [], conflicts: [], safety: null });
    const newest = await workspace.undo();
    expect(newest).toMatchObject({ result: "nothing", written: [], deleted: [], passedOver: ["t1"] });
    await workspace.close();

    expect(place.tree()).toEqual(tree);
    expect(stamps(place.root)).toEqual(untouched);
    expect(gitStatus(place.root)).toBe(status);
  });

  it("says on the command line that there was nothing to do", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a\n" });
    await looprig(place, ["exec", "--", "true"]);
    const untouched = stamps(place.root);
    const told = await looprig(place, ["undo", "t1", "--yes", "--json"]);
    expect(told).toMatchObject({ code: 3 });
    expect(JSON.parse(told.stdout)).toMatchObject({ result: "nothing", written: [], deleted: [] });
    expect(stamps(place.root)).toEqual(untouched);
  });
});

describe("C014 restore to before a commit", () => {
  interface Repository {
    readonly first: string;
    readonly second: string;
  }
  /** Everything of git's that a restore must not touch, but for the index, which `git status` itself may refresh. */
  const gitState = (place: Playground) => ({
    bytes: listTree(place.at(".git")),
    head: git(place.root, "rev-parse", "HEAD", "main"),
    refs: git(place.root, "for-each-ref"),
    reflog: git(place.root, "reflog", "--all"),
    stash: git(place.root, "stash", "list"),
  });
  async function withStash(place: Playground): Promise<string> {
    place.write({ "a.txt": "a1\n", "b.txt": "b1\n" });
    const first = commitAll(place.root, "c1");
    place.write({ "a.txt": "stashed\n" });
    git(place.root, "stash");
    return first;
  }
  const expectReverseDiff = (place: Playground, before: ReturnType<typeof gitState>, { first, second }: Repository) => {
    expect(gitState(place)).toEqual(before);
    expect(git(place.root, "rev-parse", "HEAD", "main").trim().split("\n")).toEqual([second, second]);
    // Against c2 the files are a reverse diff; against c1 they are no difference at all.
    expect(git(place.root, "diff", "--name-status", second)).toBe("M\ta.txt\nD\tnew.txt\n");
    expect(git(place.root, "diff", "--name-status", first)).toBe("");
    expect(git(place.root, "log", "--format=%H").trim().split("\n")).toEqual([second, first]);
  };

  it("keeps an agent's commit, and its changes appear as an uncommitted reverse diff", async () => {
    await using place = new Playground();
    const first = await withStash(place);
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    const script = "echo a2 > a.txt; echo new > new.txt; git add --all && git commit --quiet --message c2";
    await workspace.exec(place.sh(script), { ...quiet, env: gitEnv });
    const second = git(place.root, "rev-parse", "HEAD").trim();
    const before = gitState(place);
    const restored = await workspace.restore(ref);
    expect(restored).toMatchObject({ result: "done", written: ["a.txt"], deleted: ["new.txt"] });
    await workspace.close();
    expectReverseDiff(place, before, { first, second });
  });

  it("keeps a user's commit; the user's files go back only when that is asked for exactly", async () => {
    await using place = new Playground();
    const first = await withStash(place);
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    await workspace.exec(["true"], quiet);
    place.write({ "a.txt": "a2\n", "new.txt": "new\n" });
    const second = commitAll(place.root, "c2");
    const before = gitState(place);

    const kept = await workspace.restore(ref);
    expect(kept).toMatchObject({ result: "nothing", written: [], deleted: [] });
    expect(kept.kept).toEqual([
      { path: "a.txt", reason: "foreign" },
      { path: "new.txt", reason: "foreign" },
    ]);
    expect(gitState(place)).toEqual(before);

    const restored = await workspace.restore(ref, { exact: true });
    expect(restored).toMatchObject({ result: "done", written: ["a.txt"], deleted: ["new.txt"] });
    await workspace.close();
    expectReverseDiff(place, before, { first, second });
  });

  it("undo of the turn that committed says that HEAD moved since, and leaves it", async () => {
    await using place = new Playground();
    await withStash(place);
    const workspace = await place.open();
    await workspace.exec(place.sh("echo a2 > a.txt"), quiet);
    const committed = commitAll(place.root, "c2");
    const undone = await workspace.undo();
    expect(undone).toMatchObject({ result: "done", written: ["a.txt"] });
    expect(undone.headMoved?.[1]).toBe(committed);
    expect(git(place.root, "rev-parse", "HEAD").trim()).toBe(committed);
    await workspace.close();
  });
});

describe("C044 names that are not plain ASCII", () => {
  const names: readonly Buffer[] = [
    ...[
      "中文.txt",
      "caf\u00e9.txt",
      "cafe\u0301.md",
      " leading",
      "trailing ",
      'double"quote',
      "back\\slash",
      "tab\tname",
    ],
    ...["new\nline", "plain.txt"],
  ].map((name) => Buffer.from(name));
  const awkward = [...names, Buffer.from([0x62, 0x79, 0x74, 0x65, 0xff, 0x2e, 0x74])];
  const at = (place: Playground, dir: string, name: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${place.at(dir)}/`), name]);
  /** A program that does `body` with each name, as bytes, in `dir` (variables: `fs`, `file`, `i`). */
  const forEachName = (dir: string, body: string): readonly [string, ...string[]] => {
    const list = JSON.stringify(awkward.map((name) => name.toString("hex")));
    const loop = `const file = Buffer.concat([Buffer.from(${JSON.stringify(`${dir}/`)}), Buffer.from(hex, "hex")]); ${body}`;
    return [process.execPath, "-e", `const fs = require("fs"); ${list}.forEach((hex, i) => { ${loop} })`];
  };
  const bytesOf = (paths: readonly string[], dir: string): Buffer[] =>
    paths.map((each) => nameToBytes(each.slice(dir.length + 1))).sort((a, b) => Buffer.compare(a, b));
  const sorted = [...awkward].sort((a, b) => Buffer.compare(a, b));

  it.each([
    { doing: "changed", dir: "d", body: `fs.writeFileSync(file, "changed " + i)`, put: "written" },
    { doing: "made", dir: "n", body: `fs.writeFileSync(file, "new " + i)`, put: "deleted" },
    { doing: "deleted", dir: "d", body: `fs.rmSync(file)`, put: "written" },
  ] as const)("are undone when they were $doing, each listed in a spelling that can be read back", async (how) => {
    await using place = new Playground();
    place.write({ "d/.keep": "", "n/.keep": "" });
    awkward.forEach((name, i) => fs.writeFileSync(at(place, "d", name), `before ${i}`));
    const before = place.tree();
    const workspace = await place.open();
    await workspace.checkpoint();
    const turn = await workspace.exec(forEachName(how.dir, how.body), quiet);
    expect(
      bytesOf(
        turn.changes.map((change) => change.path),
        how.dir,
      ),
    ).toEqual(sorted);
    expect(place.tree()).not.toEqual(before);

    const undone = await workspace.undo();
    expect(undone).toMatchObject({ result: "done", conflicts: [], kept: [] });
    expect(bytesOf(undone[how.put], how.dir)).toEqual(sorted);
    expect(place.tree()).toEqual(before);
    await workspace.close();
  });

  it("go through the command line and back, by the spelling it lists", async () => {
    await using place = new Playground();
    place.write({ "d/.keep": "" });
    awkward.forEach((name, i) => fs.writeFileSync(at(place, "d", name), `before ${i}`));
    const before = place.tree();
    const [command, ...args] = forEachName("d", `fs.writeFileSync(file, "changed " + i)`);
    await looprig(place, ["exec", "-q", "--", command, ...args]);
    const listed = JSON.parse((await looprig(place, ["status", "--json"])).stdout) as { undoable: { turn: string } };
    expect(listed.undoable.turn).toBe("t1");
    const told = await looprig(place, ["undo", "--yes", "--json"]);
    const undone = JSON.parse(told.stdout) as { result: string; written: string[] };
    expect(undone.result).toBe("done");
    expect(bytesOf(undone.written, "d")).toEqual(sorted);
    expect(place.tree()).toEqual(before);
  });
});

describe("C052 restore to a checkpoint in which files were absent", () => {
  it("removes what the agent made since, the directories it made with it, and brings back empty ones", async () => {
    await using place = new Playground();
    place.write({ keep: "keep\n", "delete-me": "tracked\n" });
    commitAll(place.root, "first");
    fs.rmSync(place.at("delete-me"));
    fs.mkdirSync(place.at("was/empty"), { recursive: true });
    fs.mkdirSync(place.at("filled"));
    const before = only(place.tree(), (name) => !isGit(name));
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    const script =
      "git checkout -- delete-me; mkdir new; echo x > new/x; rmdir was/empty; rmdir was; echo y > filled/y";
    await workspace.exec(place.sh(script), { ...quiet, env: gitEnv });
    expect(place.read("delete-me")).toBe("tracked\n");

    const restored = await workspace.restore(ref);
    expect(restored).toMatchObject({ result: "done", kept: [], conflicts: [] });
    expect([...restored.deleted].sort()).toEqual(["delete-me", "filled/y", "new", "new/x"]);
    expect(only(place.tree(), (name) => !isGit(name))).toEqual(before);
    expect(fs.readdirSync(place.at("was/empty"))).toEqual([]);
    await workspace.close();
  });

  it("and keeps the user's file in the agent's new directory (the other half, C003)", async () => {
    await using place = new Playground();
    place.write({ keep: "keep\n" });
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    await workspace.exec(place.sh("mkdir new; echo x > new/x"), quiet);
    place.write({ "new/mine": "mine\n" });
    const restored = await workspace.restore(ref);
    expect(restored.deleted).toEqual(["new/x"]);
    expect(restored.kept.map(({ path }) => path).sort()).toEqual(["new", "new/mine"]);
    expect(only(place.tree(), (name) => isIn(name, "new"))).toEqual({
      new: expect.stringMatching(/^directory/) as string,
      "new/mine": expect.stringMatching(/mine\n$/) as string,
    });
    await workspace.close();
  });
});
