import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { publishNoReplace, temporaryPrefix, writeAll, writeFileAtomic } from "./atomic-file.js";
import { interceptFileSystem, nodeFileSystem } from "./file-system.js";
import type { FileSystem } from "./file-system.js";

let dir: string;
beforeEach(() => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const chunks = [Buffer.from("new "), Buffer.from("bytes")];
const openDescriptors = (): number => fs.readdirSync("/proc/self/fd").length;

/** Fails the call of that number; `calls` is how many there were. */
function failing(at: number): { fileSystem: FileSystem; calls: string[] } {
  const calls: string[] = [];
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
    calls.push(name);
    // A descriptor is gone even if closing it reports an error, so `close` is left to work.
    if (calls.length - 1 === at && name !== "close") throw Object.assign(new Error("injected"), { code: "EIO" });
  });
  return { fileSystem, calls };
}

function callsOf(write: (fileSystem: FileSystem, file: string) => unknown): number {
  const { fileSystem, calls } = failing(-1);
  write(fileSystem, path.join(dir, "counted"));
  fs.rmSync(path.join(dir, "counted"));
  return calls.length;
}

const read = (file: string): string | undefined => (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined);

describe("an atomic write", () => {
  test("replaces the file whole, with the mode asked for", () => {
    const file = path.join(dir, "file");
    fs.writeFileSync(file, "old", { mode: 0o644 });
    writeFileAtomic(nodeFileSystem, file, chunks);
    expect(read(file)).toBe("new bytes");
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    writeFileAtomic(nodeFileSystem, file, [], { mode: 0o400 });
    expect(read(file)).toBe("");
    expect(fs.statSync(file).mode & 0o777).toBe(0o400);
    expect(fs.readdirSync(dir)).toEqual(["file"]);
  });

  test("replaces a link, never what it points to", () => {
    fs.writeFileSync(path.join(dir, "target"), "target");
    fs.symlinkSync("target", path.join(dir, "link"));
    writeFileAtomic(nodeFileSystem, path.join(dir, "link"), chunks);
    expect(read(path.join(dir, "target"))).toBe("target");
    expect(fs.lstatSync(path.join(dir, "link")).isFile()).toBe(true);
  });

  test("that fails at any call leaves the old file or the new one, nothing else, and no descriptor", () => {
    const file = path.join(dir, "file");
    const total = callsOf((fileSystem, counted) => writeFileAtomic(fileSystem, counted, chunks));
    expect(total).toBeGreaterThan(6);
    const outcomes = new Set<string | undefined>();
    for (let at = 0; at < total; at++) {
      fs.writeFileSync(file, "old");
      const descriptors = openDescriptors();
      const { fileSystem, calls } = failing(at);
      try {
        writeFileAtomic(fileSystem, file, chunks);
        // The one call that is not failed.
        expect(calls[at]).toBe("close");
      } catch (error) {
        expect(error).toMatchObject({ message: "injected" });
      }
      expect(["old", "new bytes"]).toContain(read(file));
      outcomes.add(read(file));
      expect(fs.readdirSync(dir)).toEqual(["file"]);
      expect(openDescriptors()).toBe(descriptors);
    }
    expect(outcomes).toEqual(new Set(["old", "new bytes"]));
  });

  test("whose temporary cannot be removed leaves it under the prefix that is swept, and reports the first error", () => {
    const broken = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name === "rename") throw new Error("first");
      if (name === "unlink") throw new Error("second");
    });
    expect(() => writeFileAtomic(broken, path.join(dir, "file"), chunks)).toThrow("first");
    const left = fs.readdirSync(dir);
    expect(left).toHaveLength(1);
    expect(left[0]?.startsWith(temporaryPrefix)).toBe(true);
  });

  test("syncs the file before its name changes and the directory after, unless it need not last", () => {
    const { fileSystem, calls } = failing(-1);
    writeFileAtomic(fileSystem, path.join(dir, "file"), chunks);
    const firstSync = calls.indexOf("fsync");
    const rename = calls.indexOf("rename");
    expect(firstSync).toBeGreaterThan(calls.lastIndexOf("write"));
    expect(rename).toBeGreaterThan(firstSync);
    expect(calls.lastIndexOf("fsync")).toBeGreaterThan(rename);
    const cache = failing(-1);
    writeFileAtomic(cache.fileSystem, path.join(dir, "cache"), chunks, { durable: false });
    expect(cache.calls).not.toContain("fsync");
  });

  test("goes on where the directory cannot be synced at all", () => {
    let syncs = 0;
    const fileSystem = interceptFileSystem(nodeFileSystem, ({ name }) => {
      if (name === "fsync" && ++syncs === 2) throw Object.assign(new Error("no"), { code: "EINVAL" });
    });
    writeFileAtomic(fileSystem, path.join(dir, "file"), chunks);
    expect(read(path.join(dir, "file"))).toBe("new bytes");
    expect(syncs).toBe(2);
  });

  test("goes on after short writes until all bytes are there", () => {
    const drops: FileSystem = {
      ...nodeFileSystem,
      write: (fd, buffer, offset, length, position) =>
        nodeFileSystem.write(fd, buffer, offset, Math.min(length, 2), position),
    };
    writeFileAtomic(drops, path.join(dir, "file"), chunks);
    expect(read(path.join(dir, "file"))).toBe("new bytes");
    const fd = fs.openSync(path.join(dir, "more"), "w");
    writeAll(drops, fd, Buffer.from("12345"));
    fs.closeSync(fd);
    expect(read(path.join(dir, "more"))).toBe("12345");
  });

  test("keeps names that are not UTF-8", () => {
    writeFileAtomic(nodeFileSystem, `${dir}/bad\udcff`, chunks);
    const [name] = fs.readdirSync(dir, { encoding: "buffer" });
    expect(name).toEqual(Buffer.concat([Buffer.from("bad"), Buffer.of(0xff)]));
  });
});

describe("a publication that must not replace", () => {
  test("creates the file once; whatever has the name stays", () => {
    const file = path.join(dir, "file");
    expect(publishNoReplace(nodeFileSystem, file, chunks)).toBe(true);
    expect(publishNoReplace(nodeFileSystem, file, [Buffer.from("other")])).toBe(false);
    expect(read(file)).toBe("new bytes");
    fs.symlinkSync("nowhere", path.join(dir, "link"));
    expect(publishNoReplace(nodeFileSystem, path.join(dir, "link"), chunks)).toBe(false);
    fs.mkdirSync(path.join(dir, "directory"));
    expect(publishNoReplace(nodeFileSystem, path.join(dir, "directory"), chunks)).toBe(false);
    expect(fs.readdirSync(dir).sort()).toEqual(["directory", "file", "link"]);
    expect(fs.statSync(file).nlink).toBe(1);
  });

  test("that fails at any call leaves the whole file or none", () => {
    const file = path.join(dir, "file");
    const total = callsOf((fileSystem, counted) => publishNoReplace(fileSystem, counted, chunks));
    for (let at = 0; at < total; at++) {
      const { fileSystem, calls } = failing(at);
      try {
        expect(publishNoReplace(fileSystem, file, chunks)).toBe(true);
        // Closing was not failed; and a temporary that cannot be removed is swept later.
        expect(["close", "unlink"]).toContain(calls[at]);
      } catch (error) {
        expect(error).toMatchObject({ message: "injected" });
      }
      expect([undefined, "new bytes"]).toContain(read(file));
      const others = fs.readdirSync(dir).filter((name) => name !== "file");
      expect(others.every((name) => calls[at] === "unlink" && name.startsWith(temporaryPrefix))).toBe(true);
      for (const name of fs.readdirSync(dir)) fs.rmSync(path.join(dir, name));
    }
  });
});
