/**
 * What somebody else does to a path at any moment of an apply survives: at its path, or under the name that is reported.
 * The moments are enumerated: before every single call that looks at or changes the disk.
 */
import fs from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../../core/index.js";
import type { FileSystemCall } from "../../core/index.js";
import type { PlanStore } from "./plan-store.js";
import { operationsBetween, Scene, ticking } from "./testing/scene.js";
import { directory, file, link, readTree, removeDirectory, temporaryDirectory, writeTree } from "./testing/trees.js";
import type { Node, Nodes } from "./testing/trees.js";

const before: Nodes = {
  dir: directory(),
  "dir/inner": file("inner old"),
  "mode.sh": file("#!/bin/sh\n", 0o644),
  "replaced.txt": file("old"),
  "same.txt": file("same"),
  tight: directory(0o500),
  "to-file": directory(0o700),
  "to-file/child": file("child"),
  "to-link": file("file"),
};
const after: Nodes = {
  dir: directory(),
  "dir/inner": file("inner new"),
  "dir/more": file("more"),
  "mode.sh": file("#!/bin/sh\n", 0o755),
  "replaced.txt": file("new"),
  "same.txt": file("same"),
  tight: directory(0o755),
  "to-dir": directory(0o500),
  "to-dir/inside": file("inside"),
  "to-file": file("file"),
  "to-link": link("same.txt"),
};
const operations = await operationsBetween(before, after);

interface Beside {
  readonly failed: unknown;
  readonly raced: readonly { readonly path: string; readonly storedAs: string }[];
  readonly fired: boolean;
  readonly committed: boolean;
}

/** Applies and finishes; `outsider` acts once, before the call with the number given. */
async function applyBeside(
  scene: Scene,
  number: number,
  outsider: (call: Pick<FileSystemCall, "name" | "args">) => void,
): Promise<Beside> {
  let calls = 0;
  let fired = false;
  let committed = false;
  const { fileSystem } = ticking(scene.storage, ({ name, args }) => {
    if (name === "close" || ++calls !== number) return;
    fired = true;
    outsider({ name: name as FileSystemCall["name"], args });
  });
  try {
    using applied = await scene.apply({ fileSystem });
    committed = true;
    const { raced } = await applied.finish();
    return { failed: undefined, raced, fired, committed };
  } catch (failed) {
    return { failed, raced: [], fired, committed };
  }
}

/** Runs `each` for every moment until the apply has fewer calls than that. */
async function everyMoment(each: (scene: Scene, number: number) => Promise<boolean>): Promise<number> {
  for (let number = 1; ; number++) {
    using scene = new Scene(before, after, operations);
    if (!(await each(scene, number))) return number;
  }
}

const textOf = (nodes: Nodes): string[] =>
  Object.values(nodes).flatMap((node) => (node.kind === "file" ? [node.text] : []));

/** A process that fails and dies before it takes anything back. */
const deadlyToTakeBack = (plans: PlanStore): PlanStore => ({
  read: plans.read.bind(plans),
  create: plans.create.bind(plans),
  rewrite: plans.rewrite.bind(plans),
  remove: () => Promise.reject(new Error("killed")),
  advance: (...args) => (args[1] === "rolling-back" ? Promise.reject(new Error("killed")) : plans.advance(...args)),
});

/** The tree is the old or the new one but for the paths the outsider touched, and nothing of ours is left. */
function expectSettled(scene: Scene, outcome: Beside, touched: readonly string[], moment: string): void {
  const tree = scene.tree();
  const isOurs = (name: string): boolean => /(^|\/)\.looprig-/.test(name);
  const stored = new Set(outcome.raced.map(({ storedAs }) => storedAs));
  const rest = (nodes: Nodes): Nodes =>
    Object.fromEntries(
      Object.entries(nodes).filter(
        ([name]) => !stored.has(name) && !touched.some((at) => name === at || name.startsWith(`${at}/`)),
      ),
    );
  if (outcome.failed === undefined) expect(rest(tree), moment).toEqual(rest(after));
  else {
    expect(
      isLooprigError(outcome.failed, "restore.tree_moved", "restore.failed"),
      `${moment}: ${inspect(outcome.failed)}`,
    ).toBe(true);
    expect(Object.keys(rest(tree)).filter(isOurs), moment).toEqual([]);
    expect(rest(tree), moment).toEqual(rest(before));
  }
}

/** As `layOut` numbers them. */
const backupOfReplaced = ".looprig-0123456789ab-4";

describe("an outsider at work while a restore is applied", () => {
  test("who writes into a file that is replaced loses nothing", async () => {
    let late = 0;
    const moments = await everyMoment(async (scene, number) => {
      // An editor that has the file open, and one that opens it by name.
      const fd = fs.openSync(path.join(scene.dir, "replaced.txt"), "r+");
      const seen = { tooLate: false };
      const outcome = await applyBeside(scene, number, (call) => {
        // The file has no name any more, or loses it with this very call: as with every rename that replaces.
        const losesIt = call.name === "unlink" && String(call.args[0]).endsWith(`/${backupOfReplaced}`);
        seen.tooLate = fs.fstatSync(fd).nlink === 0 || losesIt;
        fs.ftruncateSync(fd, 0);
        fs.writeSync(fd, "typed by the user", 0);
      });
      fs.closeSync(fd);
      if (!outcome.fired) return false;
      if (seen.tooLate) late++;
      else expect(textOf(scene.tree()), `moment ${number}`).toContain("typed by the user");
      expectSettled(scene, outcome, ["replaced.txt"], `moment ${number}`);
      return true;
    });
    expect(moments).toBeGreaterThan(200);
    expect(late).toBeLessThan(moments / 4);
  });

  test("who writes into a file that was just replaced has it put back, and everything else with it", async () => {
    using scene = new Scene(before, after, operations);
    const fd = fs.openSync(path.join(scene.dir, "replaced.txt"), "a");
    const { ino } = fs.fstatSync(fd);
    const { fileSystem } = ticking(scene.storage, ({ name }) => {
      // Comes after "replaced.txt" in the order of paths.
      if (name === "mkdir" && fs.fstatSync(fd).size === 3) fs.writeSync(fd, ", and a line");
    });
    const expected = { code: "restore.tree_moved", details: { paths: ["replaced.txt"] } };
    await expect(scene.apply({ fileSystem })).rejects.toMatchObject(expected);
    fs.closeSync(fd);
    expect(scene.tree()).toEqual({ ...before, "replaced.txt": file("old, and a line") });
    expect(fs.statSync(path.join(scene.dir, "replaced.txt")).ino).toBe(ino);
  });

  test("who saves by renaming over a file never loses what was saved", async () => {
    await everyMoment(async (scene, number) => {
      const draft = `${scene.dir}.draft`;
      const outcome = await applyBeside(scene, number, () => {
        fs.writeFileSync(draft, "saved by an editor");
        fs.renameSync(draft, path.join(scene.dir, "replaced.txt"));
      });
      if (!outcome.fired) return false;
      expect(textOf(scene.tree()), `moment ${number}`).toContain("saved by an editor");
      expectSettled(scene, outcome, ["replaced.txt"], `moment ${number}`);
      return true;
    });
  });

  test("who makes a file where one is to be put keeps it", async () => {
    await everyMoment(async (scene, number) => {
      const users = { made: false };
      const outcome = await applyBeside(scene, number, () => {
        try {
          fs.writeFileSync(path.join(scene.dir, "dir/more"), "made by the user", { flag: "wx" });
          users.made = true;
        } catch {
          // It is there already: ours.
        }
      });
      if (!outcome.fired) return false;
      if (users.made) expect(scene.tree()["dir/more"], `moment ${number}`).toMatchObject({ text: "made by the user" });
      expectSettled(scene, outcome, ["dir/more"], `moment ${number}`);
      return true;
    });
  });

  test("who puts a file into a directory that is removed keeps it", async () => {
    await everyMoment(async (scene, number) => {
      const users = { made: false };
      const outcome = await applyBeside(scene, number, () => {
        try {
          fs.writeFileSync(path.join(scene.dir, "to-file/users"), "mine");
          users.made = true;
        } catch {
          // The directory is gone already, or is a file.
        }
      });
      if (!outcome.fired) return false;
      if (users.made) expect(textOf(scene.tree()), `moment ${number}`).toContain("mine");
      expectSettled(scene, outcome, ["to-file/users"], `moment ${number}`);
      return true;
    });
  });

  test("who deletes a file that is to be replaced sees it deleted, or replaced", async () => {
    await everyMoment(async (scene, number) => {
      const outcome = await applyBeside(scene, number, () =>
        fs.rmSync(path.join(scene.dir, "replaced.txt"), { force: true }),
      );
      if (!outcome.fired) return false;
      expectSettled(scene, outcome, ["replaced.txt"], `moment ${number}`);
      return true;
    });
  });

  test("who swaps a directory for a link gets nothing written outside the root (U10)", async () => {
    await everyMoment(async (scene, number) => {
      const outside = temporaryDirectory();
      try {
        writeTree(outside, { inner: file("outside"), other: file("other") });
        const outcome = await applyBeside(scene, number, () => {
          fs.renameSync(path.join(scene.dir, "dir"), path.join(scene.dir, "dir-moved"));
          fs.symlinkSync(outside, path.join(scene.dir, "dir"));
        });
        if (!outcome.fired) return false;
        expect(readTree(outside), `moment ${number}`).toEqual({ inner: file("outside"), other: file("other") });
        expect(scene.tree().dir, `moment ${number}`).toEqual(link(outside));
        // Nothing is lost: what was in the directory is in it still, wherever it is now.
        const texts = textOf(scene.tree());
        expect(
          texts.some((text) => text === "inner old" || text === "inner new"),
          `moment ${number}`,
        ).toBe(true);
        return true;
      } finally {
        fs.rmSync(outside, { recursive: true, force: true });
      }
    });
  });

  test("who swaps a file for a link to one outside gets nothing written through it (U10)", async () => {
    await everyMoment(async (scene, number) => {
      const outside = `${scene.dir}.outside`;
      fs.writeFileSync(outside, "outside", { mode: 0o600 });
      try {
        const outcome = await applyBeside(scene, number, () => {
          for (const name of ["replaced.txt", "mode.sh"]) {
            fs.rmSync(path.join(scene.dir, name), { force: true });
            fs.symlinkSync(outside, path.join(scene.dir, name));
          }
        });
        if (!outcome.fired) return false;
        expect(fs.readFileSync(outside, "utf8")).toBe("outside");
        expect(fs.statSync(outside).mode & 0o777, `moment ${number}`).toBe(0o600);
        expectSettled(scene, outcome, ["replaced.txt", "mode.sh"], `moment ${number}`);
        return true;
      } finally {
        fs.rmSync(outside);
      }
    });
  });
});

describe("a file of which only the mode changes", () => {
  const narrow: Nodes = { "a.txt": file("same", 0o600), "b.txt": file("same", 0o600), "one.txt": file("one", 0o600) };
  const wide: Nodes = { "a.txt": file("same", 0o644), "b.txt": file("same", 0o644), "one.txt": file("one", 0o666) };

  test("is replaced where it has another name, which stays as it is, also outside the root (U10)", async () => {
    const operations = (await operationsBetween(narrow, wide)).filter(({ path }) => path !== "b.txt");
    using scene = new Scene(narrow, wide, operations, [["a.txt", "b.txt"], "a.txt"]);
    const inode = (name: string): number => fs.statSync(scene.at(name)).ino;
    const [a, b, one] = ["a.txt", "b.txt", "one.txt"].map(inode);
    using applied = await scene.apply();
    expect(await applied.finish()).toEqual({ raced: [] });
    expect(scene.tree()).toEqual({ ...wide, "b.txt": narrow["b.txt"] });
    expect(scene.outsideTree()).toEqual({ "a.txt": narrow["a.txt"] });
    expect(inode("a.txt")).not.toBe(a);
    expect(inode("b.txt")).toBe(b);
    expect(inode("one.txt"), "a file with one name is changed in place").toBe(one);
  });

  test("gets its mode back under every name that the plan has (U3)", async () => {
    using scene = new Scene(narrow, wide, await operationsBetween(narrow, wide), [["a.txt", "b.txt"]]);
    using applied = await scene.apply();
    expect(await applied.finish()).toEqual({ raced: [] });
    expect(scene.tree()).toEqual(wide);
  });

  test("is not replaced by bytes that the store lost", async () => {
    using scene = new Scene(narrow, wide, await operationsBetween(narrow, wide), ["a.txt"]);
    scene.store.lose("same");
    await expect(scene.apply()).rejects.toMatchObject({ code: "snapshot.object_missing" });
    expect(scene.tree()).toEqual(narrow);
  });

  const only = (name: string): Promise<Scene> =>
    Scene.of({ [name]: narrow[name] as Node }, { [name]: wide[name] as Node });

  test("that is swapped for a name of a file outside leaves that one as it is, at every moment (U10)", async () => {
    const outcomes = new Set<boolean>();
    for (let number = 1, fired = true; fired; number++) {
      using scene = await only("one.txt");
      const outside = temporaryDirectory();
      try {
        // The same bytes and the same mode: nothing but its names tells it from ours.
        writeTree(outside, { key: file("one", 0o600) });
        const outcome = await applyBeside(scene, number, () => {
          fs.rmSync(scene.at("one.txt"), { force: true });
          fs.linkSync(path.join(outside, "key"), scene.at("one.txt"));
        });
        fired = outcome.fired;
        expect(readTree(outside), `moment ${number}`).toEqual({ key: file("one", 0o600) });
        expectOneSettled(outcome, number);
        if (fired) outcomes.add(outcome.failed === undefined);
      } finally {
        removeDirectory(outside);
      }
    }
    expect(outcomes).toEqual(new Set([true, false]));
  });

  test("that gets a second name before its mode is set is refused as moved, and as it was", async () => {
    const outcomes = new Set<boolean>();
    for (let number = 1, fired = true; fired; number++) {
      using scene = await only("one.txt");
      const outcome = await applyBeside(scene, number, () => fs.linkSync(scene.at("one.txt"), scene.at("second")));
      fired = outcome.fired;
      expectOneSettled(outcome, number);
      const mode = outcome.failed === undefined ? 0o666 : 0o600;
      expect(scene.tree()["one.txt"], `moment ${number}`).toEqual(file("one", mode));
      if (outcome.failed !== undefined) expect(scene.tree().second, `moment ${number}`).toEqual(file("one", mode));
      if (fired) outcomes.add(outcome.failed === undefined);
    }
    expect(outcomes).toEqual(new Set([true, false]));
  });

  test("that gets a second name while the plan stages is refused before anything of the tree is touched", async () => {
    using scene = await Scene.of(narrow, { ...wide, "a-new.txt": file("new") });
    const changes: string[] = [];
    const { fileSystem } = ticking(scene.storage, ({ name, effect, args }) => {
      if (name === "fsyncLater") {
        // Staged files are synced, and then their directories.
        if (!fs.existsSync(scene.at("second"))) fs.linkSync(scene.at("one.txt"), scene.at("second"));
      } else if (effect && name !== "close") changes.push([name, ...args.map(String)].join(" "));
    });
    await expect(scene.apply({ fileSystem })).rejects.toMatchObject({
      code: "restore.tree_moved",
      details: { paths: ["one.txt"] },
    });
    expect(changes.filter((change) => /^(rename|link|mkdir|chmod) /.test(change))).toEqual([]);
    expect(scene.tree()).toEqual({ ...narrow, second: narrow["one.txt"] });
  });

  test("that got a second name after its mode was set is as it was when a later step fails", async () => {
    const tree = { ...wide, "z-new": directory() };
    using scene = await Scene.of(narrow, tree);
    const { fileSystem } = ticking(scene.storage, ({ name, args }) => {
      if (name !== "link" && name !== "mkdir") return;
      if (!String(args[0]).endsWith("/z-new")) return;
      fs.linkSync(scene.at("one.txt"), scene.at("second"));
      throw Object.assign(new Error("disk full"), { code: "ENOSPC" });
    });
    await expect(scene.apply({ fileSystem })).rejects.toMatchObject({ code: "restore.failed" });
    expect(scene.tree()).toEqual({ ...narrow, second: narrow["one.txt"] });
  });

  test("that got a second name after a crash is left and named as skipped", async () => {
    using scene = await only("one.txt");
    const { fileSystem } = ticking(scene.storage, ({ name }) => {
      if (name === "fchmod") throw new Error("killed before it set the mode");
    });
    await expect(scene.apply({ fileSystem, plans: deadlyToTakeBack(scene.plans()) })).rejects.toMatchObject({
      code: "restore.unsettled",
    });
    fs.linkSync(scene.at("one.txt"), scene.at("second"));
    expect(await scene.settle()).toMatchObject({ outcome: "completed", skipped: ["one.txt"] });
    expect(scene.tree()).toEqual({ "one.txt": narrow["one.txt"], second: narrow["one.txt"] });
  });

  function expectOneSettled({ failed }: Beside, moment: number): void {
    if (failed === undefined) return;
    expect(isLooprigError(failed, "restore.tree_moved"), `moment ${moment}: ${inspect(failed)}`).toBe(true);
  }
});

describe("a tree that moved before the restore", () => {
  test.each<[string, (dir: string) => void, string]>([
    ["an edit", (dir) => fs.writeFileSync(path.join(dir, "replaced.txt"), "edited"), "replaced.txt"],
    ["a mode", (dir) => fs.chmodSync(path.join(dir, "replaced.txt"), 0o600), "replaced.txt"],
    ["a deletion", (dir) => fs.rmSync(path.join(dir, "replaced.txt")), "replaced.txt"],
    ["a file in a directory to be removed", (dir) => fs.writeFileSync(path.join(dir, "to-file/users"), ""), "to-file"],
    ["a directory mode", (dir) => fs.chmodSync(path.join(dir, "tight"), 0o700), "tight"],
    [
      "another kind",
      (dir) => {
        fs.rmSync(path.join(dir, "to-link"));
        fs.mkdirSync(path.join(dir, "to-link"));
      },
      "to-link",
    ],
  ])("is refused with its paths, and nothing is written: %s", async (_, move, moved) => {
    using scene = new Scene(before, after, operations);
    move(scene.dir);
    const tree = scene.tree();
    await expect(scene.apply()).rejects.toMatchObject({ code: "restore.tree_moved", details: { paths: [moved] } });
    expect(scene.tree()).toEqual(tree);
    expect(await scene.plans().read()).toBeUndefined();
  });
});

describe("names of ours", () => {
  test("a foreign file that has a staging name before the plan is made is never touched", async () => {
    using scene = new Scene(before, after, operations);
    for (let n = 0; n < 4; n++) fs.writeFileSync(path.join(scene.dir, `.looprig-0123456789ab-${n}`), `foreign ${n}`);
    using applied = await scene.apply();
    await applied.finish();
    const expected: Record<string, unknown> = { ...after };
    for (let n = 0; n < 4; n++) expected[`.looprig-0123456789ab-${n}`] = file(`foreign ${n}`);
    expect(scene.tree()).toEqual(expected);
  });

  test("a name that is taken after it was recorded is given up for another, which is recorded first (U9)", async () => {
    using scene = new Scene(before, after, operations);
    const plans = scene.plans();
    const taken: string[] = [];
    const { fileSystem } = ticking(scene.storage, ({ name, args, effect }) => {
      const target = String(args[0]);
      if (taken.length > 0 || name !== "open" || !effect || !/\.looprig-[^/]*$/.test(target)) return;
      taken.push(path.basename(target));
      fs.writeFileSync(target, "foreign");
    });
    using applied = await scene.apply({ fileSystem, plans });
    const record = (await plans.read())?.record;
    expect(record?.operations.some(({ staged }) => staged !== undefined && path.basename(staged) === taken[0])).toBe(
      false,
    );
    await applied.finish();
    const left = Object.entries(scene.tree()).filter(([name]) => name.includes(".looprig-"));
    expect(left.map(([name, node]) => [path.basename(name), node])).toEqual([[taken[0], file("foreign")]]);
  });

  test("bytes written into a replaced file after the commit are kept beside it and named", async () => {
    using scene = new Scene(before, after, operations);
    const fd = fs.openSync(path.join(scene.dir, "replaced.txt"), "a");
    using applied = await scene.apply();
    fs.writeSync(fd, " and a last line");
    fs.closeSync(fd);
    const { raced } = await applied.finish();
    expect(raced.map((one) => one.path)).toEqual(["replaced.txt"]);
    expect(scene.tree()[raced[0]?.storedAs ?? ""]).toEqual(file("old and a last line"));
    expect(scene.tree()["replaced.txt"]).toEqual(file("new"));
    expect(await scene.plans().read()).toBeUndefined();
  });
});

describe("an edit after a crash", () => {
  test("is left, named as skipped, and the rest is completed", async () => {
    using scene = new Scene(before, after, operations);
    const { fileSystem } = ticking(scene.storage, ({ name, args }) => {
      // Dies when it comes to the first file it puts in place.
      if (name === "link") throw new Error(`killed before ${String(args[1])}`);
    });
    await expect(scene.apply({ fileSystem, plans: deadlyToTakeBack(scene.plans()) })).rejects.toMatchObject({
      code: "restore.unsettled",
    });
    fs.writeFileSync(path.join(scene.dir, "replaced.txt"), "edited after the crash");
    fs.mkdirSync(path.join(scene.dir, "to-dir"), { recursive: true });
    fs.writeFileSync(path.join(scene.dir, "to-dir/users"), "mine");
    const settled = await scene.settle();
    expect(settled).toMatchObject({ outcome: "completed", purpose: { for: "test" }, skipped: ["replaced.txt"] });
    expect(scene.tree()).toEqual({
      ...after,
      "replaced.txt": file("edited after the crash"),
      "to-dir/users": file("mine"),
    });
  });
});
