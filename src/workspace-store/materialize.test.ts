import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { Tree } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, readTree, symlink, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";
import type { DiskTree } from "./testing/tree-on-disk.js";

let base: ReturnType<typeof temporaryDirectory>;
let storage: Storage;
let dest: string;
beforeEach(() => {
  base = temporaryDirectory();
  storage = createMemoryStorage();
  dest = path.join(base.path, "dest");
});
afterEach(() => {
  base.dispose();
});

const store = (fileSystem?: FileSystem) => createWorkspaceStore(storage, { fileSystem });
async function captured(tree: DiskTree): Promise<Tree> {
  const root = fs.mkdtempSync(path.join(base.path, "root-"));
  writeTree(root, tree);
  return (await store().capture({ root, rules: { vcs: "include" } })).tree;
}

const sample: DiskTree = {
  a: file("a"),
  d: directory({ b: file("b"), e: directory({ c: file("c") }, 0o500) }, 0o555),
  l: symlink("../outside"),
};

describe("materialize", () => {
  it("gives modes exactly, whatever the umask, and never set-id bits (U10)", async () => {
    const modes = [0o644, 0o600, 0o755, 0o444, 0o400, 0o511, 0o777, 0o000];
    const tree: DiskTree = {
      ...Object.fromEntries(modes.map((mode) => [`f${mode.toString(8)}`, file("x", mode)])),
      ...Object.fromEntries(modes.map((mode) => [`d${mode.toString(8)}`, directory({ f: file("y") }, mode)])),
      setuid: file("s", 0o4755),
      sticky: directory({}, 0o1777),
    };
    const before = process.umask(0o077);
    try {
      await store().materialize(await captured(tree), dest);
    } finally {
      process.umask(before);
    }
    expect(readTree(dest)).toEqual({ ...tree, setuid: file("s", 0o755), sticky: directory({}, 0o777) });
  });

  it("fills an empty directory that is there, and keeps it (G8)", async () => {
    fs.mkdirSync(dest);
    const { ino } = fs.statSync(dest);
    const result = await store().materialize(await captured(sample), dest);
    expect(result).toEqual({ entries: 6, bytes: 3 });
    expect(readTree(dest)).toEqual(sample);
    expect(fs.statSync(dest).ino).toBe(ino);
  });

  it.each([
    ["a directory with something in it", directory({ mine: file("1") })],
    ["a file", file("1")],
    ["a link to an empty directory", symlink("dest-other")],
  ])("refuses %s and changes nothing", async (_, there) => {
    const before = { dest: there, "dest-other": directory({}) };
    writeTree(base.path, before);
    const tree = await captured(sample);
    await expect(store().materialize(tree, dest)).rejects.toMatchObject({ code: "snapshot.dest_not_empty" });
    expect(readTree(base.path)).toMatchObject(before);
    expect(fs.readdirSync(`${dest}-other`)).toEqual([]);
  });

  it("refuses a destination whose parent is missing", async () => {
    const tree = await captured(sample);
    const writing = store().materialize(tree, path.join(dest, "below"));
    await expect(writing).rejects.toMatchObject({ code: "snapshot.dest_unusable" });
  });

  it.each([
    [{ maxEntries: 5 }, { limit: "maxEntries", allowed: 5 }],
    [{ maxBytes: 2 }, { limit: "maxBytes", allowed: 2 }],
  ])("refuses beyond %o before it writes", async (limits, details) => {
    const tree = await captured(sample);
    await expect(store().materialize(tree, dest, limits)).rejects.toMatchObject({ code: "snapshot.limit", details });
    expect(fs.existsSync(dest)).toBe(false);
  });

  it("refuses before it writes when an object is missing, and names the path (G8)", async () => {
    const tree = await captured(sample);
    const other = createWorkspaceStore(createMemoryStorage());
    const writing = other.materialize(tree, dest);
    await expect(writing).rejects.toMatchObject({ code: "snapshot.object_missing", details: { path: "a" } });
    expect(fs.existsSync(dest)).toBe(false);
  });

  it("never writes a `.git` that is a file or a link unless told, and writes directories of that name (U12)", async () => {
    const tree = await captured({
      ".git": directory({ HEAD: file("ref") }),
      worktree: directory({ ".git": file("gitdir: /elsewhere") }),
      linked: directory({ ".git": symlink("/elsewhere") }),
    });
    await store().materialize(tree, dest);
    expect(readTree(dest)).toEqual({
      ".git": directory({ HEAD: file("ref") }),
      worktree: directory({}),
      linked: directory({}),
    });
    await store().materialize(tree, `${dest}-2`, { gitLinks: "write" });
    expect(readTree(`${dest}-2`)["linked"]).toEqual(directory({ ".git": symlink("/elsewhere") }));
  });

  describe("on a volume that folds names", () => {
    /** Folds case and composition of every name in an opened directory, as such a volume does. */
    const folding = (): FileSystem => {
      const fold = (at: unknown): never => {
        const text = String(at);
        if (!text.startsWith("/proc/")) return text as never;
        const cut = text.lastIndexOf("/") + 1;
        return (text.slice(0, cut) + text.slice(cut).normalize("NFC").toLowerCase()) as never;
      };
      const real = nodeFileSystem;
      return {
        ...real,
        mkdir: (at, mode) => real.mkdir(fold(at), mode),
        rmdir: (at) => real.rmdir(fold(at)),
        lstat: (at) => real.lstat(fold(at)),
        unlink: (at) => real.unlink(fold(at)),
        open: (at, flags, mode) => real.open(fold(at), flags, mode),
      };
    };

    it("names colliding pairs and changes nothing", async () => {
      const tree = await captured({
        d: directory({ Logo: file("1"), logo: file("2") }),
        "\u00e9": file("composed"),
        "e\u0301": file("decomposed"),
      });
      const error = await store(folding())
        .materialize(tree, dest)
        .catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        code: "snapshot.name_collision",
        details: {
          pairs: [
            ["e\u0301", "\u00e9"],
            ["d/Logo", "d/logo"],
          ],
        },
      });
      expect(fs.existsSync(dest)).toBe(false);
    });

    it("writes the same tree where the volume tells names apart", async () => {
      const tree: DiskTree = { Logo: file("1"), logo: file("2"), "\u00e9": file("c"), "e\u0301": file("d") };
      await store().materialize(await captured(tree), dest);
      expect(readTree(dest)).toEqual(tree);
    });
  });

  it.each([
    { durable: false, least: 11 },
    { durable: true, least: 17 },
  ])(
    "takes back what it made when any call fails, and nothing else (durable: $durable)",
    async ({ durable, least }) => {
      const tree = await captured(sample);
      // Counts the effects of a run that succeeds, then lets each of them fail in turn.
      let effects = 0;
      const counting = interceptFileSystem(nodeFileSystem, ({ effect }) => {
        if (effect) effects++;
      });
      await store(counting).materialize(tree, `${dest}-good`, { durable });
      expect(effects).toBeGreaterThanOrEqual(least);
      for (let failing = 1; failing <= effects; failing++) {
        let count = 0;
        const breaking = interceptFileSystem(nodeFileSystem, ({ effect }) => {
          if (effect && ++count === failing) throw Object.assign(new Error("full"), { code: "ENOSPC" });
        });
        const writing = store(breaking).materialize(tree, dest, { durable });
        await expect(writing).rejects.toMatchObject({ code: expect.stringMatching(/^snapshot\./) as string });
        expect(fs.existsSync(dest)).toBe(false);
      }
    },
  );

  it("that is aborted takes back what it made and rejects with the reason", async () => {
    const tree = await captured(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, file(`${i}`)])));
    const controller = new AbortController();
    const reason = new Error("enough");
    let writes = 0;
    const slow = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name !== "write") return;
      if (++writes === 10) controller.abort(reason);
      // Fills the slice, so that the call yields and sees the abort.
      for (const end = performance.now() + 13; performance.now() < end;);
    });
    await expect(store(slow).materialize(tree, dest, { signal: controller.signal })).rejects.toBe(reason);
    expect(writes).toBeLessThan(50);
    expect(fs.existsSync(dest)).toBe(false);
  });
});
