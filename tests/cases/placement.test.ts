/** Where a workspace is and where its history is kept: apart, whatever happens to either and however roots are laid out. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import type { Storage } from "../../src/storage/index.js";
import { knownRoots, listSessions, openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { looprig } from "./command-line.js";
import { commitAll, git, gitEnv, gitStatus } from "./git.js";
import { filesBelow, isGit, isIn, only, stamps } from "./look.js";

const quiet = { stdio: "ignore" } as const;
const withoutGit = (place: Playground) => only(place.tree(), (name) => !isGit(name));
const bytesBelow = (dir: string): number => filesBelow(dir).reduce((sum, file) => sum + fs.statSync(file).size, 0);

describe("C035 the project directory itself goes away", () => {
  /** A repository with a backup folder in the tree, and one capture. */
  async function build(place: Playground) {
    place.write({ "src/a.txt": "a\n", "backups/2020/a.txt": "old a\n", "run.sh": "#!/bin/sh\n" });
    fs.chmodSync(place.at("run.sh"), 0o755);
    fs.mkdirSync(place.at("empty"));
    fs.symlinkSync("src/a.txt", place.at("link"));
    fs.chmodSync(place.root, 0o750);
    commitAll(place.root, "first");
    const before = withoutGit(place);
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    return { before, workspace, ref };
  }

  it("deleted by a shell command: everything is refused, nothing empty is made, and restore builds it as captured", async () => {
    await using place = new Playground();
    const { before, workspace, ref } = await build(place);
    const turn = await workspace.exec(place.sh(`rm -rf "$LOOPRIG_ROOT"`), quiet);
    expect(turn).toMatchObject({ exitCode: 0, protected: false });

    const gone = { code: "workspace_root.changed", details: { state: "missing" } };
    await expect(workspace.checkpoint()).rejects.toMatchObject(gone);
    await expect(workspace.exec(place.sh("mkdir x"), quiet)).rejects.toMatchObject(gone);
    await expect(workspace.undo()).rejects.toMatchObject(gone);
    await expect(workspace.restore(ref)).rejects.toMatchObject(gone);
    expect(fs.existsSync(place.root)).toBe(false);
    await workspace.close();

    await expect(place.open()).rejects.toMatchObject(gone);
    expect(fs.existsSync(place.root)).toBe(false);

    const again = await place.open({ missingRoot: "recreate" });
    await expect(again.exec(["true"], quiet)).rejects.toMatchObject(gone);
    expect(await again.restore(ref)).toMatchObject({ result: "done" });
    // In a fixed root git's directory is git's to keep, and is not in the capture.
    expect(place.tree()).toEqual(before);
    expect(fs.statSync(place.root).mode & 0o777).toBe(0o750);
    expect(fs.readdirSync(place.dir).sort()).toEqual(["root", "state"]);
    await again.exec(place.sh("echo works > again.txt"), quiet);
    expect(await again.undo()).toMatchObject({ result: "done", deleted: ["again.txt"] });
    await again.close();
  });

  it("deleted in its contents: the turn is protected, and undo brings everything back but git's own", async () => {
    await using place = new Playground();
    const { before, workspace } = await build(place);
    const turn = await workspace.exec(place.sh(`rm -rf ./* ./.git`), quiet);
    expect(turn.protected).toBe(true);
    expect(fs.readdirSync(place.root)).toEqual([]);
    // Git's own was never captured, so the turn is not taken back as a whole, and that is said.
    expect(await workspace.undo()).toMatchObject({
      result: "partly",
      conflicts: [],
      kept: [{ path: ".git", reason: "omitted" }],
      omitted: [".git"],
    });
    expect(place.tree()).toEqual(before);
    await workspace.close();
  });

  it("moved away: everything is refused with the place where it is, and goes on once it is back", async () => {
    await using place = new Playground();
    const { before, workspace, ref } = await build(place);
    const elsewhere = path.join(place.dir, "elsewhere");
    await workspace.exec(place.sh(`mv "$LOOPRIG_ROOT" "${elsewhere}"`), quiet);
    const moved = { code: "workspace_root.changed", details: { state: "moved", movedTo: elsewhere } };
    await expect(workspace.checkpoint()).rejects.toMatchObject(moved);
    await expect(workspace.exec(["true"], quiet)).rejects.toMatchObject(moved);
    expect(fs.existsSync(place.root)).toBe(false);
    fs.mkdirSync(place.root);
    const replaced = { code: "workspace_root.changed", details: { state: "replaced", movedTo: elsewhere } };
    await expect(workspace.exec(place.sh("echo wrong > wrong"), quiet)).rejects.toMatchObject(replaced);
    expect(fs.readdirSync(place.root)).toEqual([]);
    fs.rmdirSync(place.root);
    fs.renameSync(elsewhere, place.root);
    expect((await workspace.checkpoint()).ref).toBe(ref);
    expect(withoutGit(place)).toEqual(before);
    await workspace.close();
  });

  it("is rebuilt by `looprig restore`, after a refusal that names the way out", async () => {
    await using place = new Playground();
    place.write({ "src/a.txt": "a\n" });
    const before = place.tree();
    const run = (...args: readonly string[]) => looprig(place, ["--root", place.root, ...args], { cwd: place.dir });
    await run("snapshot");
    fs.rmSync(place.root, { recursive: true });
    const refused = await run("snapshot");
    expect(refused).toMatchObject({ code: 6 });
    expect(fs.existsSync(place.root)).toBe(false);
    expect(await run("restore", "c1", "--yes")).toMatchObject({ code: 0 });
    expect(place.tree()).toEqual(before);
  });
});

describe("C063 fifty turns in a repository without a commit", () => {
  it("leave its .git byte for byte as it was, and all that is kept lies in the state directory, of a size one can ask for", async () => {
    await using place = new Playground();
    const megabyte = 1024 * 1024;
    git(place.dir, "init", "--quiet", place.root);
    place.write({ "db.sqlite": randomBytes(4 * megabyte), "image.bin": randomBytes(2 * megabyte), "src/a.txt": "0\n" });
    const gitBefore = listTree(place.at(".git"));
    const gitStamps = stamps(place.at(".git"));
    const workspace = await place.open();
    const patch = `const fs = require("fs"); const fd = fs.openSync("db.sqlite", "r+"); fs.writeSync(fd, require("crypto").randomBytes(4096), 0, 4096, 3 * 1024 * 1024); fs.closeSync(fd)`;
    await workspace.checkpoint();
    const first = await workspace.storedBytes();
    for (let turn = 1; turn <= 50; turn++) {
      // Every tenth turn changes the database.
      const script = `echo ${turn} >> src/a.txt; echo ${turn} > made-${turn}.txt`;
      await workspace.exec(place.sh(turn % 10 === 0 ? `${script}; ${process.execPath} -e '${patch}'` : script), quiet);
    }
    expect((await workspace.history()).turns).toHaveLength(50);
    const stored = await workspace.storedBytes();
    await workspace.close();

    expect(listTree(place.at(".git"))).toEqual(gitBefore);
    expect(stamps(place.at(".git"))).toEqual(gitStamps);
    const made = Array.from({ length: 50 }, (_, i) => `made-${i + 1}.txt`);
    expect(fs.readdirSync(place.root).sort()).toEqual([".git", "db.sqlite", "image.bin", "src", ...made].sort());
    expect(fs.readdirSync(place.dir).sort()).toEqual(["root", "state"]);
    // The whole once, then what changed: five pieces of the database and small things.
    expect(first).toBeGreaterThan(6 * megabyte);
    expect(stored - first).toBeLessThan(6.5 * megabyte);
    expect(stored).toBeLessThanOrEqual(bytesBelow(place.stateDir));
  });
});

describe("C064 a home directory, or a repository rooted there", () => {
  function home(place: Playground): string {
    git(place.dir, "init", "--quiet", place.root);
    place.write({ "big.bin": "not really big\n", "photos/a.jpg": "jpg\n", "project/src/a.txt": "a\n" });
    return place.root;
  }

  it("is refused as a root before anything is written, and so is what lies above it", async () => {
    await using place = new Playground("home");
    const world = { homes: [home(place)] };
    for (const root of [place.root, place.dir, "/"]) {
      await expect(place.open({ root }, world)).rejects.toMatchObject({ code: "workspace_placement.root_too_broad" });
    }
    const storage = await place.storage();
    expect(await knownRoots(storage)).toEqual([]);
    expect(await listSessions(storage)).toEqual([]);
  });

  it("allowed expressly, it still needs consent to its size, with the estimate, before the first byte is read", async () => {
    await using place = new Playground("home");
    const world = { homes: [home(place)] };
    const opened: string[] = [];
    // A hundred gigabytes, as far as anybody can see from outside the file.
    const fileSystem: FileSystem = {
      ...interceptFileSystem(nodeFileSystem, ({ name, args: [file] }) => {
        if (name === "open" && String(file).endsWith(".bin")) opened.push(String(file));
      }),
      lstat: (file) => {
        const stats = nodeFileSystem.lstat(file);
        if (!String(file).endsWith("/big.bin")) return stats;
        const size = 100n * 1024n ** 3n;
        return Object.assign(Object.create(Object.getPrototypeOf(stats) as object) as fs.BigIntStats, stats, {
          size,
          blocks: size / 512n,
        });
      },
    };
    const workspace = await place.open({ allowBroadRoot: true }, { ...world, fileSystem });
    const error = await workspace.checkpoint().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "capture.too_large" });
    const { details } = error as { details: { files: number; bytes: number; largest: readonly { path: string }[] } };
    expect(details.files).toBe(3);
    expect(details.bytes).toBeGreaterThan(100 * 1024 ** 3);
    expect(opened).toEqual([]);
    expect(await workspace.storedBytes()).toBe(0);
    await workspace.close();
  });

  it("is not what a directory inside it is opened as: the root is the opened directory, wherever the nearest .git is", async () => {
    await using place = new Playground("home");
    const world = { homes: [home(place)] };
    const workspace = await place.open({ root: place.at("project") }, world);
    expect(workspace.root).toBe(place.at("project"));
    const { ref, files } = await workspace.checkpoint();
    expect(files).toBe(1);
    expect((await (await workspace.tree(ref)).list("" as never)).map(([name]) => name)).toEqual(["src"]);
    await workspace.close();
  });

  it("is refused on the command line for safety, and a directory inside it is not", async () => {
    await using place = new Playground("home");
    const env = { HOME: home(place) };
    const refused = await looprig(place, ["snapshot", "--json"], { env });
    expect(refused).toMatchObject({ code: 6 });
    expect(JSON.parse(refused.stdout)).toMatchObject({ code: "workspace_placement.root_too_broad" });
    const taken = await looprig(place, ["snapshot", "--json"], { env, cwd: place.at("project") });
    expect(taken).toMatchObject({ code: 0 });
    expect(JSON.parse(taken.stdout)).toMatchObject({ root: place.at("project") });
  });
});

describe("C065 a checkpoint store inside the workspace", () => {
  /** Ten checkpoints of a tree nobody changes; how much the store holds after each. */
  async function tenCaptures(root: string, storage: Storage): Promise<number[]> {
    const workspace = await openWorkspace({ root, storage, baseline: false, command: "test" });
    const sizes: number[] = [];
    for (let i = 0; i < 10; i++) {
      await workspace.checkpoint();
      sizes.push(await workspace.storedBytes());
    }
    await workspace.close();
    return sizes;
  }

  it("is refused when it is the configured one, and the tree is left alone", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a\n" });
    const dir = place.at("data/checkpoints");
    const storage = await openLocalStorage({ dir });
    const before = only(place.tree(), (name) => !isIn(name, "data"));
    const refusal = { code: "persistence.overlap", details: { persistencePath: dir, root: place.root } };
    await expect(openWorkspace({ root: place.root, storage })).rejects.toMatchObject(refusal);
    // Nor through a link that hides where it is.
    const link = path.join(place.dir, "link");
    fs.symlinkSync(place.root, link);
    await expect(openWorkspace({ root: link, storage })).rejects.toMatchObject(refusal);
    expect(only(place.tree(), (name) => !isIn(name, "data"))).toEqual(before);
    expect(await listSessions(storage)).toEqual([]);
    await storage.close();

    const told = await looprig(place, ["snapshot", "--json"], { env: { LOOPRIG_HOME: dir } });
    expect(told).not.toMatchObject({ code: 0 });
    expect(JSON.parse(told.stdout)).toMatchObject({ code: "persistence.overlap" });
  });

  it("is not captured through a link to it: the link is, and ten captures add nothing", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a\n" });
    fs.symlinkSync(place.stateDir, place.at("store"));
    const sizes = await tenCaptures(place.root, await place.storage());
    expect(new Set(sizes).size).toBe(1);
    await using view = await place.view();
    expect(await (await view.tree("last")).list("" as never)).toEqual([
      ["a.txt", expect.objectContaining({ kind: "file" })],
      ["store", { kind: "symlink", target: place.stateDir }],
    ]);
  });

  /** What a bind mount of the store at W/data/checkpoints looks like: the store's identity under another name. */
  const boundStore = (place: Playground): FileSystem => {
    const mountPoint = nodeFileSystem.lstat(place.at("data/checkpoints"));
    return {
      ...nodeFileSystem,
      stat: (file) => {
        const stats = nodeFileSystem.stat(file);
        if (file !== place.stateDir) return stats;
        const { dev, ino } = mountPoint;
        return Object.assign(Object.create(Object.getPrototypeOf(stats) as object) as fs.BigIntStats, stats, {
          dev,
          ino,
        });
      },
    };
  };

  it("is known by its identity, not its name, when it appears in the tree all the same, and never captured", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a\n", "data/checkpoints/looks-like-any-file": "x", "data/other": "o\n" });
    await place.storage();
    const workspace = await place.open({}, { fileSystem: boundStore(place) });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ files: 2, omitted: { excluded: 1 } });
    expect(await (await workspace.tree(taken.ref)).lookup("data/checkpoints" as never)).toMatchObject({
      kind: "omitted",
    });
    // A restore leaves it alone too.
    expect(await workspace.restore(taken.ref, { exact: true })).toMatchObject({ result: "nothing" });
    expect(place.read("data/checkpoints/looks-like-any-file")).toBe("x");
    await workspace.close();
  });

  /** Only root may mount, and not in every container. */
  const canMount = ((): boolean => {
    const dir = fs.mkdtempSync("/tmp/looprig-mount-");
    try {
      fs.mkdirSync(`${dir}/a`);
      fs.mkdirSync(`${dir}/b`);
      execFileSync("mount", ["--bind", `${dir}/a`, `${dir}/b`], { stdio: "ignore" });
      execFileSync("umount", [`${dir}/b`], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    } finally {
      fs.rmSync(dir, { recursive: true });
    }
  })();

  it.skipIf(!canMount)("is not captured through a real bind mount, and ten captures add nothing", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "a\n", "data/checkpoints/.keep": "" });
    const storage = await place.storage();
    execFileSync("mount", ["--bind", place.stateDir, place.at("data/checkpoints")]);
    try {
      const sizes = await tenCaptures(place.root, storage);
      expect(new Set(sizes).size).toBe(1);
      await using view = await place.view();
      expect((await (await view.tree("last")).list("data" as never)).map(([name]) => name)).toEqual(["checkpoints"]);
      expect(await (await view.tree("last")).list("data/checkpoints" as never)).toEqual([]);
    } finally {
      execFileSync("umount", [place.at("data/checkpoints")]);
    }
  });

  it("of another product is captured as ordinary files; two, each inside the other's workspace, never capture themselves", async () => {
    await using place = new Playground();
    const [one, two] = [path.join(place.dir, "one"), path.join(place.dir, "two")];
    place.write({ "a.txt": "a\n" }, one);
    place.write({ "b.txt": "b\n" }, two);
    const storeOfOne = await openLocalStorage({ dir: path.join(two, "data/checkpoints") });
    const storeOfTwo = await openLocalStorage({ dir: path.join(one, "data/checkpoints") });
    const grown: number[] = [];
    for (let round = 0; round < 10; round++) {
      for (const [root, storage] of [
        [one, storeOfOne],
        [two, storeOfTwo],
      ] as const) {
        const workspace = await openWorkspace({ root, storage, baseline: false, command: "test" });
        await workspace.checkpoint();
        const names = (await (await workspace.tree("last")).list("data/checkpoints" as never)).map(([name]) => name);
        expect(names).toContain("blobs");
        await workspace.close();
      }
      grown.push(bytesBelow(one));
    }
    // What each adds is what the other added, not all of what the other holds: the growth does not grow.
    const steps = grown.slice(1).map((size, i) => size - (grown[i] as number));
    expect(Math.max(...steps.slice(-3))).toBeLessThan(4 * Math.max(...steps.slice(0, 3)));
    await storeOfOne.close();
    await storeOfTwo.close();
  });
});

describe("C097 clones, a linked worktree and a copy of one project", () => {
  it("are four roots with four histories: commands run where they were opened, and undo in one writes in no other", async () => {
    await using place = new Playground("upstream");
    place.write({ "a.txt": "1\n" });
    commitAll(place.root, "one");
    const at = (name: string): string => path.join(place.dir, name);
    git(place.dir, "clone", "--quiet", place.root, "clone-1");
    place.write({ "a.txt": "2\n" });
    commitAll(place.root, "two");
    git(place.dir, "clone", "--quiet", place.root, "clone-2");
    git(at("clone-1"), "worktree", "add", "--quiet", at("worktree"), "-b", "side");
    fs.cpSync(at("clone-1"), at("copy"), { recursive: true, preserveTimestamps: true });
    const names = ["clone-1", "clone-2", "worktree", "copy"];
    const statuses = names.map((name) => gitStatus(at(name)));
    const storage = await place.storage();

    for (const name of names) {
      const workspace = await place.open({ root: at(name), command: name });
      expect(workspace.root).toBe(at(name));
      expect(await workspace.history()).toMatchObject({ known: true, turns: [], checkpoints: [] });
      await workspace.exec(place.sh(`pwd -P > where.txt; echo "$LOOPRIG_ROOT" >> where.txt; echo edited > a.txt`), {
        ...quiet,
        env: gitEnv,
      });
      expect(fs.readFileSync(path.join(at(name), "where.txt"), "utf8")).toBe(`${at(name)}\n${at(name)}\n`);
      await workspace.close();
    }
    expect((await knownRoots(storage)).map(({ root }) => root).sort()).toEqual(names.map(at).sort());
    const lists = await Promise.all(names.map((name) => listSessions(storage, { root: at(name) })));
    expect(lists.map((list) => list.map(({ command }) => command))).toEqual(names.map((name) => [name]));
    expect(new Set(lists.flat().map(({ id }) => id)).size).toBe(4);

    for (const [i, name] of names.entries()) {
      const others = names.filter((other) => other !== name);
      const untouched = others.map((other) => stamps(at(other)));
      const workspace = await place.open({ root: at(name) });
      const { turns } = await workspace.history();
      expect(turns.map(({ number, sessionId }) => [number, sessionId])).toEqual([[1, lists[i]?.[0]?.id]]);
      expect(await workspace.undo()).toMatchObject({ result: "done", written: ["a.txt"], deleted: ["where.txt"] });
      await workspace.close();
      expect(others.map((other) => stamps(at(other)))).toEqual(untouched);
    }
    expect(names.map((name) => gitStatus(at(name)))).toEqual(statuses);
  });
});
