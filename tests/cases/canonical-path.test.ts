/** However a place is spelled it is one place, and whatever a link points to outside the root stays out of reach. */
import fs from "node:fs";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  Directory,
  interceptFileSystem,
  isLooprigError,
  nodeFileSystem,
  openBelow,
  publishNoReplace,
  writeFileAtomic,
} from "../../src/core/index.js";
import type { FileSystem, WorkspacePath } from "../../src/core/index.js";
import { canonicalPath, createCoordinator } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { looprig } from "./command-line.js";
import { only, stamps } from "./look.js";
import { ok, startSession } from "./session.js";
import type { StopAt } from "./workspace-process.js";

const quiet = { stdio: "ignore" } as const;

describe("C094 a claim, whatever the path is spelled like", () => {
  /** A volume without case: every path below `dir` leads to its lowercase spelling, which is the one it lists. */
  const withoutCase = (dir: string): FileSystem => {
    const stored = <T extends string | Buffer>(file: T): T =>
      (typeof file === "string" && file.startsWith(`${dir}/`) ? dir + file.slice(dir.length).toLowerCase() : file) as T;
    return {
      ...nodeFileSystem,
      lstat: (file) => nodeFileSystem.lstat(stored(file)),
      stat: (file) => nodeFileSystem.stat(stored(file)),
      readdir: (file) => nodeFileSystem.readdir(stored(file)),
      readdirBytes: (file) => nodeFileSystem.readdirBytes(stored(file)),
      readlink: (file) => nodeFileSystem.readlink(stored(file)),
      realpath: (file) => nodeFileSystem.realpath(stored(file)),
    };
  };

  it.each(["exists", "does not exist yet"])("meets every other spelling of a file that %s", async (state) => {
    await using place = new Playground("r");
    fs.mkdirSync(place.at("src"));
    if (state === "exists") place.write({ "src/x": "x" });
    const link = path.join(place.dir, "l");
    fs.symlinkSync("r", link);
    fs.symlinkSync("src", place.at("source"));
    const fileSystem = withoutCase(place.dir);
    const root = canonicalPath(place.root, { fileSystem });
    const coordinator = createCoordinator({ root });
    const acquire = (spelling: string) =>
      coordinator.acquire({ operation: "path-mutation", paths: [canonicalPath(spelling, { fileSystem })] });

    const held = await acquire(place.at("src/x"));
    const spellings = [
      `${link}/src/x`,
      `${link}/src/../src/x`,
      `${place.root}/src/./x`,
      `${place.root}/src/x/`,
      `${place.root}/src/x/.`,
      `${place.root}/source/x`,
      `${place.root}/SRC/X`,
      `${link}/Src/x`,
    ];
    const waiting = spellings.map(acquire);
    await nextTurn();
    expect(coordinator.counts()).toEqual({ held: 1, waiting: spellings.length });
    held.release();
    for (const next of waiting) (await next).release();
    expect(coordinator.idle()).toBe(true);
  });

  it("a new file made by both of its names at once is one file, and one of the two is told that it was there", async () => {
    await using place = new Playground("r");
    const link = path.join(place.dir, "l");
    fs.symlinkSync("r", link);
    const coordinator = createCoordinator({ root: canonicalPath(place.root) });
    const make = async (spelling: string): Promise<boolean> => {
      const file = canonicalPath(spelling);
      using permit = await coordinator.acquire({ operation: "path-mutation", paths: [file] });
      await nextTurn();
      permit.assertHeld();
      return publishNoReplace(nodeFileSystem, file, [Buffer.from(spelling)], { durable: false });
    };
    const made = await Promise.all([make(`${link}/new.txt`), make(place.at("new.txt"))]);
    expect(made).toEqual([true, false]);
    expect(fs.readdirSync(place.root)).toEqual(["new.txt"]);
    expect(place.read("new.txt")).toBe(`${link}/new.txt`);
  });

  it("a root that is held is held by each of its names, and has one history under all of them", async () => {
    await using place = new Playground("r");
    place.write({ "src/x": "before\n" });
    const link = path.join(place.dir, "l");
    fs.symlinkSync("r", link);
    const spellings = [link, `${link}/`, `${place.root}/.`, `${place.root}/src/..`, path.relative(process.cwd(), link)];
    const workspace = await place.open({ root: link });
    expect(workspace.root).toBe(place.root);
    for (const root of spellings) {
      await expect(place.open({ root })).rejects.toMatchObject({
        code: "workspace_root.busy",
        details: { root: place.root, relation: "same", holder: { sessionId: workspace.sessionId } },
      });
    }
    await workspace.exec(place.sh("echo edited > src/x"), quiet);
    await workspace.close();
    for (const root of spellings) {
      await using view = await place.view(root);
      expect((await view.history()).turns).toHaveLength(1);
    }
    const told = await looprig(place, ["undo", "--root", `${link}/`, "--yes", "--json"], { cwd: place.dir });
    expect(told).toMatchObject({ code: 0 });
    expect(place.read("src/x")).toBe("before\n");
  });
});

describe("C095 links that lead outside the root", () => {
  /** outbox → outside, dangling → outside/not-there, chain → hop → outside. */
  function build(place: Playground): string {
    const outside = path.join(place.dir, "outside");
    place.write({ "secret.txt": "secret\n", "sub/deep.txt": "deep\n" }, outside);
    place.write({ "a.txt": "a\n", "dir/inside.txt": "inside\n" });
    fs.symlinkSync(outside, place.at("outbox"));
    fs.symlinkSync(path.join(outside, "not-there"), place.at("dangling"));
    fs.symlinkSync("../outside", place.at("hop"));
    fs.symlinkSync("hop", place.at("chain"));
    return outside;
  }
  const through = [
    "outbox/secret.txt",
    "outbox/new.txt",
    "outbox/sub/deep.txt",
    "dangling",
    "chain/secret.txt",
    "chain/new",
  ];

  it("are never gone through: claim, read, working directory and path of a restore are refused before a byte is written", async () => {
    await using place = new Playground();
    const outside = build(place);
    const untouched = stamps(outside);
    const coordinator = createCoordinator({ root: canonicalPath(place.root) });
    const workspace = await place.open();
    const { ref } = await workspace.checkpoint();
    using top = Directory.open(nodeFileSystem, place.root);
    for (const name of through) {
      const claim = { operation: "path-mutation", paths: [canonicalPath(place.at(name))] } as const;
      await expect(coordinator.acquire(claim)).rejects.toMatchObject({ code: "coordinator.invalid_path" });
      if (name !== "dangling") {
        const parent = name.slice(0, name.lastIndexOf("/")) as WorkspacePath;
        expect(() => openBelow(top, parent)).toThrow(expect.objectContaining({ code: "path.escapes" }));
        for (const where of ["now", ref]) {
          const read = workspace.readFile(where, name)[Symbol.asyncIterator]();
          await expect(read.next()).rejects.toMatchObject({ code: "snapshot.path_missing" });
        }
      }
      expect(await workspace.restore(ref, { paths: [name], exact: true })).toMatchObject({ result: "nothing" });
    }
    for (const cwd of ["outbox", "chain/sub", "hop", "../outside"]) {
      await expect(workspace.exec(["true"], { cwd, ...quiet })).rejects.toMatchObject({ code: "option.invalid" });
    }
    expect(coordinator.idle()).toBe(true);
    await workspace.close();
    expect(stamps(outside)).toEqual(untouched);
    expect(fs.readdirSync(outside).sort()).toEqual(["secret.txt", "sub"]);
  });

  it("are captured as links, so undo of what a command did through one leaves the outside alone and says nothing else", async () => {
    await using place = new Playground();
    const outside = build(place);
    const before = place.tree();
    const workspace = await place.open();
    const turn = await workspace.exec(
      place.sh("echo by a command > outbox/secret.txt; echo x > dangling; rm chain"),
      quiet,
    );
    // A command is not fenced in: what it does outside is not captured.
    expect(turn.changes.map((change) => change.path)).toEqual(["chain"]);
    const outsideNow = stamps(outside);
    expect(await workspace.undo()).toMatchObject({ result: "done", written: ["chain"] });
    expect(place.tree()).toEqual(before);
    expect(stamps(outside)).toEqual(outsideNow);
    await workspace.close();
  });

  it.each([false, true])(
    "that took a real directory's place are replaced themselves by a restore (exact: %s)",
    async (exact) => {
      await using place = new Playground();
      const outside = build(place);
      place.write({ "dir/secret.txt": "mine\n", "dir/sub/deep.txt": "mine too\n" });
      const before = place.tree();
      const untouched = stamps(outside);
      const workspace = await place.open();
      const { ref } = await workspace.checkpoint();
      await workspace.exec(place.sh(`rm -r dir; ln -s "${outside}" dir`), quiet);
      expect(fs.readFileSync(place.at("dir/secret.txt"), "utf8")).toBe("secret\n");
      expect(await workspace.restore(ref, { exact })).toMatchObject({ result: "done", conflicts: [], kept: [] });
      expect(place.tree()).toEqual(before);
      expect(fs.lstatSync(place.at("dir")).isDirectory()).toBe(true);
      expect(stamps(outside)).toEqual(untouched);
      await workspace.close();
    },
  );

  it("that take a directory's place at any step of a restore never lead a write outside", async () => {
    /** Swaps at the given call of a restore; false when it makes fewer calls than that. */
    const swapAtCall = async (swapAt: number): Promise<boolean> => {
      await using place = new Playground();
      const outside = build(place);
      place.write({ "dir/secret.txt": "mine\n", "dir/sub/deep.txt": "mine too\n" });
      const untouched = listTree(outside);
      let calls = -Infinity;
      const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args: [file], effect }) => {
        // Calls on a descriptor go where it was opened, whatever becomes of the path.
        const byPath = typeof file !== "number" && (effect || (name === "open" && /\/(dir|sub)$/.test(String(file))));
        if (!byPath || ++calls !== swapAt) return;
        fs.renameSync(place.at("dir"), place.at("moved"));
        fs.symlinkSync(outside, place.at("dir"));
      });
      const workspace = await place.open({}, { fileSystem });
      const { ref } = await workspace.checkpoint();
      await workspace.exec(place.sh("echo edited > dir/secret.txt; rm dir/sub/deep.txt; echo n > dir/new.txt"), quiet);
      calls = 0;
      await workspace.restore(ref).catch((error: unknown) => {
        if (!isLooprigError(error)) throw error;
      });
      await workspace.close();
      expect(listTree(outside)).toEqual(untouched);
      return calls >= swapAt;
    };
    let swaps = 0;
    while (await swapAtCall(swaps + 1)) swaps++;
    expect(swaps).toBeGreaterThan(10);
  }, 120_000);
});

describe("C102 a link to a file, and the file's mode", () => {
  /** zshrc → dotfiles/zshrc, private; a script that can be run. */
  function build(place: Playground): void {
    place.write({ "dotfiles/zshrc": "old\n", "run.sh": "#!/bin/sh\necho old\n" });
    fs.chmodSync(place.at("dotfiles/zshrc"), 0o600);
    fs.chmodSync(place.at("run.sh"), 0o755);
    fs.symlinkSync("dotfiles/zshrc", place.at("zshrc"));
  }
  const modeOf = (place: Playground, name: string): number => fs.lstatSync(place.at(name)).mode & 0o7777;

  it("an atomic write by the link's canonical path leaves the link a link and writes its target", async () => {
    await using place = new Playground();
    build(place);
    const link = only(stamps(place.root), (name) => name === "zshrc");
    const file = canonicalPath(place.at("zshrc"));
    expect(file).toBe(place.at("dotfiles/zshrc"));
    writeFileAtomic(nodeFileSystem, file, [Buffer.from("new\n")], { mode: modeOf(place, "dotfiles/zshrc") });
    expect(only(stamps(place.root), (name) => name === "zshrc")).toEqual(link);
    expect(place.read("dotfiles/zshrc")).toBe("new\n");
    expect(modeOf(place, "dotfiles/zshrc")).toBe(0o600);
    expect(fs.readdirSync(place.at("dotfiles"))).toEqual(["zshrc"]);
  });

  it.each(["write", "fsync", "rename"] as const)(
    "an atomic write that fails at %s leaves the old bytes and nothing beside them",
    async (failing) => {
      await using place = new Playground();
      build(place);
      const before = place.tree();
      const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
        if (name === failing) throw Object.assign(new Error("ENOSPC: injected"), { code: "ENOSPC" });
      });
      const write = () =>
        writeFileAtomic(fileSystem, place.at("dotfiles/zshrc"), [Buffer.from("new\n")], { mode: 0o600 });
      expect(write).toThrow("ENOSPC");
      expect(place.tree()).toEqual(before);
    },
  );

  it("undo and redo of an edit through the link write the target, keep both modes and never touch the link", async () => {
    await using place = new Playground();
    build(place);
    const before = place.tree();
    const link = only(stamps(place.root), (name) => name === "zshrc");
    const workspace = await place.open();
    await workspace.exec(place.sh("echo new > zshrc; echo echo new > run.sh"), quiet);
    const after = place.tree();
    expect(await workspace.undo()).toMatchObject({ result: "done", written: ["dotfiles/zshrc", "run.sh"] });
    expect(place.tree()).toEqual(before);
    expect(await workspace.redo()).toMatchObject({ result: "done" });
    expect(place.tree()).toEqual(after);
    expect([modeOf(place, "dotfiles/zshrc"), modeOf(place, "run.sh")]).toEqual([0o600, 0o755]);
    expect(only(stamps(place.root), (name) => name === "zshrc")).toEqual(link);
    await workspace.close();
  });

  it.skipIf(process.getuid?.() !== 0)("undo and redo leave owner and group with the file", async () => {
    await using place = new Playground();
    build(place);
    fs.chownSync(place.at("dotfiles/zshrc"), 0, 4242);
    fs.chownSync(place.at("run.sh"), 1234, 4242);
    const ownersOf = (): number[][] =>
      ["dotfiles/zshrc", "run.sh"].map((name) => {
        const { uid, gid, mode } = fs.statSync(place.at(name));
        return [uid, gid, mode & 0o7777];
      });
    const owners = ownersOf();
    const workspace = await place.open();
    await workspace.exec(place.sh("echo new > zshrc; echo echo new > run.sh"), quiet);
    expect(await workspace.undo()).toMatchObject({ result: "done" });
    expect(place.read("run.sh")).toBe("#!/bin/sh\necho old\n");
    expect(ownersOf()).toEqual(owners);
    expect(await workspace.redo()).toMatchObject({ result: "done" });
    expect(ownersOf()).toEqual(owners);
    await workspace.close();
  });

  it("an undo that may not give the file away keeps at least its group, and else is done all the same", async () => {
    await using place = new Playground();
    build(place);
    const [uid, gid] = [fs.statSync(place.at("run.sh")).uid, 4242];
    const asked: (readonly number[])[] = [];
    const fileSystem: FileSystem = {
      ...nodeFileSystem,
      lstat: (file) => {
        const stats = nodeFileSystem.lstat(file);
        if (!String(file).endsWith("/run.sh")) return stats;
        const foreign = { uid: 1234n, gid: BigInt(gid) };
        return Object.assign(Object.create(Object.getPrototypeOf(stats) as object) as fs.BigIntStats, stats, foreign);
      },
      fchown: (_, ...owner) => {
        asked.push(owner);
        throw Object.assign(new Error("EPERM: injected"), { code: "EPERM" });
      },
    };
    const before = place.tree();
    const workspace = await place.open({}, { fileSystem });
    await workspace.exec(place.sh("echo echo new > run.sh"), quiet);
    expect(await workspace.undo()).toMatchObject({ result: "done", written: ["run.sh"] });
    expect(place.tree()).toEqual(before);
    expect(asked).toEqual([
      [1234, gid],
      [uid, gid],
    ]);
    await workspace.close();
  });

  it("undo of a careless rewrite that turned the link into a file brings the link back, with the target as it was", async () => {
    await using place = new Playground();
    build(place);
    const before = place.tree();
    const workspace = await place.open();
    await workspace.exec(place.sh("echo new > tmp && mv tmp zshrc && chmod 644 dotfiles/zshrc run.sh"), quiet);
    expect(fs.lstatSync(place.at("zshrc")).isSymbolicLink()).toBe(false);
    expect(await workspace.undo()).toMatchObject({ result: "done" });
    expect(fs.readlinkSync(place.at("zshrc"))).toBe("dotfiles/zshrc");
    expect(place.tree()).toEqual(before);
    await workspace.close();
  });

  it.each<StopAt>([
    { seam: "workspace", call: "write" },
    { seam: "workspace", call: "rename" },
    { seam: "workspace", call: "unlink" },
  ])(
    "a process killed in an undo, at $seam $call, leaves each file old or new, and the next to open settles it",
    async (stopAt) => {
      await using place = new Playground();
      build(place);
      place.write({ "long.txt": "old ".repeat(100_000) });
      const before = place.tree();
      const killed = await startSession(place);
      ok(await killed.tell({ do: "exec", script: "echo new > zshrc; echo echo new > run.sh; echo new > long.txt" }));
      const after = place.tree();
      await killed.tellAndStop({ do: "undo", stopAt });
      killed.process.kill("SIGKILL");
      await killed.process.ended;
      const left = place.tree();
      for (const name of Object.keys(before)) {
        const present = left[name];
        if (present !== undefined) expect([before[name], after[name]]).toContain(present);
      }

      const next = await startSession(place);
      ok(next.opened);
      const settled = place.tree();
      expect([before, after]).toContainEqual(settled);
      ok(await next.tell({ do: "close" }));
    },
  );
});
