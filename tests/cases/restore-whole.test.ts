/** A restore is done as a whole or not at all: when its writes fail, when it is killed, across kinds and renames. */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem, FileSystemCall } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";
import { stamps } from "./look.js";

const quiet = { stdio: "ignore" } as const;

/** A disk that refuses one kind of call for as long as `refuses` says an errno, from the given one of them on. */
class Disk {
  refuses: { readonly call: FileSystemCall["name"]; readonly errno: string; readonly from: number } | undefined;
  met = 0;
  readonly fileSystem: FileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
    if (this.refuses?.call !== name || ++this.met < this.refuses.from) return;
    throw Object.assign(new Error(`${this.refuses.errno}: ${name}`), { code: this.refuses.errno });
  });
}

describe("C026 a restore whose writes fail", () => {
  async function changed(place: Playground, disk: Disk) {
    place.write({ a: "old\n", b: "old\n" });
    const workspace = await place.open({}, { fileSystem: disk.fileSystem });
    const { ref } = await workspace.checkpoint();
    await workspace.exec(place.sh("echo current > a; echo current > b; echo new > new"), quiet);
    return { workspace, ref };
  }

  it.each([
    ["write", "ENOSPC"],
    ["write", "EIO"],
    ["rename", "EACCES"],
    ["fsyncLater", "EIO"],
  ] as const)("is a failure that deletes nothing and replaces nothing (%s: %s)", async (name, errno) => {
    await using place = new Playground("root", { quick: true });
    const disk = new Disk();
    const { workspace: first, ref } = await changed(place, disk);
    let workspace = first;
    for (const from of [1, 2]) {
      const before = place.tree();
      Object.assign(disk, { met: 0, refuses: { call: name, errno, from } });
      await expect(workspace.restore(ref), `from call ${from}`).rejects.toMatchObject({
        code: expect.any(String) as string,
      });
      expect(disk.met).toBeGreaterThanOrEqual(from);
      disk.refuses = undefined;
      // A failure that could not be taken back either is settled by whoever takes the root next (U9).
      await workspace.close();
      workspace = await place.open({}, { fileSystem: disk.fileSystem });
      expect(place.tree()).toEqual(before);
    }
    expect(await workspace.restore(ref)).toMatchObject({ result: "done", written: ["a", "b"], deleted: ["new"] });
    await workspace.close();
  });

  it("and so is one that is given up", async () => {
    await using place = new Playground("root", { quick: true });
    const { workspace, ref } = await changed(place, new Disk());
    const before = stamps(place.root);
    await expect(workspace.restore(ref, { signal: AbortSignal.abort(new Error("given up")) })).rejects.toThrow(
      "given up",
    );
    expect(stamps(place.root)).toEqual(before);
    await workspace.close();
  });
});

describe("C028 a process killed in the middle of a restore of 200 files among 500", () => {
  const points = process.env["LOOPRIG_SOAK"] === "1" ? 100 : 2;
  const names = Array.from({ length: 500 }, (_, i) => `d${i % 20}/f${i}`);

  it(
    "leaves the old tree or the new one, bytes and modes, for the next opener, without a hand",
    { timeout: 600_000 },
    async () => {
      await using place = new Playground("root", { quick: true });
      place.write(Object.fromEntries(names.map((name) => [name, `${name}\n`])));
      const prepared = await place.open();
      const target = place.tree();
      await prepared.checkpoint();
      const script = `for i in $(seq 0 199); do echo changed > d$((i % 20))/f$i; done; for i in $(seq 0 49); do chmod 755 d$((i % 20))/f$i; done`;
      await prepared.exec(place.sh(script), quiet);
      await prepared.close();
      await (await place.storage()).close();
      const old = place.tree();
      const pristine = path.join(place.dir, "pristine");
      fs.renameSync(place.root, pristine);

      /** Restores c1 in a process of its own that is killed before its effect `last`; 0: not at all. */
      const attempt = async (last: number) => {
        fs.rmSync(place.root, { recursive: true, force: true });
        fs.cpSync(pristine, place.root, { recursive: true });
        const state = path.join(place.dir, `state-${last}`);
        fs.cpSync(place.stateDir, state, { recursive: true });
        const run = startProcess("tests/processes/killed-operation.ts", [place.root, state, "restore", String(last)]);
        return { state, ...(await run.ended) };
      };
      const whole = await attempt(0);
      expect(listTree(place.root)).toEqual(target);
      const effects = Number(whole.lines[0]);
      const found = { old: 0, target: 0 };
      for (let point = 1; point <= points; point++) {
        const last = Math.floor((effects * point) / (points + 1));
        const { state, signal } = await attempt(last);
        expect(signal).toBe("SIGKILL");
        await using storage = await openLocalStorage({ dir: state });
        await using next = await openWorkspace({ root: place.root, storage, baseline: false, adoptRoot: true });
        expect(await next.unsettled()).toBeUndefined();
        const tree = place.tree();
        const is = JSON.stringify(tree) === JSON.stringify(old) ? "old" : "target";
        found[is]++;
        expect(tree, `effect ${last} of ${effects}`).toEqual(is === "old" ? old : target);
      }
      expect(found.old + found.target).toBe(points);
    },
  );
});

describe("C105 renames by case, chains of renames, and kinds that change places", () => {
  const files = { a: "a\n", b: "b\n", Readme: "readme\n", file: "file\n", "dir/inner": "inner\n" };
  const script =
    "mv b c; mv a b; mv Readme README; rm file; mkdir file; echo in > file/in; mv dir/inner .inner; rmdir dir; mv .inner dir";

  it("go back and forth exactly, and after a write that failed a second try completes", async () => {
    await using place = new Playground("root", { quick: true });
    place.write(files);
    const disk = new Disk();
    await using workspace = await place.open({}, { fileSystem: disk.fileSystem });
    const before = place.tree();
    await workspace.exec(place.sh(script), quiet);
    const after = place.tree();
    for (const [action, wanted] of [
      [() => workspace.undo(), before],
      [() => workspace.redo(), after],
      [() => workspace.restore("t1^"), before],
      [() => workspace.restore("t1", { exact: true }), after],
    ] as const) {
      const present = place.tree();
      const { checkpoints } = await workspace.history();
      Object.assign(disk, { met: 0, refuses: { call: "rename", errno: "EIO", from: 2 } });
      await expect(action()).rejects.toMatchObject({ code: expect.stringMatching(/^restore\./) as string });
      disk.refuses = undefined;
      expect(disk.met).toBeGreaterThanOrEqual(2);
      await workspace.checkpoint();
      expect(place.tree()).toEqual(present);
      // What is new among the checkpoints holds the tree as it is: none says that it went back.
      const since = (await workspace.history()).checkpoints.slice(checkpoints.length);
      expect(since.map(({ trigger }) => trigger)).not.toContain("post-restore");
      expect(await action()).toMatchObject({ result: "done", conflicts: [], kept: [] });
      expect(place.tree()).toEqual(wanted);
    }
  });
});

describe("C116 what stands at the path now is of another kind than what was captured", () => {
  async function replaced(place: Playground, inY: "by the agent" | "by the user") {
    place.write({ x: "x\n", "z/in": "in\n" });
    fs.symlinkSync("x", place.at("y"));
    fs.writeFileSync(path.join(place.dir, "outside"), "outside\n");
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    const before = place.tree();
    const script = "rm x; ln -s ../outside x; rm y; mkdir y; rm -r z; echo z > z";
    const rest = inY === "by the agent" ? "; echo made > y/made" : "";
    await workspace.exec(place.sh(script + rest), quiet);
    if (inY === "by the user") place.write({ "y/mine": "mine\n" });
    return { workspace, ref, before };
  }
  const outside = (place: Playground): string => fs.readFileSync(path.join(place.dir, "outside"), "utf8");

  it("is replaced by what was captured, and nothing is written through it", async () => {
    await using place = new Playground("root", { quick: true });
    const { workspace, ref, before } = await replaced(place, "by the agent");
    expect(await workspace.restore(ref)).toMatchObject({ result: "done", kept: [], conflicts: [] });
    expect(place.tree()).toEqual(before);
    expect(outside(place)).toBe("outside\n");
    await workspace.close();
  });

  it("keeps and lists a directory with the user's file in it; asked for exactly, that file is stored first and comes back", async () => {
    await using place = new Playground("root", { quick: true });
    const { workspace, ref, before } = await replaced(place, "by the user");
    const restored = await workspace.restore(ref);
    expect(restored.kept.map(({ path: name }) => name)).toEqual(["y", "y/mine"]);
    expect(place.read("y/mine")).toBe("mine\n");
    expect([place.read("x"), place.read("z/in")]).toEqual(["x\n", "in\n"]);

    expect(await workspace.restore(ref, { exact: true })).toMatchObject({ result: "done" });
    expect(place.tree()).toEqual(before);
    expect(await workspace.undo()).toMatchObject({ result: "done" });
    expect(place.read("y/mine")).toBe("mine\n");
    expect(outside(place)).toBe("outside\n");
    await workspace.close();
  });
});
