import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  Directory,
  interceptFileSystem,
  nameFromBytes,
  nodeFileSystem,
  parseWorkspacePath,
  SnapshotError,
} from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import { openLocalStorage } from "../storage-local/index.js";
import type { CaptureOptions, Tree, WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { directory, file, readTree, symlink, temporaryDirectory, writeTree } from "./testing/tree-on-disk.js";
import type { DiskTree } from "./testing/tree-on-disk.js";
import { visitTree } from "./tree.js";

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
let storage: Storage;
/** Ahead of the real clock, so that files made by a test count as old. */
const later = () => Date.now() + 60_000;

const backends = {
  memory: async () => createMemoryStorage(),
  local: () => openLocalStorage({ dir: path.join(base.path, "state") }),
};

beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  storage = createMemoryStorage();
});
afterEach(async () => {
  await storage.close();
  base.dispose();
});

const store = (options: { fileSystem?: FileSystem; now?: () => number } = {}): WorkspaceStore =>
  createWorkspaceStore(storage, { spoolDir: path.join(base.path, "spool"), now: later, ...options });

const out = () => path.join(fs.mkdtempSync(path.join(base.path, "out-")), "tree");

async function restored(from: WorkspaceStore, tree: Tree): Promise<DiskTree> {
  const dest = out();
  await from.materialize(tree, dest);
  return readTree(dest);
}

async function contentOf(from: WorkspaceStore, tree: Tree, name: string): Promise<string> {
  const entry = await tree.lookup(parseWorkspacePath(name));
  if (entry?.kind !== "file") return `no file: ${entry?.kind ?? "nothing"}`;
  const pieces: Uint8Array[] = [];
  for await (const piece of from.read(entry)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function paths(tree: Tree): Promise<string[]> {
  const found: string[] = [];
  for await (const { path: at } of visitTree(tree)) found.push(at);
  return found;
}

// ── random trees ────────────────────────────────────────────────────────────────────────────────────────────────────

const name = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom("a", "b", "A", ".git-like", "a-b", "\u{1f600}", "\uff5e", "é", "e\u0301") },
  fc.constantFrom(" lead", "trail ", 'q"', "back\\slash", "tab\t", "new\nline", "-rf", "*", "..."),
  fc
    .uint8Array({ minLength: 1, maxLength: 6 })
    .map(nameFromBytes)
    .filter((text) => !/[\0/]/.test(text) && !/^\.{1,2}$/.test(text)),
);
const fileMode = fc.constantFrom(0o644, 0o755, 0o444, 0o600, 0o000, 0o777, 0o511);
const directoryMode = fc.constantFrom(0o755, 0o700, 0o500, 0o777, 0o000);
const { tree: diskTree } = fc.letrec<{ tree: DiskTree; entry: DiskTree[string] }>((tie) => ({
  tree: fc.dictionary(name, tie("entry"), { maxKeys: 6 }),
  entry: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc
      .record({ bytes: fc.uint8Array({ maxLength: 200 }), mode: fileMode })
      .map(({ bytes, mode }) => file(Buffer.from(bytes).toString("latin1"), mode)),
    fc.constantFrom("a", "..", "/", "nowhere", "x\udcff", " ").map(symlink),
    fc.record({ entries: tie("tree"), mode: directoryMode }).map(({ entries, mode }) => directory(entries, mode)),
  ),
}));

/** Bytes are latin1 text in a DiskTree that was read; written, they must be bytes again. */
const asBytes = (tree: DiskTree): DiskTree =>
  Object.fromEntries(
    Object.entries(tree).map(([key, entry]) => [
      key,
      entry.kind === "file"
        ? { ...entry, bytes: Buffer.from(entry.bytes as string, "latin1") }
        : entry.kind === "directory"
          ? { ...entry, entries: asBytes(entry.entries) }
          : entry,
    ]),
  );

describe.each(Object.entries(backends))("over %s storage", (_, open) => {
  beforeEach(async () => {
    storage = await open();
  });

  it("any tree comes back from its ref equal in names, kinds, modes, targets and bytes", async () => {
    await fc.assert(
      fc.asyncProperty(diskTree, async (tree) => {
        const at = fs.mkdtempSync(path.join(base.path, "any-"));
        writeTree(at, asBytes(tree));
        const first = await store().capture({ root: at });
        expect(first.completeness).toBe("complete");
        const again = await store().capture({ root: at });
        expect(again).toMatchObject({ ref: first.ref, bytesRead: 0, bytesStored: 0 });
        const stored = await createWorkspaceStore(storage).open(first.ref);
        expect(await restored(createWorkspaceStore(storage), stored)).toEqual(readTree(at));
        expect((await store().scan({ root: at })).ref).toBe(first.ref);
      }),
      { numRuns: 40 },
    );
  });

  it("large files come back, and a changed piece is all that is stored anew", async () => {
    const bytes = randomBytes(5 * 1024 * 1024 + 17);
    writeTree(root, { big: file(bytes) });
    const first = await store().capture({ root });
    expect(await restored(store(), first.tree)).toEqual(readTree(root));
    expect(await store().has(first.ref)).toBe(true);
    bytes.fill(7, 2 * 1024 * 1024, 3 * 1024 * 1024);
    fs.writeFileSync(path.join(root, "big"), bytes);
    const second = await store().capture({ root });
    expect(second.bytesStored).toBeLessThan(100_000);
    expect(await restored(store(), second.tree)).toEqual(readTree(root));
  });

  it("many captures at once into one store all give the right ref", async () => {
    const roots = Array.from({ length: 8 }, (__, i) => {
      const at = path.join(base.path, `root-${i % 3}`);
      if (i < 3) {
        fs.mkdirSync(at);
        for (let j = 0; j < 40; j++) fs.writeFileSync(path.join(at, `f${j}`), `${(i * j) % 17} ${"x".repeat(j * 50)}`);
      }
      return at;
    });
    const shared = store();
    const results = await Promise.all(
      roots.map((at, i) =>
        (i % 2 ? shared : createWorkspaceStore(storage)).capture({ root: at, pin: { owner: "o", id: `${i}` } }),
      ),
    );
    for (const [i, { ref, tree }] of results.entries()) {
      expect(await store().has(ref)).toBe(true);
      expect(await restored(createWorkspaceStore(storage), tree)).toEqual(readTree(roots[i] as string));
    }
    const report = await createWorkspaceStore(storage).verify();
    expect(report.damaged).toEqual([]);
    expect(report.objects).toBeGreaterThan(40);
  });
});

// ── what a capture says of odd things ───────────────────────────────────────────────────────────────────────────────

describe("a capture", () => {
  it("of a tree with a fifo, a socket and devices returns at once and names them", async () => {
    execFileSync("mkfifo", [path.join(root, "pipe")]);
    execFileSync("mknod", [path.join(root, "null"), "c", "1", "3"]);
    const net = await import("node:net");
    const server = net.createServer().listen(path.join(root, "socket"));
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      writeTree(root, { a: file("a") });
      const result = await store().capture({ root });
      expect(result.omitted).toEqual(["null", "pipe", "socket"].map((at) => ({ path: at, class: "special" })));
      expect(result.completeness).toBe("complete");
    } finally {
      server.close();
    }
  });

  it("is not blocked when a file becomes a fifo between the look and the open", async () => {
    writeTree(root, { a: file("a"), b: file("b") });
    let swapped = false;
    const swapping = interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      if (call !== "open" || swapped || !String(args[0]).endsWith("/a")) return;
      swapped = true;
      fs.rmSync(path.join(root, "a"));
      execFileSync("mkfifo", [path.join(root, "a")]);
    });
    const result = await store({ fileSystem: swapping }).capture({ root });
    expect(swapped).toBe(true);
    expect(result.omitted).toEqual([{ path: "a", class: "special" }]);
    expect(await contentOf(store(), result.tree, "b")).toBe("b");
  });

  it("ends with link cycles, and keeps links as links with their exact text", async () => {
    const tree = {
      a: directory({
        self: symlink("."),
        b: directory({ parent: symlink(".."), c: directory({ up: symlink("../..") }) }),
      }),
      dangling: symlink("nowhere/at all"),
      everything: symlink("/"),
    };
    writeTree(root, tree);
    const result = await store().capture({ root });
    expect(result.files).toBe(0);
    expect(await paths(result.tree)).toEqual([
      "a",
      "dangling",
      "everything",
      "a/b",
      "a/self",
      "a/b/c",
      "a/b/parent",
      "a/b/c/up",
    ]);
    expect(await restored(store(), result.tree)).toEqual(tree);
  });

  it("of a directory that became a link records each as it was, and never writes through the link", async () => {
    writeTree(root, { ".claude": directory({ skills: directory({ x: file("x") }) }), other: file("1") });
    const first = await store().capture({ root });
    fs.mkdirSync(path.join(root, ".agents"));
    fs.renameSync(path.join(root, ".claude/skills"), path.join(root, ".agents/skills"));
    fs.symlinkSync("../.agents/skills", path.join(root, ".claude/skills"));
    const second = await store().capture({ root });
    fs.writeFileSync(path.join(root, "other"), "2");
    const third = await store().capture({ root });
    const kind = async (tree: Tree) => (await tree.lookup(parseWorkspacePath(".claude/skills")))?.kind;
    expect([await kind(first.tree), await kind(second.tree), await kind(third.tree)]).toEqual([
      "directory",
      "symlink",
      "symlink",
    ]);
    const now = readTree(root);
    expect((await restored(store(), first.tree))[".claude"]).toEqual(
      directory({ skills: directory({ x: file("x") }) }),
    );
    expect(await restored(store(), third.tree)).toEqual(now);
    expect(readTree(root)).toEqual(now);
  });

  it("lists what cannot be read and captures the rest, or refuses when asked to be strict (U14)", async () => {
    writeTree(root, { a: file("a"), secret: file("s"), locked: directory({ x: file("x") }), stale: file("io") });
    const failing = interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      const at = String(args[0]);
      const fail = (code: string) => {
        throw Object.assign(new Error(code), { code });
      };
      if (call === "open" && at.endsWith("/secret")) fail("EACCES");
      if (call === "open" && at.endsWith("/locked")) fail("EACCES");
      if (call === "lstat" && at.endsWith("/stale")) fail("EIO");
    });
    const result = await store({ fileSystem: failing }).capture({ root });
    expect(result.completeness).toBe("partial");
    expect(result.omitted).toEqual(["locked", "secret", "stale"].map((at) => ({ path: at, class: "unreadable" })));
    expect(await restored(store(), result.tree)).toEqual({ a: file("a") });
    const strict = store({ fileSystem: failing }).capture({ root, strict: true });
    await expect(strict).rejects.toMatchObject({
      code: "capture.incomplete",
      details: { paths: [{ path: "locked" }, { path: "secret" }, { path: "stale" }] },
    });
  });

  it("fails as a whole when the process runs out of descriptors", async () => {
    writeTree(root, { a: file("a") });
    const failing = interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      if (call === "open" && String(args[0]).endsWith("/a")) throw Object.assign(new Error(), { code: "EMFILE" });
    });
    await expect(store({ fileSystem: failing }).capture({ root })).rejects.toMatchObject({ code: "storage.failed" });
  });

  it("leaves version control out unless told, in nested repositories too (U12)", async () => {
    const repository = directory({ HEAD: file("ref") });
    writeTree(root, {
      ".git": repository,
      nested: directory({ ".git": repository, a: file("a") }),
      worktree: directory({ ".git": file("gitdir: elsewhere"), b: file("b") }),
    });
    const result = await store().capture({ root });
    expect(result.omitted).toEqual([".git", "nested/.git", "worktree/.git"].map((at) => ({ path: at, class: "vcs" })));
    expect(result.completeness).toBe("complete");
    expect(await paths(result.tree)).toContain("worktree/b");
    const included = await store().capture({ root, rules: { vcs: "include" } });
    expect(included.omitted).toEqual([]);
    expect(await restored(store(), included.tree)).toEqual({
      ".git": repository,
      nested: directory({ ".git": repository, a: file("a") }),
      worktree: directory({ b: file("b") }),
    });
  });

  it("leaves out what rules name, by the bytes of its path and whatever the order (U11)", async () => {
    writeTree(root, {
      logs: directory({ "x.log": file("") }),
      "keep.log": file(""),
      "drop.log": file(""),
      "\udcffname": file(""),
      deep: directory({ build: directory({ o: file("") }), "build.txt": file("") }),
    });
    const result = await store().capture({
      root,
      rules: { exclude: ["*.log", "!keep.log", "build/", "\udcffname"] },
    });
    expect(result.omitted.map(({ path: at }) => at).sort()).toEqual([
      "deep/build",
      "drop.log",
      "logs/x.log",
      "\udcffname",
    ]);
    expect(result.omitted.every(({ class: why }) => why === "excluded")).toBe(true);
  });

  it("keeps private files in local stores and leaves them out of remote ones (U13)", async () => {
    writeTree(root, { ".env": file("k=v"), id_rsa: file("key"), a: file("") });
    expect((await store().capture({ root })).omitted).toEqual([]);
    const remote = createWorkspaceStore({ ...storage, locality: "remote" });
    expect((await remote.capture({ root })).omitted).toEqual([
      { path: ".env", class: "private" },
      { path: "id_rsa", class: "private" },
    ]);
    expect((await remote.capture({ root, rules: { includePrivate: true } })).omitted).toEqual([]);
  });

  it("records files above the size limit as omissions (U11, U14)", async () => {
    writeTree(root, { big: file("12345"), small: file("1234") });
    const result = await store().capture({ root, rules: { maxFileBytes: 4 } });
    expect(result.omitted).toEqual([{ path: "big", class: "over-size" }]);
  });

  it("never captures the store, however it lies in the tree (B2)", async () => {
    await storage.close();
    storage = await openLocalStorage({ dir: path.join(root, "data", "checkpoints") });
    writeTree(root, { a: file("a"), link: symlink("data/checkpoints") });
    const within = createWorkspaceStore(storage);
    const refs = new Set<string>();
    for (let i = 0; i < 10; i++) {
      const result = await within.capture({ root });
      expect(result.omitted).toEqual([{ path: "data/checkpoints", class: "excluded" }]);
      refs.add(result.ref);
    }
    expect(refs.size).toBe(1);
  });

  it("leaves out own paths without a trace and own directories as excluded", async () => {
    writeTree(root, { a: file("a"), ".looprig-1-2": file("staged"), mine: directory({ x: file("") }) });
    const { dev, ino } = fs.statSync(path.join(root, "mine"), { bigint: true });
    const options: CaptureOptions = {
      root,
      ownPaths: new Set([parseWorkspacePath(".looprig-1-2")]),
      ownDirectories: [{ dev, ino }],
    };
    const result = await store().capture(options);
    expect(await paths(result.tree)).toEqual(["a", "mine"]);
    expect(result.omitted).toEqual([{ path: "mine", class: "excluded" }]);
  });

  it("stops at other devices", async () => {
    writeTree(root, { mounted: directory({ x: file("") }), a: file("a") });
    const mounting: FileSystem = {
      ...nodeFileSystem,
      lstat: (at) => {
        const stats = nodeFileSystem.lstat(at);
        if (String(at).endsWith("/mounted")) stats.dev += 1n;
        return stats;
      },
    };
    const result = await store({ fileSystem: mounting }).capture({ root });
    expect(result.omitted).toEqual([{ path: "mounted", class: "mount" }]);
  });

  it("goes a thousand directories deep", async () => {
    // No path may be longer than 4096 bytes, so the tree is made from handle to handle.
    let at = Directory.open(nodeFileSystem, root);
    for (let i = 0; i < 1000; i++) {
      fs.mkdirSync(at.at("d"));
      const below = at.child("d");
      at.close();
      at = below;
    }
    fs.writeFileSync(at.at("end"), "deep");
    at.close();
    const result = await store().capture({ root });
    expect(result.files).toBe(1);
    expect((await paths(result.tree)).length).toBe(1001);
    const dest = out();
    await store().materialize(result.tree, dest);
    const depth = execFileSync("find", [".", "-name", "end", "-printf", "%d"], { cwd: dest }).toString();
    expect(depth).toBe("1001");
    expect((await store().scan({ root: dest })).ref).toBe(result.ref);
  });

  it.each([
    ["absent", (at: string) => path.join(at, "absent")],
    ["a file", (at: string) => path.join(at, "a")],
    ["relative", () => "tree"],
  ])("of a root that is %s is refused", async (_, make) => {
    writeTree(root, { a: file("a") });
    await expect(store().capture({ root: make(root) })).rejects.toMatchObject({ code: "capture.root_unreadable" });
  });

  it("whose root is replaced meanwhile is refused, and nothing is pinned", async () => {
    writeTree(root, { a: file("a") });
    const replacing = interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      if (call !== "open" || !String(args[0]).endsWith("/a") || fs.existsSync(`${root}-old`)) return;
      fs.renameSync(root, `${root}-old`);
      fs.mkdirSync(root);
    });
    const capture = store({ fileSystem: replacing }).capture({ root, pin: { owner: "o", id: "i" } });
    await expect(capture).rejects.toMatchObject({ code: "capture.root_unreadable" });
    expect(await store().pins()).toEqual([]);
  });

  it("asks before it reads a byte of a tree that is too large, and names the largest directories (U11)", async () => {
    writeTree(root, { vendor: directory({ all: directory({ huge: file("x") }) }), src: directory({ a: file("a") }) });
    let reads = 0;
    let isHuge = true;
    const huge: FileSystem = {
      ...nodeFileSystem,
      lstat: (at) => {
        const stats = nodeFileSystem.lstat(at);
        if (isHuge && String(at).endsWith("/huge")) stats.size = 5n * 1024n ** 3n;
        return stats;
      },
      read: (...args) => {
        reads++;
        return nodeFileSystem.read(...args);
      },
    };
    const error = await store({ fileSystem: huge })
      .capture({ root })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: "capture.too_large",
      details: { files: 2, largest: [{ path: "vendor/all" }, { path: "src" }] },
      hint: expect.stringContaining("/vendor/all/") as string,
    });
    expect(reads).toBe(0);
    isHuge = false;
    expect((await store({ fileSystem: huge }).capture({ root })).files).toBe(2);
  });

  it("with an excluded pattern of the wrong type is refused before any I/O", async () => {
    const rules = { exclude: "node_modules" } as never;
    await expect(store().capture({ root: "/nowhere", rules })).rejects.toMatchObject({
      code: "option.invalid",
      details: { field: "exclude" },
    });
  });

  it("that fails half-way gives an error and never the earlier ref", async () => {
    writeTree(root, { "file.txt": file("v1") });
    const first = await store().capture({ root });
    fs.writeFileSync(path.join(root, "file.txt"), "v2");
    fs.mkdirSync(path.join(root, "nested"));
    const failing = interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      if (call === "readdir" && String(args[0]).includes("/fd/")) throw Object.assign(new Error(), { code: "ENFILE" });
    });
    await expect(store({ fileSystem: failing }).capture({ root })).rejects.toBeInstanceOf(Error);
    const second = await store().capture({ root });
    expect(second.ref).not.toBe(first.ref);
    expect(await contentOf(store(), second.tree, "file.txt")).toBe("v2");
    expect(await contentOf(store(), first.tree, "file.txt")).toBe("v1");
  });
});

// ── trees that move while they are captured ─────────────────────────────────────────────────────────────────────────

describe("a capture of a moving tree", () => {
  const whenOpening = (suffix: string, action: () => void): FileSystem => {
    let done = false;
    return interceptFileSystem(nodeFileSystem, ({ name: call, args }) => {
      if (done || call !== "open" || !String(args[0]).endsWith(suffix)) return;
      done = true;
      action();
    });
  };

  it("records a file that vanished as absent", async () => {
    writeTree(root, { a: file("a"), b: file("b") });
    const fileSystem = whenOpening("/a", () => fs.rmSync(path.join(root, "a")));
    const result = await store({ fileSystem }).capture({ root });
    expect(await paths(result.tree)).toEqual(["b"]);
    expect(result.completeness).toBe("complete");
  });

  it("records a file that was replaced by what stands there", async () => {
    writeTree(root, { a: file("old"), b: file("b") });
    const fileSystem = whenOpening("/a", () => {
      fs.writeFileSync(path.join(root, "new"), "new");
      fs.renameSync(path.join(root, "new"), path.join(root, "a"));
    });
    const result = await store({ fileSystem }).capture({ root });
    expect(await contentOf(store(), result.tree, "a")).toBe("new");
  });

  it("records a file that became a directory, and a directory that became a file", async () => {
    writeTree(root, { a: file("old"), d: directory({ x: file("x") }), z: file("z") });
    const fileSystem = whenOpening("/a", () => {
      fs.rmSync(path.join(root, "a"));
      fs.rmSync(path.join(root, "d"), { recursive: true });
      writeTree(root, { a: directory({ inner: file("inner") }), d: file("now a file") });
    });
    const result = await store({ fileSystem }).capture({ root });
    expect(await contentOf(store(), result.tree, "a/inner")).toBe("inner");
    expect(await contentOf(store(), result.tree, "z")).toBe("z");
    const d = await result.tree.lookup(parseWorkspacePath("d"));
    // The directory was held open: its name reads as gone with everything in it, or as the file that replaced it.
    expect(["file", "directory"]).toContain(d?.kind);
  });

  it("looks again at a directory that was replaced before its files were read", async () => {
    writeTree(root, { a: file("a"), d: directory({ x: file("old") }) });
    const fillers = Array.from({ length: 250 }, (_, i) => [`f${i}`, directory({ y: file(`${i}`) })] as const);
    writeTree(root, Object.fromEntries(fillers));
    const fileSystem = whenOpening("/a", () => {
      fs.renameSync(path.join(root, "d"), path.join(base.path, "away"));
      writeTree(root, { d: directory({ x: file("new"), y: file("more") }) });
    });
    const result = await store({ fileSystem }).capture({ root });
    expect(await contentOf(store(), result.tree, "d/x")).toBe("new");
    expect(await contentOf(store(), result.tree, "d/y")).toBe("more");
    expect(await contentOf(store(), result.tree, "f249/y")).toBe("249");
  });

  it("never records a file that changes at every read, and says so", async () => {
    writeTree(root, { log: file("1"), b: file("b") });
    const growing = interceptFileSystem(nodeFileSystem, ({ name: call }) => {
      if (call === "read") fs.appendFileSync(path.join(root, "log"), "x");
    });
    const result = await store({ fileSystem: growing }).capture({ root });
    expect(result.completeness).toBe("partial");
    expect(result.omitted).toContainEqual({ path: "log", class: "unstable" });
  });
});

// ── cancelling ──────────────────────────────────────────────────────────────────────────────────────────────────────

describe("a cancelled capture", () => {
  it("rejects with the reason, pins nothing, and leaves what it stored and learnt to the next", async () => {
    const tree = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`f${i}`, file(`${i} `.repeat(200))]));
    writeTree(root, tree);
    const controller = new AbortController();
    const reason = new Error("enough");
    let reads = 0;
    const slow = interceptFileSystem(nodeFileSystem, ({ name: call }) => {
      if (call === "read" && ++reads === 200) controller.abort(reason);
      // Fills the slice, so that the capture yields and sees the abort soon.
      if (reads >= 200) for (const end = performance.now() + 15; performance.now() < end;);
    });
    const capture = store({ fileSystem: slow }).capture({
      root,
      signal: controller.signal,
      pin: { owner: "o", id: "i" },
    });
    await expect(capture).rejects.toMatchObject({ code: "capture.canceled", cause: reason });
    expect(await store().pins()).toEqual([]);
    const next = await store().capture({ root });
    const total = Object.values(tree).reduce((sum, entry) => sum + (entry.kind === "file" ? entry.bytes.length : 0), 0);
    expect(next.bytesRead).toBeLessThan(total / 2);
    expect(await restored(store(), next.tree)).toEqual(readTree(root));
  });

  it("gives up directories it holds open when there are no more descriptors", async () => {
    const names = Array.from({ length: 40 }, (_, i) => `d${i}`);
    writeTree(root, Object.fromEntries(names.map((name) => [name, directory({ f: file(name) })])));
    let opened = 0;
    const scarce: FileSystem = {
      ...nodeFileSystem,
      open: (...args) => {
        if (opened >= 20) throw Object.assign(new Error("too many"), { code: "EMFILE" });
        const fd = nodeFileSystem.open(...args);
        opened++;
        return fd;
      },
      close: (fd) => {
        opened--;
        nodeFileSystem.close(fd);
      },
    };
    const captured = await store({ fileSystem: scarce }).capture({ root });
    expect(captured).toMatchObject({ completeness: "complete", files: 40 });
  });

  it("that was cancelled before it began touches nothing", async () => {
    const never = interceptFileSystem(nodeFileSystem, ({ name: call }) => {
      throw new Error(`called ${call}`);
    });
    const capture = createWorkspaceStore(storage, { fileSystem: never }).capture({ root, signal: AbortSignal.abort() });
    await expect(capture).rejects.toBeInstanceOf(SnapshotError);
  });
});
