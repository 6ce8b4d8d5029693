/** Rules of the state directory: who may own it, what may stand in it, and that a refusal changes nothing (B3, G4). */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileSystem } from "../core/index.js";
import { interceptFileSystem, nodeFileSystem } from "../core/index.js";
import { claimOf, refused } from "../storage/testing/conformance.js";
import { openLocalStorage } from "./open.js";

let parent: string;
let dir: string;
beforeEach(() => {
  parent = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
  dir = path.join(parent, "state");
});
afterEach(() => fs.rmSync(parent, { recursive: true, force: true }));

const bytes = (text: string): Uint8Array => Buffer.from(text);

/** Every path below `at` with its kind, mode and (for files) bytes. */
function picture(at: string): Record<string, string> {
  const seen: Record<string, string> = {};
  for (const name of fs.readdirSync(at, { recursive: true, encoding: "utf8" }).sort()) {
    const stats = fs.lstatSync(path.join(at, name));
    const mode = (stats.mode & 0o7777).toString(8);
    seen[name] = stats.isFile() ? `${mode} ${fs.readFileSync(path.join(at, name), "hex")}` : mode;
  }
  return seen;
}

const modes = (at: string): Record<string, string> =>
  Object.fromEntries(Object.entries(picture(at)).map(([name, shown]) => [name, shown.split(" ")[0] ?? ""]));

/** Opens, uses every part, and leaves it open. */
async function used() {
  const storage = await openLocalStorage({ dir });
  await storage.ledger.append("l", [bytes("1")], { expectedHead: 0, epoch: 1 });
  await storage.blobs.put("a/B/c", [bytes("1")]);
  await storage.leaser.acquire("n", claimOf("one"));
  return storage;
}

describe("modes", () => {
  test.each([0o000, 0o022, 0o077, 0o777])("directories are 0700 and files 0600 under umask %o", async (mask) => {
    const before = process.umask(mask);
    try {
      const storage = await used();
      const found = modes(dir);
      expect(Object.keys(found)).toEqual(
        expect.arrayContaining(["format", "state.db", "state.db-wal", "state.db-shm"]),
      );
      for (const [name, mode] of Object.entries(found)) {
        expect(`${name} ${mode}`).toBe(`${name} ${fs.statSync(path.join(dir, name)).isDirectory() ? "700" : "600"}`);
      }
      expect((fs.statSync(dir).mode & 0o777).toString(8)).toBe("700");
      await storage.close();
    } finally {
      process.umask(before);
    }
  });

  test("what was loosened since is tightened when it is opened again", async () => {
    await (await used()).close();
    fs.chmodSync(dir, 0o755);
    fs.chmodSync(path.join(dir, "state.db"), 0o644);
    fs.chmodSync(path.join(dir, "blobs"), 0o777);
    const storage = await openLocalStorage({ dir });
    expect(modes(dir)).toMatchObject({ "state.db": "600", blobs: "700" });
    expect((fs.statSync(dir).mode & 0o777).toString(8)).toBe("700");
    await storage.close();
  });
});

describe("refusals change nothing", () => {
  /** The real file system, on which the file bears another owner. */
  const ownedBy = (uid: bigint, file: string): FileSystem => ({
    ...nodeFileSystem,
    lstat: (at) => {
      const stats = nodeFileSystem.lstat(at);
      if (at === file) stats.uid = uid;
      return stats;
    },
  });

  test.each(["", "/state.db", "/blobs", "/leases"])("%s of another user", async (part) => {
    await (await used()).close();
    const before = picture(dir);
    await refused(openLocalStorage({ dir, fileSystem: ownedBy(4_000n, `${dir}${part}`) }), "storage.foreign_owner", {
      path: `${dir}${part}`,
      uid: 4_000,
    });
    expect(picture(dir)).toEqual(before);
  });

  test("a newer format", async () => {
    await (await used()).close();
    fs.chmodSync(dir, 0o755);
    fs.writeFileSync(path.join(dir, "format"), "looprig state directory, format 2\nand more\n");
    const before = picture(dir);
    await refused(openLocalStorage({ dir }), "storage.unsupported_version", { dir, found: 2, supported: 1 });
    expect(picture(dir)).toEqual(before);
    expect(fs.statSync(dir).mode & 0o777).toBe(0o755);
  });

  test("a network file system, before a directory is made", async () => {
    const nfs: FileSystem = {
      ...nodeFileSystem,
      statfs: (at) => Object.assign(nodeFileSystem.statfs(at), { type: 0x6969 }),
    };
    await refused(openLocalStorage({ dir, fileSystem: nfs }), "storage.network_file_system", { dir, type: "nfs" });
    expect(fs.existsSync(dir)).toBe(false);
    const storage = await openLocalStorage({ dir, fileSystem: nfs, allowNetworkFileSystem: true });
    await storage.close();
  });

  test("a directory that holds something else", async () => {
    fs.mkdirSync(dir, { mode: 0o755 });
    fs.writeFileSync(path.join(dir, "thesis.tex"), "years of work");
    const before = picture(dir);
    await refused(openLocalStorage({ dir }), "storage.not_a_store", { dir, entry: "thesis.tex" });
    expect(picture(dir)).toEqual(before);
    expect(fs.statSync(dir).mode & 0o777).toBe(0o755);
  });

  test.each(["state.db", "blobs"])("a store that lost its %s", async (part) => {
    await (await used()).close();
    fs.rmSync(path.join(dir, part), { recursive: true });
    const before = picture(dir);
    await refused(openLocalStorage({ dir }), "storage.damaged", { path: path.join(dir, part) });
    expect(picture(dir)).toEqual(before);
  });

  test("a format file or a database of garbage", async () => {
    await (await used()).close();
    const format = fs.readFileSync(path.join(dir, "format"));
    fs.writeFileSync(path.join(dir, "format"), "garbage");
    await refused(openLocalStorage({ dir }), "storage.damaged", { path: path.join(dir, "format") });
    fs.writeFileSync(path.join(dir, "format"), format);
    const garbage = Buffer.alloc(8192, "garbage ");
    fs.writeFileSync(path.join(dir, "state.db"), garbage);
    // What SQLite has not yet moved out of the log would still be read from there.
    for (const suffix of ["-wal", "-shm"]) fs.rmSync(path.join(dir, `state.db${suffix}`));
    await refused(openLocalStorage({ dir }), "storage.damaged", { path: path.join(dir, "state.db") });
    expect(fs.readFileSync(path.join(dir, "state.db")).equals(garbage)).toBe(true);
  });

  test.each(["", "   ", "a\0b"])("the directory %j", async (given) => {
    await refused(openLocalStorage({ dir: given }), "option.invalid", { field: "dir" });
  });

  test("an aborted signal", async () => {
    const reason = new Error("the test's reason");
    await expect(openLocalStorage({ dir, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(fs.existsSync(dir)).toBe(false);
  });
});

describe("first opening", () => {
  test("an empty directory is adopted, through a link too, and its canonical path is told", async () => {
    fs.mkdirSync(dir);
    fs.symlinkSync(dir, path.join(parent, "link"));
    const storage = await openLocalStorage({ dir: path.join(parent, "link") });
    expect(storage.persistencePaths()).toEqual([dir]);
    expect(storage.spoolDir).toBe(path.join(dir, "spool"));
    expect(storage.locality).toBe("local");
    await storage.close();
  });

  test("killed at any write, it is finished by the next", async () => {
    const effects = await countEffects();
    expect(effects).toBeGreaterThan(10);
    for (let last = 0; last < effects; last++) {
      fs.rmSync(dir, { recursive: true, force: true });
      await expect(openLocalStorage({ dir, fileSystem: dyingAfter(last) })).rejects.toBeInstanceOf(Killed);
      const storage = await openLocalStorage({ dir });
      await storage.kv.set("k", bytes("1"), { revision: 0 });
      await storage.close();
    }
  });

  class Killed extends Error {}

  /** Lets `count` effects through and fails this and every later call, as a killed process would make none. */
  function dyingAfter(count: number): FileSystem {
    let left = count;
    return interceptFileSystem(nodeFileSystem, (call) => {
      if (call.effect && left-- <= 0) left = -1;
      if (left < 0) throw new Killed(call.name);
    });
  }

  async function countEffects(): Promise<number> {
    let effects = 0;
    const counting = interceptFileSystem(nodeFileSystem, (call) => {
      if (call.effect) effects++;
    });
    await (await openLocalStorage({ dir, fileSystem: counting })).close();
    return effects;
  }

  test("old files that were never published are swept, young ones are left to their writers", async () => {
    await (await used()).close();
    const old = path.join(dir, "tmp", ".tmp-old");
    const young = path.join(dir, "tmp", ".tmp-young");
    for (const file of [old, young]) fs.writeFileSync(file, "x");
    const twoDaysAgo = new Date(Date.now() - 48 * 60 * 60 * 1000);
    fs.utimesSync(old, twoDaysAgo, twoDaysAgo);
    await (await openLocalStorage({ dir })).close();
    expect(fs.readdirSync(path.join(dir, "tmp"))).toEqual([".tmp-young"]);
  });
});

describe("a state directory that goes away while it is open", () => {
  const gone = async (take: () => void): Promise<void> => {
    const storage = await used();
    await storage.kv.set("k", bytes("1"), { revision: 0 });
    take();
    const left = fs.existsSync(dir) ? picture(dir) : undefined;
    await refused(storage.kv.get("k"), "storage.missing");
    await refused(storage.kv.set("k", bytes("2"), { revision: 1 }), "storage.missing");
    await refused(storage.ledger.append("l", [bytes("2")], { expectedHead: 1, epoch: 1 }), "storage.missing");
    await refused(storage.ledger.head("l"), "storage.missing");
    await refused(storage.blobs.get("a/B/c"), "storage.missing");
    await refused(storage.blobs.put("new", [bytes("1")]), "storage.missing");
    await refused(storage.blobs.stat("a/B/c"), "storage.missing");
    await refused(storage.leaser.acquire("m", claimOf("two")), "storage.missing");
    await refused(storage.leaser.inspect("n"), "storage.missing");
    expect(fs.existsSync(dir) ? picture(dir) : undefined).toEqual(left);
    await storage.close();
    expect(fs.existsSync(dir) ? picture(dir) : undefined).toEqual(left);
  };

  test("removed", () => gone(() => fs.rmSync(dir, { recursive: true })));
  test("moved away", () => gone(() => fs.renameSync(dir, path.join(parent, "moved"))));
  test("replaced by another store", async () => {
    const other = path.join(parent, "other");
    await (await openLocalStorage({ dir: other })).close();
    await gone(() => {
      fs.renameSync(dir, path.join(parent, "moved"));
      fs.renameSync(other, dir);
    });
  });
});
