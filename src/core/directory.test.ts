import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Directory, openBelow } from "./directory.js";
import { interceptFileSystem, isMissing, nodeFileSystem } from "./file-system.js";
import { isLooprigError } from "./errors.js";
import { nameToBytes } from "./names.js";
import type { WorkspacePath } from "./workspace-path.js";

let dir: string;
let root: Directory;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  fs.mkdirSync(path.join(dir, "root/a/b"), { recursive: true });
  fs.mkdirSync(path.join(dir, "outside/b"), { recursive: true });
  root = Directory.open(nodeFileSystem, path.join(dir, "root"));
});
afterEach(() => {
  root.close();
  // Unlike Node's own removal, it descends by handles and so reaches paths of any length.
  execFileSync("rm", ["-rf", dir]);
});

const at = (text: string): WorkspacePath => text as WorkspacePath;
const openDescriptors = (): number => fs.readdirSync("/proc/self/fd").length;

function write(directory: Directory, name: string): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  fs.closeSync(fs.openSync(directory.at(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
}

describe("a directory held open", () => {
  test("lists, looks at and reaches what is in it, wherever it is moved", () => {
    using a = openBelow(root, at("a"));
    fs.renameSync(path.join(dir, "root/a"), path.join(dir, "moved"));
    fs.symlinkSync("../outside", path.join(dir, "root/a"));
    write(a, "new");
    expect(a.names().sort()).toEqual(["b", "new"]);
    expect(a.lstat("new").isFile()).toBe(true);
    expect(a.currentPath()).toBe(path.join(dir, "moved"));
    expect(fs.readdirSync(path.join(dir, "outside"))).toEqual(["b"]);
    const { dev, ino } = fs.statSync(path.join(dir, "moved"), { bigint: true });
    expect([a.dev, a.ino]).toEqual([dev, ino]);
    a.sync();
  });

  test("is not opened through a link, nor below one", () => {
    fs.symlinkSync("../outside", path.join(dir, "root/link"));
    fs.symlinkSync("nowhere", path.join(dir, "root/dangling"));
    fs.symlinkSync("loop", path.join(dir, "root/loop"));
    fs.writeFileSync(path.join(dir, "root/file"), "");
    for (const name of ["link", "link/b", "dangling", "loop/x"]) {
      expect(() => openBelow(root, at(name))).toThrow(expect.objectContaining({ code: "path.escapes" }));
    }
    expect(() => openBelow(root, at("none/x"))).toThrow(expect.objectContaining({ code: "ENOENT" }));
    expect(() => openBelow(root, at("file/x"))).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
  });

  test("takes names, never paths that lead out of it", () => {
    for (const name of ["", "..", "a/b", "../outside", "/etc"]) {
      expect(() => root.at(name)).toThrow(/BUG/);
    }
  });

  test("closes once, and nothing it opened stays open", () => {
    const before = openDescriptors();
    const a = openBelow(root, at("a/b"));
    a.close();
    a[Symbol.dispose]();
    openBelow(root, at("")).close();
    expect(() => openBelow(root, at("a/none/x"))).toThrow();
    const failing = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name === "fstat") throw new Error("injected");
    });
    expect(() => Directory.open(failing, dir)).toThrow("injected");
    expect(openDescriptors()).toBe(before);
  });
});

describe("names and paths of every kind", () => {
  test("a name that is not UTF-8 is listed, reached and made", () => {
    const name = "bad\udcff";
    fs.mkdirSync(Buffer.concat([Buffer.from(`${dir}/root/`), nameToBytes(name)]));
    fs.mkdirSync(`${dir}/root/really\ufffd`);
    expect(root.names().sort()).toEqual(["a", name, "really\ufffd"].sort());
    using child = openBelow(root, at(name));
    write(child, "in\udcfe");
    expect(child.names()).toEqual(["in\udcfe"]);
    expect(child.currentPath()).toBe(`${dir}/root/${name}`);
  });

  test("a path longer than the system takes in one call is opened all the same", () => {
    const name = "n".repeat(200);
    let current = root.child(".");
    for (let depth = 0; depth < 30; depth++) {
      fs.mkdirSync(current.at(name));
      const next = current.child(name);
      current.close();
      current = next;
    }
    write(current, "bottom");
    current.close();
    const long = Array.from({ length: 30 }, () => name).join("/");
    expect(long.length).toBeGreaterThan(4096);
    expect(() => fs.readdirSync(`${dir}/root/${long}`)).toThrow(/ENAMETOOLONG/);
    using bottom = openBelow(root, at(long));
    expect(bottom.names()).toEqual(["bottom"]);
  });
});

test("nothing lands outside while a component is swapped for a link between any two steps", () => {
  const component = path.join(dir, "root/a");
  const aside = path.join(dir, "aside");
  const swapIn = (): void => {
    fs.renameSync(component, aside);
    fs.symlinkSync("../outside", component);
  };
  const swapBack = (): void => {
    fs.rmSync(component);
    fs.renameSync(aside, component);
  };
  let swaps = 0;
  const outcomes = new Set<string>();
  for (let at1 = 0; at1 < 12; at1++) {
    for (let at2 = at1; at2 < 12; at2++) {
      let calls = 0;
      const link = { stands: false };
      // In at one call, back at a later one: the link stands there for that stretch of calls.
      const hostile = interceptFileSystem(nodeFileSystem, () => {
        if (calls === at1) {
          swapIn();
          link.stands = true;
          swaps++;
        } else if (calls === at2 && link.stands) {
          swapBack();
          link.stands = false;
        }
        calls++;
      });
      const name = `file-${at1}-${at2}`;
      try {
        using start = Directory.open(hostile, path.join(dir, "root"));
        using target = openBelow(start, at("a/b"));
        hostile.lstat(target.self());
        hostile.symlink("made", target.at(name));
        hostile.lstat(target.at(name));
        outcomes.add("made");
      } catch (error) {
        if (!isLooprigError(error, "path.escapes") && !isMissing(error)) throw error;
        outcomes.add("refused");
      }
      if (link.stands) swapBack();
      expect(fs.readdirSync(path.join(dir, "outside"))).toEqual(["b"]);
      expect(fs.readdirSync(path.join(dir, "outside/b"))).toEqual([]);
    }
  }
  expect(swaps).toBeGreaterThan(50);
  expect(outcomes).toEqual(new Set(["made", "refused"]));
});
