import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Directory, nodeFileSystem } from "../core/index.js";
import type { CanonicalRoot, FileSystem } from "../core/index.js";
import { canonicalPath } from "./canonical-path.js";
import {
  checkRecordedRoot,
  checkRoot,
  identify,
  identifyDirectory,
  identityFromStored,
  sameAcrossProcesses,
  sameWithinProcess,
  storedIdentity,
} from "./root-identity.js";
import type { RootIdentity } from "./root-identity.js";

let dir: string;
let root: CanonicalRoot;
let handle: Directory;
let recorded: RootIdentity;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  fs.mkdirSync(path.join(dir, "root"));
  root = canonicalPath(path.join(dir, "root"));
  handle = Directory.open(nodeFileSystem, root);
  recorded = identifyDirectory(nodeFileSystem, handle);
});
afterEach(() => {
  handle.close();
  fs.rmSync(dir, { recursive: true, force: true });
});

const check = (fileSystem: FileSystem = nodeFileSystem): unknown => {
  try {
    checkRoot(fileSystem, handle, root, recorded);
    return "ok";
  } catch (error) {
    return (error as { details?: unknown }).details ?? error;
  }
};

describe("the identity of a root", () => {
  test("is the same by path and by handle, and survives its stored form", () => {
    expect(identify(nodeFileSystem, root)).toEqual(recorded);
    const stored = storedIdentity(recorded);
    expect(identityFromStored(JSON.parse(JSON.stringify(stored)) as typeof stored)).toEqual(recorded);
  });

  test("stays when the tree in it changes", () => {
    fs.writeFileSync(path.join(root, "file"), "x");
    fs.chmodSync(root, 0o700);
    expect(check()).toBe("ok");
    expect(checkRecordedRoot(nodeFileSystem, root, recorded)).toMatchObject({ ino: recorded.ino, mode: 0o700 });
  });

  test("is none where no directory stands", () => {
    fs.writeFileSync(path.join(dir, "file"), "");
    fs.symlinkSync("root", path.join(dir, "link"));
    for (const name of ["file", "link", "nothing", "file/below"]) {
      expect(identify(nodeFileSystem, path.join(dir, name) as CanonicalRoot)).toBeUndefined();
    }
  });

  const base: RootIdentity = { dev: 1n, ino: 2n, birthtimeNs: 3n, mode: 0o755 };
  test.each<[string, Partial<RootIdentity>, boolean, boolean]>([
    ["nothing", {}, true, true],
    ["permission bits", { mode: 0o700 }, true, true],
    ["the device", { dev: 9n }, false, true],
    ["the inode", { ino: 9n }, false, false],
    ["the birth time", { birthtimeNs: 9n }, false, false],
    ["a birth time that is not known", { birthtimeNs: 0n }, true, true],
  ])("differing in %s alone: within a process %#", (_, change, within, across) => {
    const other = { ...base, ...change };
    expect([sameWithinProcess(base, other), sameWithinProcess(other, base)]).toEqual([within, within]);
    expect([sameAcrossProcesses(base, other), sameAcrossProcesses(other, base)]).toEqual([across, across]);
  });

  test("takes a birth time the file system does not keep as unknown, not as the year 1970", () => {
    const without: FileSystem = {
      ...nodeFileSystem,
      lstat: (path) => Object.assign(nodeFileSystem.lstat(path), { birthtimeNs: 0n }),
    };
    expect(identify(without, root)?.birthtimeNs).toBe(0n);
    expect(check(without)).toBe("ok");
  });
});

describe("a root that changed", () => {
  test("was moved: where it is now is told", () => {
    const elsewhere = path.join(fs.realpathSync.native(dir), "else where");
    fs.renameSync(root, elsewhere);
    expect(check()).toEqual({ root, state: "moved", movedTo: elsewhere });
  });

  test("was moved and another directory, file or link stands there: replaced, and where it is now is told", () => {
    const elsewhere = path.join(fs.realpathSync.native(dir), "elsewhere");
    fs.renameSync(root, elsewhere);
    const details = { root, state: "replaced", movedTo: elsewhere };
    fs.mkdirSync(root);
    expect(check()).toEqual(details);
    fs.rmdirSync(root);
    fs.writeFileSync(root, "");
    expect(check()).toEqual(details);
    fs.rmSync(root);
    fs.symlinkSync("elsewhere", root);
    expect(check()).toEqual(details);
  });

  test("was removed: missing", () => {
    fs.rmdirSync(root);
    expect(check()).toEqual({ root, state: "missing" });
  });

  test("was removed, and a directory bears the name the kernel shows for it: still missing", () => {
    fs.rmdirSync(root);
    fs.mkdirSync(`${root} (deleted)`);
    expect(check()).toEqual({ root, state: "missing" });
  });

  test("was removed and made again, even if the inode is the same: replaced", () => {
    // An inode that is given out again at once is the worst case; the birth time tells. The handle keeps it from
    // happening here, so the other directory is made to report our inode.
    fs.rmdirSync(root);
    fs.mkdirSync(root);
    const reused: FileSystem = {
      ...nodeFileSystem,
      lstat: (path) => Object.assign(nodeFileSystem.lstat(path), { ino: recorded.ino }),
    };
    expect(check(reused)).toMatchObject({ root, state: "replaced" });
  });

  test("is found changed at resume without a handle", () => {
    fs.renameSync(root, path.join(dir, "elsewhere"));
    expect(() => checkRecordedRoot(nodeFileSystem, root, recorded)).toThrow(
      expect.objectContaining({ code: "workspace_root.changed", details: { root, state: "missing" } }),
    );
    fs.mkdirSync(root);
    expect(() => checkRecordedRoot(nodeFileSystem, root, recorded)).toThrow(
      expect.objectContaining({ details: { root, state: "replaced" } }),
    );
  });
});
