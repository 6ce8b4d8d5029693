/** What people and programs are told of a restore, before it and after it: what it did, what it left, and what it was asked for. */
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { Playground } from "../playground.js";
import { journalOf, only, put, rigOn, wrote } from "../session/scenes.js";
import { looprig } from "./command-line.js";
import { stamps } from "./look.js";

describe("C038 a restore of exactly one checkpoint by the library", () => {
  const lines = (number: number): string => Array.from({ length: number }, (_, i) => `line ${i + 1}\n`).join("");
  const steps = [2, 3, 4].flatMap((number) => [wrote("a.txt", lines(number)), { text: "Appended." }]);

  /** Three turns that each append a line to a.txt, and a file of the user's since. The disk refuses what is in `refused`. */
  async function appended(place: Playground) {
    place.write({ "a.txt": lines(1) });
    const refused = new Set<string>();
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      const file = args.map(String).find((arg) => [...refused].some((each) => arg.endsWith(`/${each}`)));
      if (file === undefined || (name !== "rename" && name !== "link")) return;
      throw Object.assign(new Error(`EIO: i/o error, ${name}`), { code: "EIO", errno: -5, syscall: name });
    });
    const rig = await rigOn(place, { tools: [put], steps, snapshots: "idle", world: { fileSystem } });
    const session = await rig.startSession();
    for (const input of ["one", "two", "three"]) {
      await (
        await session.submit(input)
      ).done;
      await session.idle();
    }
    place.write({ "mine.txt": "mine\n" });
    const restored = async () => only(await journalOf(await place.storage(), session.id), "workspace-restored");
    return { session, refused, restored };
  }

  it("brings its bytes back, and reply and record bear what was asked for, what was written and what was kept", async () => {
    await using place = new Playground("root", { quick: true });
    const { session, restored } = await appended(place);
    const { turns, checkpoints } = await session.workspace.history();
    const asked = turns[1]?.from;
    const present = turns[2]?.to;
    const kept = [{ path: "mine.txt", reason: "foreign" }];
    const receipt = await session.workspace.restore("t2^");
    expect(place.read("a.txt")).toBe(lines(2));
    expect(receipt).toMatchObject({
      ...{ action: "restore", result: "done", written: ["a.txt"], deleted: [], kept, conflicts: [], omitted: [] },
      checkpoint: { number: checkpoints.length + 2, trigger: "post-restore", sessionId: session.id },
    });
    const records = await restored();
    expect(records).toMatchObject([
      {
        ...{ action: "restore", result: "done", target: asked, entry: `c${receipt.checkpoint?.number}` },
        ...{ from: receipt.safety, ref: receipt.checkpoint?.ref },
        ...{ written: ["a.txt"], deleted: [], kept, conflicts: [] },
      },
    ]);
    expect(new Set([asked, present, records[0]?.from, records[0]?.ref]).size).toBe(4);

    // By its ref, and one path of it, the record says the same; an undo is recorded for the turn that was named.
    place.write({ "a.txt": "by hand\n" });
    const again = await session.workspace.restore(asked ?? "", { paths: ["a.txt"], exact: true });
    expect(again).toMatchObject({ result: "done", written: ["a.txt"], foreign: ["a.txt"], kept: [] });
    expect((await restored())[1]).toMatchObject({ target: asked, written: ["a.txt"], kept: [] });
    expect([place.read("a.txt"), place.read("mine.txt")]).toEqual([lines(2), "mine\n"]);
    expect(await session.workspace.undo({ turn: "t1" })).toMatchObject({ entry: "t1", result: "done" });
    expect((await restored())[2]).toMatchObject({ action: "undo", entry: "t1", written: ["a.txt"] });
    expect(place.read("a.txt")).toBe(lines(1));
    await session.close();
  });

  it("skips what somebody else wrote, and names it in reply and record", async () => {
    await using place = new Playground("root", { quick: true });
    const { session, restored } = await appended(place);
    place.write({ "a.txt": "by hand\n" });
    const untouched = stamps(place.root);
    const kept = [{ path: "a.txt", reason: "foreign" }];
    expect(await session.workspace.restore("t2^", { paths: ["a.txt"] })).toMatchObject({
      ...{ result: "nothing", written: [], deleted: [], kept, safety: null },
    });
    expect(await session.workspace.undo({ turn: "t3" })).toMatchObject({
      ...{ entry: "t3", result: "conflict", written: [], deleted: [], safety: null },
      conflicts: [{ path: "a.txt", by: { kind: "foreign" } }],
    });
    expect(stamps(place.root)).toEqual(untouched);
    expect(await restored()).toEqual([]);
    await session.close();
  });

  it("that is not there, or whose write fails, is an error that names it; file and record stay as they were", async () => {
    await using place = new Playground("root", { quick: true });
    const { session, refused, restored } = await appended(place);
    const before = place.tree();
    for (const unknown of ["t9", "c99", "no such label"]) {
      await expect(session.workspace.restore(unknown)).rejects.toMatchObject({
        ...{ code: "ref.unknown", message: expect.stringContaining(unknown) as string },
      });
    }
    const nowhere = `v1:sha256:${"0".repeat(64)}`;
    await expect(session.workspace.restore(nowhere)).rejects.toMatchObject({
      ...{ code: "snapshot.unknown", message: expect.stringContaining(nowhere) as string },
    });
    refused.add("a.txt");
    await expect(session.workspace.restore("t2^")).rejects.toMatchObject({
      ...{ code: "restore.failed", details: { path: "a.txt", errno: "EIO" } },
    });
    expect(place.tree()).toEqual(before);
    expect(await restored()).toEqual([]);
    refused.clear();
    expect(await session.workspace.restore("t2^")).toMatchObject({ result: "done", written: ["a.txt"] });
    expect(place.read("a.txt")).toBe(lines(2));
    await session.close();
  });
});

describe("C127 a restore of ten changed files that nobody has confirmed", () => {
  const edited = Array.from({ length: 6 }, (_, i) => `src/${i}.txt`);
  const removed = ["src/6.txt", "src/7.txt"];
  const made = ["new/8.txt", "new/9.txt"];

  /** A turn that edited six files, deleted two and made two; since then the user made one, and changed one that is not of it. */
  async function changed(place: Playground): Promise<void> {
    place.write(Object.fromEntries([...edited, ...removed, "theirs.txt"].map((name) => [name, `${name}\n`])));
    const workspace = await place.open();
    await workspace.checkpoint();
    await workspace.exec(
      place.sh(`for f in ${edited.join(" ")}; do echo edited >> $f; done; rm ${removed.join(" ")};
        mkdir new; for f in ${made.join(" ")}; do echo made > $f; done`),
      { stdio: "ignore" },
    );
    await workspace.close();
    place.write({ "mine.txt": "mine\n", "theirs.txt": "by hand\n" });
  }

  async function recorded(place: Playground): Promise<unknown> {
    await using view = await place.view();
    return await view.history();
  }

  it("is refused without a terminal, exit 2, with what it would have done, and says how to say yes; nothing has moved", async () => {
    await using place = new Playground("root", { quick: true });
    await changed(place);
    const untouched = stamps(place.root);
    const before = await recorded(place);
    const told = await looprig(place, ["restore", "c1"]);
    expect(told).toMatchObject({ code: 2, stdout: "" });
    expect(told.stderr).toContain("it would restore 8 files and delete 2 files, and there is no terminal to ask on");
    expect(told.stderr).toMatch(/--yes answers it; --dry-run shows/);
    expect(stamps(place.root)).toEqual(untouched);
    expect(await recorded(place)).toEqual(before);
  });

  it("is previewed path by path, to write, to delete and to keep, with the count of each; nothing has moved", async () => {
    await using place = new Playground("root", { quick: true });
    await changed(place);
    const untouched = stamps(place.root);
    const before = await recorded(place);
    const told = await looprig(place, ["restore", "c1", "--dry-run"]);
    expect(told.code).toBe(0);
    const rows = told.stdout.split("\n").flatMap((line) => {
      const [, verb = "", name = ""] = /^ {2}(restore|delete|keep) +(\S+)/.exec(line) ?? [];
      return verb === "" ? [] : [[verb, name]];
    });
    expect(rows).toEqual([
      ...[...edited, ...removed].map((name) => ["restore", name]),
      ...["new/", ...made].map((name) => ["delete", name]),
      ...["mine.txt", "theirs.txt"].map((name) => ["keep", name]),
    ]);
    expect(told.stdout).toContain("8 files to restore, 2 to delete, 2 to keep, 0 conflicts. Nothing was written.");
    expect(stamps(place.root)).toEqual(untouched);
    expect(await recorded(place)).toEqual(before);
  });

  it("keeps, once it is confirmed and unless asked for exactly, whatever was not of the agent's doing", async () => {
    await using place = new Playground("root", { quick: true });
    await changed(place);
    await using workspace = await place.open();
    const plan = await workspace.plan({ kind: "restore", ref: "c1", includeWindow: true });
    const kept = ["mine.txt", "theirs.txt"].map((name) => ({ path: name, reason: "foreign" }));
    expect(plan).toMatchObject({ writes: [...edited, ...removed], deletes: ["new", ...made], kept, foreign: [] });
    const theirs = (): readonly unknown[] => {
      const all = stamps(place.root);
      return [all["mine.txt"], all["theirs.txt"]];
    };
    const untouched = theirs();
    expect(await workspace.apply(plan)).toMatchObject({ result: "done", kept });
    expect(theirs()).toEqual(untouched);
    expect([place.read("mine.txt"), place.read("theirs.txt")]).toEqual(["mine\n", "by hand\n"]);
  });
});
