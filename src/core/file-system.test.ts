import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errnoOf, interceptFileSystem, isFull, isMissing, nodeFileSystem } from "./file-system.js";
import type { FileSystemCall } from "./file-system.js";

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_RDWR, O_TRUNC, O_DIRECTORY } = fs.constants;

describe("an intercepted file system", () => {
  test("does what the real one does, and tells effects from observations", async () => {
    const calls: FileSystemCall[] = [];
    const seam = interceptFileSystem(nodeFileSystem, (call) => calls.push(call));
    const file = path.join(dir, "file");
    const fd = seam.open(file, O_RDWR | O_CREAT | O_EXCL, 0o600);
    seam.write(fd, Buffer.from("hello"), 0, 5, null);
    await seam.fsyncLater(fd);
    seam.fsync(fd);
    seam.ftruncate(fd, 4);
    seam.fchmod(fd, 0o640);
    const { uid, gid } = fs.fstatSync(fd);
    seam.fchown(fd, uid, gid);
    const buffer = Buffer.alloc(8);
    expect(seam.read(fd, buffer, 0, 8, 0)).toBe(4);
    expect(seam.fstat(fd).size).toBe(4n);
    seam.close(fd);
    seam.mkdir(path.join(dir, "d"), 0o755);
    seam.link(file, path.join(dir, "hard"));
    seam.symlink("file", path.join(dir, "soft"));
    seam.rename(path.join(dir, "hard"), path.join(dir, "renamed"));
    seam.chmod(file, 0o600);
    expect(seam.lstat(path.join(dir, "soft")).isSymbolicLink()).toBe(true);
    expect(seam.stat(path.join(dir, "soft")).ino).toBe(seam.lstat(file).ino);
    expect(seam.readlink(path.join(dir, "soft")).toString()).toBe("file");
    expect(seam.realpath(path.join(dir, "soft"))).toBe(fs.realpathSync.native(file));
    expect(seam.readdir(dir).map(String).sort()).toEqual(["d", "file", "renamed", "soft"]);
    expect(seam.readdirBytes(dir).every((name) => Buffer.isBuffer(name))).toBe(true);
    expect(seam.statfs(dir).bsize).toBeGreaterThan(0);
    // Few file systems share blocks; what counts here is that the call goes through.
    await seam.cloneFile(file, path.join(dir, "clone")).catch(() => undefined);
    seam.unlink(path.join(dir, "soft"));
    seam.rmdir(path.join(dir, "d"));
    const effects = calls.filter(({ effect }) => effect).map(({ name }) => name);
    expect(effects).toEqual([
      "open",
      "write",
      "fsyncLater",
      "fsync",
      "ftruncate",
      "fchmod",
      "fchown",
      "mkdir",
      "link",
      "symlink",
      "rename",
      "chmod",
      "cloneFile",
      "unlink",
      "rmdir",
    ]);
    // Nothing of the seam was left out above.
    expect(new Set(calls.map(({ name }) => name))).toEqual(new Set(Object.keys(nodeFileSystem)));
  });

  test.each([
    [O_RDONLY, false],
    [O_RDONLY | O_DIRECTORY, false],
    [O_WRONLY, true],
    [O_RDWR, true],
    [O_RDONLY | O_CREAT, true],
    [O_WRONLY | O_TRUNC, true],
  ])("takes opening with flags %i for an effect: %s", (flags, effect) => {
    let seen: boolean | undefined;
    const seam = interceptFileSystem(nodeFileSystem, (call) => {
      seen = call.effect;
      throw new Error("looked");
    });
    expect(() => seam.open(path.join(dir, "x"), flags)).toThrow("looked");
    expect(seen).toBe(effect);
  });

  test("fails calls in the way their callers expect", async () => {
    const seam = interceptFileSystem(nodeFileSystem, () => {
      throw Object.assign(new Error("full"), { code: "ENOSPC" });
    });
    expect(() => seam.fsync(0)).toThrow("full");
    const later = seam.fsyncLater(0);
    await expect(later).rejects.toThrow("full");
    await expect(nodeFileSystem.fsyncLater(-1 >>> 1)).rejects.toMatchObject({ code: "EBADF" });
  });

  test("can be intercepted again", () => {
    const seen: string[] = [];
    const inner = interceptFileSystem(nodeFileSystem, () => seen.push("inner"));
    interceptFileSystem(inner, () => seen.push("outer")).lstat(dir);
    expect(seen).toEqual(["outer", "inner"]);
  });
});

test("errors of the system are told by their code, others have none", () => {
  const caught = (run: () => void): unknown => {
    try {
      run();
      return undefined;
    } catch (error) {
      return error;
    }
  };
  fs.writeFileSync(path.join(dir, "file"), "");
  expect(isMissing(caught(() => nodeFileSystem.lstat(path.join(dir, "none"))))).toBe(true);
  expect(isMissing(caught(() => nodeFileSystem.lstat(path.join(dir, "file/none"))))).toBe(true);
  expect(isMissing(caught(() => nodeFileSystem.rmdir(dir)))).toBe(false);
  expect(errnoOf(caught(() => nodeFileSystem.lstat("a\0b")))).toBeUndefined();
  expect(errnoOf(new Error("x"))).toBeUndefined();
  expect(["ENOSPC", "EDQUOT", "EIO"].map((code) => isFull(Object.assign(new Error(), { code })))).toEqual([
    true,
    true,
    false,
  ]);
});
