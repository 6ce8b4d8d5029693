/** Full disks, busy and failing ones: what callers are told, and that nothing is half done. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FileSystem } from "../core/index.js";
import { interceptFileSystem, isLooprigError, nodeFileSystem } from "../core/index.js";
import { collect, refused } from "../storage/testing/conformance.js";
import { storageFailure } from "./failures.js";
import { openLocalStorage } from "./open.js";
import { openStateDatabase } from "./state-database.js";
import { prepareStateDirectory } from "./state-directory.js";
import { SqliteFailure, openSqlite } from "./sqlite.js";

let parent: string;
let dir: string;
beforeEach(() => {
  parent = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  dir = path.join(parent, "state");
});
afterEach(() => fs.rmSync(parent, { recursive: true, force: true }));

const bytes = (text: string): Uint8Array => Buffer.from(text);
const filesIn = (at: string): string[] =>
  fs.readdirSync(at, { recursive: true, encoding: "utf8" }).filter((name) => fs.statSync(path.join(at, name)).isFile());

/** Fails the effect number `at` of the calls made while it is armed, with this code. */
function failing(code: string) {
  let left = -1;
  let fired = false;
  const fileSystem: FileSystem = interceptFileSystem(nodeFileSystem, (call) => {
    if (left < 0 || !call.effect || left-- > 0) return;
    fired = true;
    throw Object.assign(new Error(`injected at ${call.name}`), { code });
  });
  return {
    fileSystem,
    arm(at: number): void {
      left = at;
      fired = false;
    },
    disarm(): boolean {
      left = -1;
      return fired;
    },
  };
}

describe("putting a blob", () => {
  test.each([
    ["ENOSPC", "storage.full"],
    ["EDQUOT", "storage.full"],
    ["EIO", "storage.failed"],
  ] as const)("%s at any write is told, leaves no half blob, and the same call succeeds later", async (errno, code) => {
    const faults = failing(errno);
    const storage = await openLocalStorage({ dir, fileSystem: faults.fileSystem });
    for (let at = 0; ; at++) {
      const key = `some/where/${at}/blob`;
      faults.arm(at);
      const outcome: unknown = await storage.blobs.put(key, [bytes("whole")]).catch((error: unknown) => error);
      // The last effect, the removal of the temporary name, may fail without consequence.
      if (!faults.disarm()) break;
      if (outcome !== true) expect(isLooprigError(outcome, code)).toBe(true);
      expect(await storage.blobs.put(key, [bytes("whole")])).toBeTypeOf("boolean");
      expect(Buffer.from(await storage.blobs.get(key)).toString()).toBe("whole");
      expect(at).toBeLessThan(40);
    }
    await storage.close();
  });

  test("a failed put leaves nothing in the temporary directory", async () => {
    const faults = failing("ENOSPC");
    const storage = await openLocalStorage({ dir, fileSystem: faults.fileSystem });
    await storage.blobs.put("first", [bytes("1")]);
    // Effects of a put: open, fchmod, write, fsync, link, unlink.
    for (const at of [1, 2, 3, 4]) {
      faults.arm(at);
      await refused(storage.blobs.put("b", [bytes("1")]), "storage.full");
      expect(faults.disarm()).toBe(true);
      expect(filesIn(path.join(dir, "tmp"))).toEqual([]);
      expect(filesIn(path.join(dir, "blobs"))).toEqual(["@first"]);
    }
    await storage.close();
  });

  test("an abort in the middle of a large one leaves nothing", async () => {
    const controller = new AbortController();
    const reason = new Error("the test's reason");
    let writes = 0;
    const storage = await openLocalStorage({
      dir,
      fileSystem: interceptFileSystem(nodeFileSystem, (call) => {
        if (call.name === "write" && ++writes === 3) controller.abort(reason);
      }),
    });
    writes = 0;
    const putting = storage.blobs.put("b", [new Uint8Array(8 * 1024 * 1024)], { signal: controller.signal });
    await expect(putting).rejects.toBe(reason);
    expect(filesIn(path.join(dir, "tmp"))).toEqual([]);
    expect(await storage.blobs.stat("b")).toBeUndefined();
    await storage.close();
  });

  test("a file that is no blob is not listed", async () => {
    const storage = await openLocalStorage({ dir });
    await storage.blobs.put("a/b", [bytes("1")]);
    fs.writeFileSync(path.join(dir, "blobs", "a", ".DS_Store"), "x");
    fs.writeFileSync(path.join(dir, "blobs", "note"), "x");
    expect(await collect(storage.blobs.list(""))).toEqual([{ key: "a/b", size: 1 }]);
    await storage.close();
  });
});

describe("a full disk below SQLite", () => {
  // A file system of our own fills up for SQLite itself, which writes past the seam.
  const mounted = (at: string): boolean => {
    try {
      fs.mkdirSync(at);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", at], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };

  test("an append that does not fit adds nothing, is told, and fits after space was made", async (context) => {
    const disk = path.join(parent, "disk");
    if (!mounted(disk)) context.skip("this machine does not let the test mount a tmpfs");
    try {
      const storage = await openLocalStorage({ dir: path.join(disk, "state") });
      const ballast = path.join(disk, "ballast");
      fs.writeFileSync(ballast, Buffer.alloc(400 * 1024));
      const body = Buffer.alloc(16 * 1024, "x");
      let head = 0;
      let refusal: unknown;
      while (refusal === undefined && head < 1_000) {
        await storage.ledger.append("l", [body], { expectedHead: head, epoch: 1 }).then(
          (next) => (head = next),
          (error: unknown) => (refusal = error),
        );
      }
      expect(isLooprigError(refusal, "storage.full") && refusal.retryable).toBe(true);
      await refused(storage.blobs.put("b", [Buffer.alloc(512 * 1024)]), "storage.full");
      expect(await storage.blobs.stat("b")).toBeUndefined();
      expect(await storage.ledger.head("l")).toBe(head);
      expect(await collect(storage.ledger.read("l"))).toHaveLength(head);
      fs.rmSync(ballast);
      expect(await storage.ledger.append("l", [body], { expectedHead: head, epoch: 1 })).toBe(head + 1);
      await storage.close();
      const again = await openLocalStorage({ dir: path.join(disk, "state") });
      expect(await collect(again.ledger.read("l"))).toHaveLength(head + 1);
      await again.close();
    } finally {
      // The driver lets go of its files when its statements are collected.
      execFileSync("umount", ["-l", disk]);
    }
  });
});

describe("a database that stays locked", () => {
  const openBusy = async (busyMs: number) => {
    const directory = prepareStateDirectory(nodeFileSystem, dir, {
      allowNetworkFileSystem: false,
      uid: process.geteuid?.(),
      platform: process.platform,
    });
    return openStateDatabase(nodeFileSystem, directory, { busyMs });
  };

  test("is waited for without holding the event loop", async () => {
    const database = await openBusy(1_000_000);
    const other = openSqlite(path.join(dir, "state.db"));
    other.exec("BEGIN IMMEDIATE");
    const writing = database.write("kv.set", undefined, () => "written");
    // A wait inside SQLite would never let this timer run, and the lock would never be given back.
    setTimeout(() => other.exec("ROLLBACK"), 1);
    expect(await writing).toBe("written");
    other.close();
    database.close();
  });

  test("is told as busy in the end, to be repeated; reading goes on meanwhile", async () => {
    const database = await openBusy(5);
    const other = openSqlite(path.join(dir, "state.db"));
    other.exec("BEGIN IMMEDIATE");
    const writing = database.write("kv.set", undefined, () => undefined);
    await expect(writing).rejects.toMatchObject({ code: "storage.busy", retryable: true });
    expect(await database.read("kv.get", undefined, (sql) => sql.rows("SELECT 1")[0])).toEqual([1]);
    other.exec("ROLLBACK");
    expect(await database.write("kv.set", undefined, () => "written")).toBe("written");
    other.close();
    database.close();
  });

  test("an abort ends the wait at once", async () => {
    const database = await openBusy(1_000_000);
    const other = openSqlite(path.join(dir, "state.db"));
    other.exec("BEGIN IMMEDIATE");
    const controller = new AbortController();
    const writing = database.write("kv.set", controller.signal, () => undefined);
    controller.abort(new Error("the test's reason"));
    await expect(writing).rejects.toBe(controller.signal.reason);
    other.close();
    database.close();
  });

  test("a body that throws leaves nothing of its transaction", async () => {
    const database = await openBusy(1_000);
    const writing = database.write("kv.set", undefined, (sql) => {
      sql.run("INSERT INTO kv (key, revision) VALUES (?, 1)", ["k"]);
      throw new Error("the test's error");
    });
    await expect(writing).rejects.toThrow("the test's error");
    expect(await database.read("kv.get", undefined, (sql) => sql.rows("SELECT * FROM kv"))).toEqual([]);
    database.close();
  });
});

describe("what the system says", () => {
  test.each([
    ["full", "storage.full"],
    ["damaged", "storage.damaged"],
    ["busy", "storage.busy"],
    ["io", "storage.failed"],
    ["other", "storage.failed"],
  ] as const)("SQLite's %s is %s", (kind, code) => {
    const failure = storageFailure(new SqliteFailure(kind, "SQLITE_X", undefined), "kv.get", parent, nodeFileSystem);
    expect(isLooprigError(failure, code)).toBe(true);
  });

  test("an I/O error on a disk without space is a full disk", () => {
    const full: FileSystem = {
      ...nodeFileSystem,
      statfs: (at) => Object.assign(nodeFileSystem.statfs(at), { bavail: 0 }),
    };
    expect(
      isLooprigError(
        storageFailure(new SqliteFailure("io", "SQLITE_IOERR_SHMSIZE", undefined), "x", parent, full),
        "storage.full",
      ),
    ).toBe(true);
  });

  test("errors that are not the system's pass unchanged", () => {
    const bug = new TypeError("a bug");
    expect(storageFailure(bug, "kv.get", parent, nodeFileSystem)).toBe(bug);
  });

  test("a damaged value is found when it is read", async () => {
    const storage = await openLocalStorage({ dir });
    await storage.kv.set("k", bytes("value"), { revision: 0 });
    const sql = openSqlite(path.join(dir, "state.db"));
    sql.exec("UPDATE kv SET value = CAST('Value' AS BLOB)");
    sql.close();
    await refused(storage.kv.get("k"), "storage.damaged");
    await refused(storage.kv.list(""), "storage.damaged");
    await storage.close();
  });

  test("a record that is missing in the middle, or moved, is damage (G1)", async () => {
    const storage = await openLocalStorage({ dir });
    const bodies = ["1", "2", "3", "4", "5"].map(bytes);
    await storage.ledger.append("l", bodies, { expectedHead: 0, epoch: 1 });
    const sql = openSqlite(path.join(dir, "state.db"));
    sql.exec("DELETE FROM records WHERE seq = 3");
    await refused(collect(storage.ledger.read("l")), "ledger.damaged", { seq: 3 });
    sql.exec("UPDATE records SET seq = 3 WHERE seq = 4");
    await refused(collect(storage.ledger.read("l")), "ledger.damaged", { seq: 3 });
    sql.exec("DELETE FROM records WHERE seq >= 3");
    await refused(collect(storage.ledger.read("l")), "ledger.damaged", { seq: 3 });
    sql.close();
    await storage.close();
  });
});
