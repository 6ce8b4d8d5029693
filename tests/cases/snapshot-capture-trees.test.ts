/** A capture only looks: at repositories, at links, at what may not be read, at what is too large; and says what it saw. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystemCall } from "../../src/core/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { looprig } from "./command-line.js";
import { commitAll, git, gitEnv, gitStatus } from "./git.js";
import { stamps } from "./look.js";

const quiet = { stdio: "ignore" } as const;
const pathOf = ({ args: [first] }: FileSystemCall): string =>
  typeof first === "string" ? first : Buffer.isBuffer(first) ? first.toString("latin1") : "";

describe("C016 captures of a repository with uncommitted edits and hooks", () => {
  async function scene() {
    const place = new Playground("root", { quick: true });
    place.write({ "tracked.txt": "committed\n", "other.txt": "other\n", "src/deep.txt": "deep\n" });
    commitAll(place.root, "first");
    place.write({ "stashed.txt": "stashed\n" });
    git(place.root, "add", "stashed.txt");
    git(place.root, "stash", "--quiet");
    place.write({ "tracked.txt": "staged\n" });
    git(place.root, "add", "tracked.txt");
    place.write({ "tracked.txt": "staged\nand edited\n", "untracked.txt": "new\n" });
    for (const hook of ["pre-commit", "post-commit", "post-checkout", "reference-transaction"]) {
      place.write({ [`.git/hooks/${hook}`]: `#!/bin/sh\necho ${hook} >> ../hooks-that-ran\n` });
      fs.chmodSync(place.at(`.git/hooks/${hook}`), 0o755);
    }
    return place;
  }

  it.each(["omit", "include"] as const)("change nothing in it at any moment, with vcs: %s", async (vcs) => {
    await using place = await scene();
    const before = { tree: place.tree(), stamps: stamps(place.root) };
    const workspace = await place.open({ capture: { vcs } });
    const going = { on: true };
    const captures = (async () => {
      for (let i = 0; i < 10; i++) await workspace.checkpoint();
      going.on = false;
    })();
    let samples = 0;
    while (going.on) {
      expect(place.tree()).toEqual(before.tree);
      samples++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await captures;
    expect(samples).toBeGreaterThan(5);
    expect(stamps(place.root)).toEqual(before.stamps);
    // No hook ran, since no git did.
    expect(fs.existsSync(path.join(place.dir, "hooks-that-ran"))).toBe(false);
    await workspace.close();
  });

  it("let a commit that comes meanwhile commit what is staged, and nothing else", async () => {
    await using place = await scene();
    const workspace = await place.open();
    const commit = spawn("git", ["commit", "--quiet", "--message", "second"], {
      cwd: place.root,
      env: { ...process.env, ...gitEnv },
      stdio: "ignore",
    });
    const committed = once(commit, "exit");
    for (let done = false; !done;) {
      await workspace.checkpoint();
      done = commit.exitCode !== null;
    }
    expect(await committed).toEqual([0, null]);
    expect(git(place.root, "show", "HEAD:tracked.txt")).toBe("staged\n");
    expect(place.read("tracked.txt")).toBe("staged\nand edited\n");
    expect(git(place.root, "stash", "list")).toContain("stash@{0}");
    expect(git(place.root, "log", "--format=%s").trim().split("\n")).toEqual(["second", "first"]);
    await workspace.close();
  });
});

describe("C017 a capture that dies in a tree with repositories in it", () => {
  function scene(): Playground {
    const place = new Playground("root", { quick: true });
    for (const repository of ["", "one/", "deep/two/"]) {
      place.write({ [`${repository}file.txt`]: "text\n" });
      commitAll(place.at(repository), "first");
      place.write({ [`${repository}file.txt`]: "edited\n", [`${repository}new.txt`]: "new\n" });
    }
    return place;
  }
  const statuses = (place: Playground): readonly string[] =>
    ["", "one", "deep/two"].map((at) => gitStatus(place.at(at)));

  it.each(["omit", "include"] as const)(
    "makes no call that could change anything below the root, with vcs: %s",
    async (vcs) => {
      await using place = scene();
      const changing: string[] = [];
      let effects = 0;
      const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
        if (!call.effect) return;
        effects++;
        // By descriptor, it is one that was opened for writing, which is an effect with a path of its own.
        const at = pathOf(call);
        if (at !== "" && !`${at}/`.startsWith(`${place.stateDir}/`)) changing.push(`${call.name} ${at}`);
      });
      await using storage = await openLocalStorage({ dir: place.stateDir, fileSystem });
      const store = createWorkspaceStore(storage, { fileSystem });
      await store.capture({ root: place.root, rules: { vcs } });
      await store.capture({ root: place.root, rules: { vcs } });
      expect(effects).toBeGreaterThan(10);
      expect(changing).toEqual([]);
    },
  );

  it("by SIGKILL leaves all three as they were, without anybody's help", async () => {
    await using place = scene();
    const before = { tree: place.tree(), statuses: statuses(place), stamps: stamps(place.root) };
    for (const effect of [5, 30]) {
      const state = path.join(place.dir, `state-${effect}`);
      const { signal } = await startProcess("tests/processes/killed-capture.ts", [place.root, state, String(effect)])
        .ended;
      expect(signal).toBe("SIGKILL");
      expect(place.tree()).toEqual(before.tree);
      expect(stamps(place.root)).toEqual(before.stamps);
      expect(statuses(place)).toEqual(before.statuses);
    }
  });
});

describe("C041 a directory that a link has taken the place of", () => {
  it("is captured as the link, before and after other edits, and each capture restores its own kind without writing through", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ ".claude/skills/demo/x": "x\n", "other.txt": "1\n" });
    const workspace = await place.open();
    const asDirectory = await workspace.checkpoint();
    const first = place.tree();
    fs.mkdirSync(place.at(".agents"));
    fs.renameSync(place.at(".claude/skills"), place.at(".agents/skills"));
    fs.symlinkSync("../.agents/skills", place.at(".claude/skills"));
    const asLink = await workspace.checkpoint();
    place.write({ "other.txt": "2\n" });
    const edited = await workspace.checkpoint();
    const last = place.tree();
    expect(new Set([asDirectory.ref, asLink.ref, edited.ref]).size).toBe(3);
    for (const { completeness } of [asLink, edited]) expect(completeness).toBe("complete");
    expect(await (await workspace.tree(edited.ref)).lookup(".claude/skills" as never)).toEqual({
      kind: "symlink",
      target: "../.agents/skills",
    });

    await workspace.restore(asDirectory.ref, { exact: true });
    expect(place.tree()).toEqual(first);
    await workspace.restore(edited.ref, { exact: true });
    expect(place.tree()).toEqual(last);
    await workspace.restore(asDirectory.ref, { paths: [".claude"], exact: true });
    // What the link pointed to still holds its own.
    expect(fs.lstatSync(place.at(".claude/skills")).isDirectory()).toBe(true);
    expect(place.read(".agents/skills/demo/x")).toBe("x\n");
    await workspace.close();
  });
});

describe("C042 paths that cannot be read among many that can", () => {
  const locked = ["closed.txt", "locked", "rooted.txt"];
  async function scene() {
    const place = new Playground("root", { quick: true });
    for (let i = 0; i < 500; i++) place.write({ [`src/d${i % 10}/f${i}`]: `${i}\n` });
    place.write({ "closed.txt": "closed\n", "locked/inner": "inner\n", "rooted.txt": "root's\n" });
    // These tests may run as root, whom no mode keeps out.
    const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
      if (call.name !== "open" && call.name !== "readdir") return;
      if (!/\/(closed\.txt|locked|rooted\.txt)(\/\.)?$/.test(pathOf(call))) return;
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    });
    return { place, fileSystem };
  }

  it("are listed, the capture is partial, and restoring it brings back the rest and leaves them alone", async () => {
    const { place, fileSystem } = await scene();
    await using _ = place;
    const before = place.tree();
    const workspace = await place.open({}, { fileSystem });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ completeness: "partial", files: 500, omitted: { unreadable: 3 } });
    const tree = await workspace.tree(taken.ref);
    for (const name of locked) {
      expect(await tree.lookup(name as never)).toEqual({ kind: "omitted", class: "unreadable" });
    }
    const held = stamps(place.root, (name) => !locked.includes(name.split("/")[0] ?? ""));
    await workspace.exec(place.sh("echo edited > src/d1/f1; rm src/d2/f2; rm -r src/d3; echo made > src/made"), quiet);
    await workspace.restore(taken.ref, { exact: true, includeWindow: true });
    expect(place.tree()).toEqual(before);
    expect(stamps(place.root, (name) => !locked.includes(name.split("/")[0] ?? ""))).toEqual(held);
    await workspace.close();
  });

  it("are why a strict capture is refused, by name", async () => {
    const { place, fileSystem } = await scene();
    await using _ = place;
    const workspace = await openWorkspace(
      { root: place.root, storage: await place.storage(), baseline: false, command: "test", capture: { strict: true } },
      { fileSystem },
    );
    await expect(workspace.checkpoint()).rejects.toMatchObject({
      code: "capture.incomplete",
      details: { paths: locked.map((name) => ({ path: name, class: "unreadable" })) },
    });
    await workspace.close();
  });
});

describe("C051 one file above the limit", () => {
  it("stops no command: it is listed as over the limit, never read, and never touched", async () => {
    await using place = new Playground("root", { quick: true });
    place.write({ "a.txt": "a\n" });
    fs.closeSync(fs.openSync(place.at("huge.img"), "w"));
    fs.truncateSync(place.at("huge.img"), 2 * 1024 ** 3);
    const read: string[] = [];
    const fileSystem = interceptFileSystem(nodeFileSystem, (call) => {
      if (call.name === "open" && pathOf(call).endsWith("/huge.img")) read.push(call.name);
    });
    const held = stamps(place.root, (name) => name !== "huge.img");
    const workspace = await place.open({ capture: { maxFileBytes: 1024 ** 2 } }, { fileSystem });
    const taken = await workspace.checkpoint();
    expect(taken).toMatchObject({ files: 1, completeness: "complete", omitted: { "over-size": 1 } });
    await workspace.exec(place.sh("echo b > a.txt; echo new > b.txt"), quiet);
    const changes: string[] = [];
    for (const change of await workspace.changes({ since: taken.ref })) changes.push(change.path);
    expect(changes).toEqual(["a.txt", "b.txt"]);
    expect((await workspace.undo()).result).toBe("done");
    expect(await workspace.restore(taken.ref, { exact: true })).toMatchObject({ result: "nothing" });
    await workspace.close();

    for (const args of [["log"], ["diff", "c1"]]) {
      const told = await looprig(place, args);
      expect([args[0], told.code, told.stderr]).toEqual([args[0], 0, ""]);
    }
    expect((await looprig(place, ["show", "c1", "--json"])).stdout).toContain("over-size");
    expect(read).toEqual([]);
    expect(stamps(place.root, (name) => name !== "huge.img")).toEqual(held);
  });
});
