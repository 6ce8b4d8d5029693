import { execFileSync } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import type { FileSystem, WorkspacePath } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { Tree } from "./contracts.js";
import { pieceBytes } from "./object-ids.js";
import { holeBytes, zeroPieceId } from "./sparse-content.js";
import { createWorkspaceStore } from "./store.js";
import { temporaryDirectory } from "./testing/tree-on-disk.js";

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

async function kept(files: Readonly<Record<string, Buffer | readonly [Buffer, number]>>): Promise<Tree> {
  const list = Object.entries(files).map(([name, content]) => {
    const [bytes, mode] = Buffer.isBuffer(content) ? [content, 0o644] : content;
    return { path: name as WorkspacePath, bytes, mode };
  });
  return store().open(await store().keep(list));
}

describe("a large file with stretches of zeros", () => {
  it("comes back with holes in their place, and equal", async () => {
    const bytes = Buffer.alloc(5 * pieceBytes + 100);
    bytes.write("start", 0);
    bytes.write("middle", pieceBytes + holeBytes * 3 + 17);
    const tree = await kept({ sparse: bytes, zeros: Buffer.alloc(3 * pieceBytes) });
    const written: number[] = [];
    const watched = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      if (name === "write") written.push(args[3] as number);
    });
    await store(watched).materialize(tree, dest);
    expect(fs.readFileSync(path.join(dest, "sparse")).equals(bytes)).toBe(true);
    expect(fs.readFileSync(path.join(dest, "zeros")).equals(Buffer.alloc(3 * pieceBytes))).toBe(true);
    // The stretches that hold something, and the end, which is shorter than a stretch.
    expect(written).toEqual([holeBytes, holeBytes, 100]);
    // Where the file system counts blocks at all, the holes have none.
    expect(fs.statSync(path.join(dest, "sparse")).blocks * 512).toBeLessThan(pieceBytes);
    expect(fs.statSync(path.join(dest, "zeros")).blocks * 512).toBeLessThan(holeBytes);
  });

  it("is equal wherever they lie", async () => {
    const size = fc.constantFrom(pieceBytes + 1, 2 * pieceBytes, 2 * pieceBytes + holeBytes, 2 * pieceBytes + 4097);
    const spots = fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 150_000 })), {
      maxLength: 4,
    });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(size, spots, async (length, filled) => {
        const bytes = Buffer.alloc(length);
        for (const [where, long] of filled) {
          const start = Math.floor(where * (length - 1));
          bytes.fill(7, start, Math.min(length, start + long));
        }
        const at = `${dest}${count++}`;
        await store().materialize(await kept({ f: bytes }), at);
        expect(fs.readFileSync(path.join(at, "f")).equals(bytes)).toBe(true);
      }),
      { numRuns: 8 },
    );
  });

  it("knows the piece of zeros by its id", () => {
    expect(hash("sha256", Buffer.alloc(pieceBytes))).toBe(zeroPieceId);
  });
});

describe("equal large files of one tree", () => {
  const large = randomBytes(pieceBytes + 5);

  /** A file system that can clone, and what it was asked to. */
  function cloning(before: (from: string, to: string) => void = () => undefined) {
    const clones: string[] = [];
    const fileSystem: FileSystem = {
      ...nodeFileSystem,
      cloneFile: async (from, to) => {
        clones.push(path.basename(String(to)));
        before(String(from), String(to));
        await fs.promises.copyFile(from, to, fs.constants.COPYFILE_EXCL);
      },
    };
    return { clones, fileSystem };
  }

  it("are cloned from the first one, where their modes are equal too", async () => {
    const { clones, fileSystem } = cloning();
    const open = fs.readdirSync("/proc/self/fd").length;
    const tree = await kept({ a: large, b: large, c: large, other: [large, 0o600], small: Buffer.from("small") });
    await store(fileSystem).materialize(tree, dest);
    expect(clones).toEqual(["b", "c"]);
    for (const name of ["a", "b", "c", "other"]) {
      expect(fs.readFileSync(path.join(dest, name)).equals(large), name).toBe(true);
      expect(fs.statSync(path.join(dest, name)).mode & 0o777).toBe(name === "other" ? 0o600 : 0o644);
    }
    expect(fs.readdirSync("/proc/self/fd").length).toBe(open);
  });

  it("are written where the file system refuses, which is asked once", async () => {
    const { clones, fileSystem } = cloning(() => {
      throw Object.assign(new Error("not here"), { code: "ENOTSUP" });
    });
    await store(fileSystem).materialize(await kept({ a: large, b: large, c: large }), dest);
    expect(clones).toEqual(["b"]);
    for (const name of ["a", "b", "c"]) expect(fs.readFileSync(path.join(dest, name)).equals(large), name).toBe(true);
  });

  it("are written from the store when the first was touched meanwhile", async () => {
    const { clones, fileSystem } = cloning((from) => {
      fs.writeFileSync(from, "somebody else");
    });
    await store(fileSystem).materialize(await kept({ a: large, b: large }), dest);
    expect(clones).toEqual(["b"]);
    expect(fs.readFileSync(path.join(dest, "a"), "utf8")).toBe("somebody else");
    expect(fs.readFileSync(path.join(dest, "b")).equals(large)).toBe(true);
  });

  it("are taken away with the rest when a clone fails for good", async () => {
    const { fileSystem } = cloning(() => {
      throw Object.assign(new Error("full"), { code: "ENOSPC" });
    });
    const writing = store(fileSystem).materialize(await kept({ a: large, b: large }), dest);
    await expect(writing).rejects.toMatchObject({ code: "snapshot.materialize_failed", details: { errno: "ENOSPC" } });
    expect(fs.existsSync(dest)).toBe(false);
  });

  it.for(["xfs", "btrfs"])("share their blocks on %s", async (kind, context) => {
    const image = path.join(base.path, "image");
    const at = path.join(base.path, "mounted");
    fs.mkdirSync(at);
    fs.closeSync(fs.openSync(image, "w"));
    fs.truncateSync(image, 320 * 1024 * 1024);
    try {
      execFileSync(`mkfs.${kind}`, ["-q", image], { stdio: "ignore" });
      execFileSync("mount", ["-o", "loop", image, at], { stdio: "ignore" });
    } catch {
      context.skip(`no ${kind} can be made and mounted here`);
    }
    try {
      const content = randomBytes(8 * pieceBytes);
      const tree = await kept({ a: content, b: content, c: content });
      const free = () => {
        execFileSync("sync", ["-f", at]);
        const { bavail, bsize } = fs.statfsSync(at);
        return bavail * bsize;
      };
      const before = free();
      await store().materialize(tree, path.join(at, "dest"));
      expect(before - free()).toBeLessThan(2 * content.length);
      fs.appendFileSync(path.join(at, "dest", "a"), "own");
      for (const name of ["b", "c"]) expect(fs.readFileSync(path.join(at, "dest", name)).equals(content)).toBe(true);
    } finally {
      execFileSync("umount", ["--lazy", at], { stdio: "ignore" });
    }
  });
});
