/** What an undo or restore leaves alone: what was not captured, what git ignores, and what the user wrote into the same file. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { Playground } from "../playground.js";
import { agentRig, call, play } from "./agent.js";
import { looprig } from "./command-line.js";
import { commitAll, git } from "./git.js";
import { stamps } from "./look.js";

const quiet = { stdio: "ignore" } as const;

describe("C010 a file above the size that is captured", () => {
  const mib = 1024 * 1024;
  const large = Buffer.alloc(2 * mib, "d");
  const limited = { capture: { maxFileBytes: mib } };

  it("is kept with what the agent added, and named as not captured", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ "data.bin": large, "a.txt": "a\n" });
    await using workspace = await place.open(limited);
    await workspace.exec(place.sh("echo more >> data.bin; echo A > a.txt"), quiet);
    const undone = await workspace.undo();
    expect(undone).toMatchObject({ written: ["a.txt"], deleted: [], conflicts: [] });
    expect(undone.omitted).toContain("data.bin");
    expect(fs.readFileSync(place.at("data.bin")).equals(Buffer.concat([large, Buffer.from("more\n")]))).toBe(true);
  });

  it.each([
    ["grew above it in the turn", Buffer.from("small\n"), "dd if=/dev/zero of=data.bin bs=1M count=2 2>/dev/null"],
    ["shrank below it in the turn", large, "echo small > data.bin"],
    ["was deleted in the turn", large, "rm data.bin"],
  ])("that %s is never deleted, and never counted as brought back", async (_, before, script) => {
    await using place = new Playground("root", { quick: true });
    place.write({ "data.bin": before });
    await using workspace = await place.open(limited);
    const { ref } = await workspace.checkpoint();
    await workspace.exec(place.sh(script), quiet);
    const left = place.tree();
    const undone = await workspace.undo();
    expect([...undone.written, ...undone.deleted]).not.toContain("data.bin");
    expect(undone.kept).toContainEqual({ path: "data.bin", reason: "omitted" });
    expect(undone).toMatchObject({ result: "refused", safety: null });
    const restored = await workspace.restore(ref, { exact: true, includeWindow: true });
    expect([...restored.written, ...restored.deleted]).not.toContain("data.bin");
    expect(place.tree()).toEqual(left);
    const told = await looprig(place, ["undo", "t1", "--dry-run", "--json"]);
    expect(JSON.parse(told.stdout)).toMatchObject({ written: [], deleted: [] });
  });
});

describe("C012 a file that git ignores, when nobody can say what git ignores", () => {
  it.each<[string, (place: Playground) => void]>([
    ["the ignore file is broken", (place) => fs.writeFileSync(place.at(".gitignore"), Buffer.from([0xff, 0, 0x5b]))],
    [
      "a directory stands at its place",
      (place) => {
        fs.rmSync(place.at(".gitignore"));
        fs.mkdirSync(place.at(".gitignore"));
      },
    ],
    ["another git holds the lock", (place) => place.write({ ".git/index.lock": "" })],
    ["the repository is gone", (place) => fs.rmSync(place.at(".git"), { recursive: true })],
  ])("is untouched by undo and restore where %s", async (_, breakIt) => {
    await using place = new Playground("root", { quick: true });
    place.write({ ".gitignore": "secret.txt\n", "a.txt": "a\n" });
    commitAll(place.root, "first");
    place.write({ "secret.txt": "secret\n" });
    await using workspace = await place.open();
    await workspace.exec(place.sh("echo A > a.txt; echo new > new.txt"), quiet);
    breakIt(place);
    const secret = stamps(place.root)["secret.txt"];
    expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a.txt"], deleted: ["new.txt"] });
    expect(await workspace.redo()).toMatchObject({ result: "done", conflicts: [] });
    expect(await workspace.restore("t1^")).toMatchObject({ result: "done", written: ["a.txt"], deleted: ["new.txt"] });
    expect(stamps(place.root)["secret.txt"]).toBe(secret);
    expect([place.read("secret.txt"), place.read("a.txt")]).toEqual(["secret\n", "a\n"]);
  });
});

describe("C013 a restore to before a directory was ignored", () => {
  const ignored = "logs/\n";

  it.each([
    ["the user", "kept"],
    ["the agent", "restored"],
  ])("keeps the user's files in it, where %s wrote the ignore file", async (who, file) => {
    await using place = new Playground("root", { quick: true });
    place.write({ ".gitignore": "", "a.txt": "a\n" });
    commitAll(place.root, "first");
    await using workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    const script = who === "the agent" ? "echo logs/ > .gitignore; echo A > a.txt" : "echo A > a.txt";
    await workspace.exec(place.sh(script), quiet);
    if (who === "the user") place.write({ ".gitignore": ignored });
    place.write({ "logs/x.log": "x\n" });
    const log = stamps(place.root)["logs/x.log"];
    const restored = await workspace.restore(ref);
    expect(restored.kept).toEqual(
      expect.arrayContaining([
        { path: "logs", reason: "foreign" },
        { path: "logs/x.log", reason: "foreign" },
      ]),
    );
    expect(place.read(".gitignore")).toBe(file === "kept" ? ignored : "");
    expect(place.read("a.txt")).toBe("a\n");
    expect(stamps(place.root)["logs/x.log"]).toBe(log);
    expect(git(place.root, "status", "--porcelain", "--untracked-files=all")).toContain(
      file === "kept" ? "M .gitignore" : "logs/x.log",
    );
  });

  it.each([
    ["since the checkpoint", [], ["logs/"]],
    ["at the checkpoint and no longer", ["logs/"], []],
  ])("keeps what our own exclude left out %s, even exactly", async (_, then, now) => {
    await using place = new Playground("root", { quick: true });
    place.write({ "logs/x.log": "x\n", "a.txt": "a\n" });
    const first = await place.open({ capture: { exclude: then } });
    const { ref } = await first.checkpoint();
    await first.close();
    await using next = await place.open({ capture: { exclude: now } });
    place.write({ "logs/x.log": "x, later\n", "logs/y.log": "y\n", "a.txt": "A\n" });
    const logs = stamps(place.at("logs"));
    expect(await next.restore(ref, { exact: true })).toMatchObject({ result: "done", written: ["a.txt"], deleted: [] });
    expect(place.read("a.txt")).toBe("a\n");
    expect(stamps(place.at("logs"))).toEqual(logs);
  });
});

describe("C018 an earlier message is sent again after the user edited the file", () => {
  it("and taking its turn back leaves the user's edit: a conflict, by library and command line, and skipping it as well", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ "example.txt": "original\n" });
    const append = call("Edit", {
      file_path: "example.txt",
      old_string: "original\n",
      new_string: "original\nby the agent\n",
    });
    const rig = await agentRig(place, [
      { calls: [call("Read", { file_path: "example.txt" }), append] },
      { text: "Appended." },
      { text: "Once more." },
    ]);
    const session = await rig.startSession();
    await play(session, "append a line");
    place.write({ "example.txt": "changed\nby the agent\n" });
    const saved = stamps(place.root);
    await play(session, "append a line, again");
    expect(stamps(place.root)).toEqual(saved);

    const conflict = { result: "conflict", written: [], deleted: [], safety: null };
    const conflicts = [{ path: "example.txt", by: { kind: "foreign" } }];
    expect(await session.workspace.undo({ turn: "t1" })).toMatchObject({ ...conflict, conflicts });
    expect(await session.workspace.undo({ turn: "t1", onConflict: "skip" })).toMatchObject({ ...conflict, conflicts });
    await session.close();
    const told = await looprig(place, ["undo", "t1", "--yes"]);
    expect(told).toMatchObject({ code: 4 });
    expect(told.stdout).toContain("example.txt  changed since, not by looprig");
    expect(stamps(place.root)).toEqual(saved);
    expect(place.read("example.txt")).toBe("changed\nby the agent\n");
  });
});
