/** A checkpoint holds what stood in the tree, whatever stands in it, or says that it does not. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, isLooprigError, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem, FileSystemCall } from "../../src/core/index.js";
import { createSessionStore } from "../../src/session-store/index.js";
import type { Workspace, WorkspaceView } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { looprig } from "./command-line.js";
import { commitAll, git, gitStatus } from "./git.js";
import { isGit, isIn, only, stamps } from "./look.js";

const quiet = { stdio: "ignore" } as const;

/** The path a call is given, where it is given one. */
const pathOf = ({ args: [first] }: FileSystemCall): string =>
  typeof first === "string" ? first : Buffer.isBuffer(first) ? first.toString("latin1") : "";
const errno = (code: string): Error => Object.assign(new Error(`${code}: injected`), { code });

/** For what may be refused in order: any other failure is one. */
function refusedOrThrow(error: unknown): undefined {
  if (!isLooprigError(error)) throw error;
}

async function textOf(view: WorkspaceView, ref: string, name: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of view.readFile(ref, name)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

describe("C005 a capture that meets a nested repository without a commit", () => {
  /** file.txt is v1 in S1 and v2 now, and `nested` has come since. */
  async function second(place: Playground, fail: (call: FileSystemCall) => void = () => undefined) {
    place.write({ "file.txt": "v1" });
    let armed = false;
    const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
      if (armed) fail(call);
    });
    const workspace = await place.open({}, { fileSystem });
    const first = await workspace.checkpoint();
    await workspace.exec(["true"], quiet);
    place.write({ "file.txt": "v2" });
    fs.mkdirSync(place.at("nested"));
    git(place.at("nested"), "init", "--quiet");
    place.write({ "nested/inside.txt": "inside\n" });
    armed = true;
    return { workspace, first, disarm: () => (armed = false) };
  }
  async function expectSecond(workspace: Workspace, ref: string, first: { readonly ref: string }): Promise<void> {
    expect(ref).not.toBe(first.ref);
    expect(await textOf(workspace, ref, "file.txt")).toBe("v2");
  }

  it("holds the new bytes, and restoring it leaves them", async () => {
    await using place = new Playground();
    const { workspace, first } = await second(place);
    const taken = await workspace.checkpoint();
    await expectSecond(workspace, taken.ref, first);
    expect(taken.completeness).toBe("complete");
    expect(await textOf(workspace, taken.ref, "nested/inside.txt")).toBe("inside\n");
    expect(await workspace.restore(taken.ref, { exact: true })).toMatchObject({ result: "nothing" });
    expect(place.read("file.txt")).toBe("v2");
    await workspace.close();
  });

  it("is marked partial where the nested directory cannot be read, and holds the new bytes of the rest", async () => {
    await using place = new Playground();
    const { workspace, first } = await second(place, (call) => {
      if (call.name === "open" && pathOf(call).endsWith("/nested")) throw errno("EIO");
    });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ completeness: "partial", omitted: { unreadable: 1 }, unchanged: false });
    await expectSecond(workspace, taken.ref, first);
    expect(await workspace.restore(taken.ref, { exact: true })).toMatchObject({ result: "nothing" });
    expect(place.read("file.txt")).toBe("v2");
    await workspace.close();
  });

  it("that fails half-way is an error without a ref, is not the newest checkpoint, and the next one is whole", async () => {
    await using place = new Playground();
    const { workspace, first, disarm } = await second(place, (call) => {
      if (call.name === "open" && pathOf(call).endsWith("/nested")) throw errno("EMFILE");
    });
    await expect(workspace.checkpoint()).rejects.toMatchObject({ code: "storage.failed", retryable: true });
    const { checkpoints } = await workspace.history();
    // The first one, and the baseline of the command between; nothing else was numbered, and that it failed is on record.
    expect(checkpoints.map(({ number }) => number)).toEqual([first.number, first.number + 1]);
    const events = createSessionStore(await place.storage()).read(workspace.sessionId);
    const failures: unknown[] = [];
    for await (const event of events) if (event.type === "checkpoint-failed") failures.push(event);
    expect(failures).toMatchObject([{ trigger: "manual", code: "storage.failed" }]);
    disarm();
    const taken = await workspace.checkpoint();
    await expectSecond(workspace, taken.ref, first);
    await workspace.restore(taken.ref, { exact: true });
    expect(place.read("file.txt")).toBe("v2");
    await workspace.close();
  });

  it("that fails at any one call of its way never returns the older tree", async () => {
    await using place = new Playground();
    let seen = 0;
    let failAt = Infinity;
    const { workspace, first } = await second(place, () => {
      if (++seen === failAt) throw errno("EMFILE");
    });
    let taken: Awaited<ReturnType<Workspace["checkpoint"]>> | undefined;
    let failures = 0;
    for (failAt = 1; taken === undefined || seen >= failAt; failAt++) {
      seen = 0;
      taken = await workspace.checkpoint().catch(() => undefined);
      if (taken === undefined) failures++;
      else await expectSecond(workspace, taken.ref, first);
    }
    expect(failures).toBeGreaterThan(10);
    await workspace.close();
  });
});

describe("C039 edits made by shell commands alone", () => {
  it("in place, by heredoc and by a script, with a file made and one deleted, are five changes that undo reverses exactly", async () => {
    await using place = new Playground();
    place.write({
      "src/a.js": "let a = 1;\n",
      "src/b.js": "let b = 1;\n",
      "src/c.js": "let c = 1;\n",
      "src/old.js": "old\n",
    });
    fs.chmodSync(place.at("src/b.js"), 0o755);
    const before = place.tree();
    const script = [
      "sed -i 's/1/2/' src/a.js",
      "cat > src/b.js <<'EOF'",
      "let b = 2;",
      "EOF",
      `${process.execPath} -e 'require("fs").appendFileSync("src/c.js", "let d;\\n")'`,
      "echo made > src/made.js",
      "rm src/old.js",
    ].join("\n");
    const workspace = await place.open();
    const turn = await workspace.exec(place.sh(script), quiet);
    expect(turn).toMatchObject({ exitCode: 0, protected: true });
    expect(turn.changes.map(({ kind, path: name, by }) => [kind, name, by.kind])).toEqual([
      ["edited", "src/a.js", "session"],
      ["edited", "src/b.js", "session"],
      ["edited", "src/c.js", "session"],
      ["added", "src/made.js", "session"],
      ["deleted", "src/old.js", "session"],
    ]);
    const undone = await workspace.undo();
    expect(undone).toMatchObject({ result: "done", deleted: ["src/made.js"], conflicts: [], kept: [] });
    expect(undone.written).toEqual(["src/a.js", "src/b.js", "src/c.js", "src/old.js"]);
    expect(place.tree()).toEqual(before);
    await workspace.close();
  });

  it("over many commands each leave a turn with its own changes, which the log shows and undo takes back one by one", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "0\n" });
    const states = [place.tree()];
    const workspace = await place.open();
    for (let i = 1; i <= 5; i++) {
      await workspace.exec(place.sh(`echo ${i} >> a.txt; echo ${i} > made-${i}`), quiet);
      states.push(place.tree());
    }
    const { turns } = await workspace.history();
    expect(turns.map(({ number, changed }) => [number, changed])).toEqual([1, 2, 3, 4, 5].map((i) => [i, 2]));
    for (const state of states.slice(0, -1).reverse()) {
      expect((await workspace.undo()).result).toBe("done");
      expect(place.tree()).toEqual(state);
    }
    await workspace.close();
  });

  it("made after the command returned, by what it left behind, are not passed for the turn's: undo stops at them", async () => {
    await using place = new Playground();
    place.write({ "a.txt": "before\n" });
    const workspace = await place.open();
    await workspace.exec(place.sh("echo turn > a.txt"), quiet);
    place.write({ "a.txt": "late\n" });
    const undone = await workspace.undo();
    expect(undone).toMatchObject({ result: "conflict", conflicts: [{ path: "a.txt", by: { kind: "foreign" } }] });
    expect(place.read("a.txt")).toBe("late\n");
    await workspace.close();
  });
});

describe("C043 nested repositories in a plain directory", () => {
  /** A submodule in its super-project, a repository without a commit, a linked worktree, an ordinary clone. */
  function build(place: Playground): readonly string[] {
    const upstream = path.join(place.dir, "upstream");
    fs.mkdirSync(upstream);
    place.write({ "lib.txt": "lib\n", "sub/deep.txt": "deep\n" }, upstream);
    commitAll(upstream, "upstream");
    place.write({ "top.txt": "top\n", "super/main.txt": "main\n", "empty/new.txt": "new\n" });
    commitAll(place.at("super"), "super");
    git(place.at("super"), "submodule", "--quiet", "add", upstream, "lib");
    git(place.at("super"), "commit", "--quiet", "--message", "with lib");
    git(place.at("empty"), "init", "--quiet");
    git(upstream, "worktree", "add", "--quiet", place.at("linked"), "-b", "linked");
    git(place.root, "clone", "--quiet", upstream, "clone");
    expect(fs.statSync(place.at("linked/.git")).isFile()).toBe(true);
    expect(fs.statSync(place.at("super/lib/.git")).isFile()).toBe(true);
    return ["super", "super/lib", "empty", "linked", "clone"].map((name) => place.at(name));
  }
  const editAll =
    "for d in . super super/lib empty linked clone; do for f in $d/*.txt; do echo edited >> $f; done; echo made > $d/made; done; rm clone/sub/deep.txt; mkdir -p linked/x; mv linked/sub linked/x/";

  it("are captured and restored but for git's own directories, which are neither read nor written", async () => {
    await using place = new Playground();
    const repositories = build(place);
    const intoGit: string[] = [];
    const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
      const shown = `${call.name} ${pathOf(call)}`;
      if (isGit(pathOf(call)) && !(call.name === "lstat" && shown.endsWith("/.git"))) intoGit.push(shown);
    });
    const before = place.tree();
    const statuses = repositories.map(gitStatus);
    const gitBefore = stamps(place.root, (name) => !isGit(name));

    const workspace = await place.open({}, { fileSystem });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ completeness: "complete", omitted: { vcs: 5 } });
    await workspace.exec(place.sh(editAll), quiet);
    expect(repositories.map(gitStatus)).not.toEqual(statuses);
    const restored = await workspace.restore(taken.ref);
    expect(restored).toMatchObject({ result: "done", kept: [], conflicts: [] });
    await workspace.close();

    expect(place.tree()).toEqual(before);
    expect(repositories.map(gitStatus)).toEqual(statuses);
    expect(stamps(place.root, (name) => !isGit(name))).toEqual(gitBefore);
    // The root is no repository, so HEAD is looked for in it, and found missing.
    expect(intoGit.filter((call) => !call.includes(`${place.root}/.git`))).toEqual([]);
  });

  it("come back when a command removed a whole checkout, all but what is git's", async () => {
    await using place = new Playground();
    build(place);
    const before = only(place.tree(), (name) => !isGit(name));
    const workspace = await place.open();
    await workspace.exec(place.sh("rm -rf clone linked"), quiet);
    expect((await workspace.undo()).result).toBe("partly");
    expect(only(place.tree(), (name) => !isGit(name))).toEqual(before);
    // Git's own were left out of the capture, and said to be.
    expect(fs.existsSync(place.at("clone/.git"))).toBe(false);
    await workspace.close();
  });
});

describe("C107 writes of the same size within one tick of the clock", () => {
  /** A volume that keeps whole units of time only. */
  const coarse = (unitNs: bigint): FileSystem => {
    const round = (ns: bigint): bigint => ns - (ns % unitNs);
    const rounded = (stats: fs.BigIntStats): fs.BigIntStats =>
      Object.assign(Object.create(Object.getPrototypeOf(stats) as object) as fs.BigIntStats, stats, {
        mtimeNs: round(stats.mtimeNs),
        ctimeNs: round(stats.ctimeNs),
      });
    return {
      ...nodeFileSystem,
      lstat: (name) => rounded(nodeFileSystem.lstat(name)),
      stat: (name) => rounded(nodeFileSystem.stat(name)),
      fstat: (fd) => rounded(nodeFileSystem.fstat(fd)),
    };
  };
  const four = (n: number): string => String(n).padStart(4, "0");

  it.each([
    { volume: "as fine as this one's", fileSystem: nodeFileSystem, rounds: 60 },
    { volume: "of one second", fileSystem: coarse(1_000_000_000n), rounds: 40 },
    { volume: "of two seconds", fileSystem: coarse(2_000_000_000n), rounds: 40 },
  ])("are all seen, with stamps $volume", async ({ fileSystem, rounds }) => {
    await using place = new Playground();
    place.write({ a: four(0), "other/b": "b" });
    const workspace = await place.open({}, { fileSystem });
    await workspace.checkpoint();
    for (let round = 1; round <= rounds; round++) {
      // In place and at once: neither size nor inode tells.
      fs.writeFileSync(place.at("a"), four(round));
      const { ref, unchanged } = await workspace.checkpoint();
      expect(unchanged).toBe(false);
      expect(await textOf(workspace, ref, "a")).toBe(four(round));
    }
    await workspace.close();
  });

  it("are seen by the next capture, whatever moment of the one before they fell into", async () => {
    await using place = new Playground();
    place.write({ a: "AAAA" });
    let calls = -Infinity;
    let writeAt = 0;
    const fileSystem = interceptFileSystem(nodeFileSystem, () => {
      if (++calls === writeAt) fs.writeFileSync(place.at("a"), "BBBB");
    });
    const workspace = await place.open({}, { fileSystem });
    for (let wrote = true; wrote;) {
      writeAt++;
      fs.writeFileSync(place.at("a"), "AAAA");
      calls = 0;
      const during = await workspace.checkpoint();
      wrote = calls >= writeAt;
      calls = -Infinity;
      expect(await textOf(workspace, during.ref, "a")).toMatch(wrote ? /^(AAAA|BBBB)$/ : /^AAAA$/);
      const after = await workspace.checkpoint();
      expect(await textOf(workspace, after.ref, "a")).toBe(wrote ? "BBBB" : "AAAA");
    }
    expect(writeAt).toBeGreaterThan(10);
    await workspace.close();
  });
});

describe("C109 special files in the tree", () => {
  const mkfifo = (file: string): void => void execFileSync("mkfifo", [file]);
  async function build(place: Playground): Promise<net.Server> {
    place.write({ "regular.txt": "before\n" });
    mkfifo(place.at("pipe"));
    // Sockets have short names only; the kernel takes relative ones as they are.
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(path.relative(process.cwd(), place.at("sock")), resolve));
    return server;
  }
  /** Only root may make one. */
  function makeDevice(place: Playground): boolean {
    try {
      execFileSync("mknod", [place.at("device"), "c", "1", "3"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  }

  it(
    "are skipped, listed by kind and left alone by capture, read and restore; nothing waits for a peer",
    { timeout: 20_000 },
    async () => {
      await using place = new Playground();
      const server = await build(place);
      const specials = ["pipe", "sock", ...(makeDevice(place) ? ["device"] : [])];
      const untouched = only(stamps(place.root), (name) => specials.includes(name));
      const workspace = await place.open();
      const taken = await workspace.checkpoint();
      expect(taken).toMatchObject({ completeness: "complete", omitted: { special: specials.length } });
      const tree = await workspace.tree(taken.ref);
      for (const name of specials) {
        expect(await tree.lookup(name as never)).toEqual({ kind: "omitted", class: "special" });
        for (const ref of [taken.ref, "now"]) {
          await expect(textOf(workspace, ref, name)).rejects.toMatchObject({ code: "snapshot.path_omitted" });
        }
      }
      for (const exact of [false, true]) {
        await workspace.exec(place.sh(`echo edited ${exact} > regular.txt`), quiet);
        expect(await workspace.restore(taken.ref, { exact })).toMatchObject({
          result: "done",
          written: ["regular.txt"],
        });
        expect(place.read("regular.txt")).toBe("before\n");
      }
      expect(only(stamps(place.root), (name) => specials.includes(name))).toEqual(untouched);
      await workspace.close();
      server.close();
    },
  );

  it(
    "that took a file's place stay, and undo and restore say that they left them out",
    { timeout: 20_000 },
    async () => {
      await using place = new Playground();
      place.write({ "was-file": "file\n", "regular.txt": "before\n" });
      const workspace = await place.open();
      const { ref } = await workspace.checkpoint();
      await workspace.exec(place.sh("rm was-file; mkfifo was-file; echo edited > regular.txt"), quiet);
      const fifo = fs.lstatSync(place.at("was-file")).ino;
      const undone = await workspace.undo();
      expect(undone).toMatchObject({ written: ["regular.txt"], omitted: ["was-file"] });
      const restored = await workspace.restore(ref, { exact: true });
      expect(restored).toMatchObject({ result: "nothing", omitted: ["was-file"] });
      expect(fs.lstatSync(place.at("was-file")).isFIFO()).toBe(true);
      expect(fs.lstatSync(place.at("was-file")).ino).toBe(fifo);
      await workspace.close();
    },
  );

  it(
    "that take a file's place between look and open never make a capture or a restore wait",
    { timeout: 40_000 },
    async () => {
      await using place = new Playground();
      place.write({ victim: "before\n", other: "o\n" });
      let swapAt = Infinity;
      let opens = 0;
      const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
        if (call.name !== "open" || !pathOf(call).endsWith("/victim") || ++opens !== swapAt) return;
        fs.rmSync(place.at("victim"));
        mkfifo(place.at("victim"));
      });
      const workspace = await place.open({}, { fileSystem });
      // Runs `work` with the swap at its first, second, … opening of the file, until it opens the file less often than that.
      const swapping = async (
        prepare: () => Promise<string>,
        work: (ref: string, swapped: () => boolean) => Promise<unknown>,
      ): Promise<number> => {
        for (let at = 1; ; at++) {
          fs.rmSync(place.at("victim"), { force: true });
          place.write({ victim: `before ${at}\n` });
          const ref = await prepare();
          [opens, swapAt] = [0, at];
          await work(ref, () => opens >= at);
          swapAt = Infinity;
          if (opens < at) return at - 1;
          expect(fs.lstatSync(place.at("victim")).isFIFO()).toBe(true);
        }
      };

      const captured = await swapping(
        async () => "",
        async (_, swapped) => {
          const { ref } = await workspace.checkpoint();
          const entry = await (await workspace.tree(ref)).lookup("victim" as never);
          expect(entry).toMatchObject({ kind: swapped() ? "omitted" : "file" });
        },
      );
      expect(captured).toBeGreaterThan(0);
      const restored = await swapping(
        async () => {
          const { ref } = await workspace.checkpoint();
          await workspace.exec(place.sh("echo edited > victim"), quiet);
          return ref;
        },
        // It may have put the file back before the swap, so what it says is open; that the fifo stays is not.
        (ref) => workspace.restore(ref).catch(refusedOrThrow),
      );
      expect(restored).toBeGreaterThan(0);
      await workspace.close();
    },
  );

  it("and files of a mount that answers with errors are listed, and the rest is captured", async () => {
    await using place = new Playground();
    place.write({ "stalled/file": "x", "mounted/file": "y", "regular.txt": "r" });
    const fileSystem: FileSystem = {
      ...interceptFileSystem(nodeFileSystem, (call) => {
        if (call.name === "open" && pathOf(call).endsWith("/stalled")) throw errno("ESTALE");
      }),
      lstat: (name) => {
        const stats = nodeFileSystem.lstat(name);
        return String(name).endsWith("/mounted")
          ? Object.assign(Object.create(Object.getPrototypeOf(stats) as object) as fs.BigIntStats, stats, { dev: 1n })
          : stats;
      },
    };
    const workspace = await place.open({}, { fileSystem });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ files: 1, omitted: { unreadable: 1, mount: 1 }, completeness: "partial" });
    await workspace.close();
  });
});

describe("C111 symlink cycles and graphs of links", () => {
  const packages = 300;
  function build(place: Playground): void {
    place.write({ "a/b/c/file": "c\n", "a/file": "a\n" });
    fs.symlinkSync(".", place.at("a/self"));
    fs.symlinkSync("..", place.at("a/b/parent"));
    fs.symlinkSync("../..", place.at("a/b/c/up"));
    fs.symlinkSync("nowhere/at all", place.at("dangling"));
    fs.symlinkSync("/", place.at("everything"));
    // As pnpm lays them out: each package beside links to what it depends on, in cycles.
    for (let i = 0; i < packages; i++) {
      const own = `node_modules/.pnpm/p${i}/node_modules`;
      place.write({ [`${own}/p${i}/index.js`]: `module.exports = ${i};\n` });
      for (const d of [1, 7, 50].map((step) => (i + step) % packages)) {
        fs.symlinkSync(`../../p${d}/node_modules/p${d}`, place.at(`${own}/p${d}`));
      }
      fs.symlinkSync(`.pnpm/p${i}/node_modules/p${i}`, place.at(`node_modules/p${i}`));
    }
  }

  it("are captured, listed and restored as links with their exact text, each real entry looked at once, nothing outside", async () => {
    await using place = new Playground();
    build(place);
    const before = place.tree();
    const directories = Object.values(before).filter((entry) => entry.startsWith("directory")).length + 1;
    const entries = Object.keys(before).length;
    const counts = { readdir: 0, lstat: 0, readlink: 0 };
    let counting = false;
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (counting && name in counts) counts[name as keyof typeof counts]++;
    });
    const workspace = await place.open({}, { fileSystem });
    counting = true;
    const taken = await workspace.checkpoint();
    counting = false;
    expect(taken).toMatchObject({ completeness: "complete", omitted: {} });
    // Each directory once, and that of the stat index.
    expect(counts.readdir).toBeGreaterThanOrEqual(directories);
    expect(counts.readdir).toBeLessThan(directories + 3);
    expect(counts.readlink).toBe(Object.values(before).filter((entry) => entry.startsWith("link")).length);
    expect(counts.lstat).toBeGreaterThanOrEqual(entries);
    expect(counts.lstat).toBeLessThan(entries + directories + 20);

    const tree = await workspace.tree(taken.ref);
    expect(await tree.lookup("a/self" as never)).toEqual({ kind: "symlink", target: "." });
    expect(await tree.lookup("everything" as never)).toEqual({ kind: "symlink", target: "/" });
    expect(await tree.lookup("dangling" as never)).toEqual({ kind: "symlink", target: "nowhere/at all" });
    expect(await tree.lookup("a/self/self/file" as never)).toBeUndefined();

    const script = "rm -rf a node_modules/p* node_modules/.pnpm/p12* dangling everything; mkdir a; ln -s .. a/self";
    await workspace.exec(place.sh(script), quiet);
    const restored = await workspace.restore(taken.ref);
    expect(restored).toMatchObject({ result: "done", kept: [], conflicts: [] });
    expect(place.tree()).toEqual(before);

    const elsewhere = path.join(place.dir, "elsewhere");
    const chosen = ["a", "dangling", "everything", "node_modules/.pnpm/p7"];
    await workspace.materialize(taken.ref, elsewhere, { paths: chosen });
    const isChosen = (name: string): boolean => chosen.some((each) => isIn(name, each) || isIn(each, name));
    expect(listTree(elsewhere)).toEqual(only(before, isChosen));
    await workspace.close();
  });

  it("show in listings of the command line as links", async () => {
    await using place = new Playground();
    place.write({ "a/file": "a\n" });
    fs.symlinkSync(".", place.at("a/self"));
    fs.symlinkSync("/", place.at("everything"));
    await looprig(place, ["snapshot"]);
    const told = JSON.parse((await looprig(place, ["show", "c1", "--json"])).stdout) as {
      entries: { path: string; kind: string }[];
    };
    expect(told.entries.map(({ path: name, kind }) => `${kind} ${name}`)).toEqual([
      "directory a",
      "file a/file",
      "symlink a/self",
      "symlink everything",
    ]);
  });
});
