/** What the leases of local storage add to the contract: the registry, the record's two copies, and the vanished lock file. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { interceptFileSystem, isLooprigError, nodeFileSystem, sha256Hex } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { claimOf, refused } from "../storage/testing/conformance.js";
import { leaseRegistry } from "./lease-registry.js";
import { openLocalStorage } from "./open.js";
import { openSqlite } from "./sqlite.js";

let parent: string;
let dir: string;
let storage: Storage;
beforeEach(async () => {
  parent = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  dir = path.join(parent, "state");
  storage = await openLocalStorage({ dir });
});
afterEach(async () => {
  await storage.close();
  fs.rmSync(parent, { recursive: true, force: true });
});

const fileOf = (name: string, suffix: string): string => path.join(dir, "leases", `${sha256Hex(name)}.${suffix}`);
const epochAfter = async (): Promise<number> => {
  const lease = await storage.leaser.acquire("n", claimOf("again"));
  await lease.release();
  return lease.epoch;
};
const inDatabase = (sql: string): void => {
  const database = openSqlite(path.join(dir, "state.db"));
  database.exec(sql);
  database.close();
};

test("the lock file stays empty and alone, and the record is a file beside it", async () => {
  const claim = claimOf("one", "/the/root");
  const lease = await storage.leaser.acquire("n", claim);
  expect(fs.statSync(fileOf("n", "lock")).size).toBe(0);
  expect(fs.readdirSync(path.join(dir, "leases")).sort()).toEqual(
    [fileOf("n", "json"), fileOf("n", "lock")].map((file) => path.basename(file)).sort(),
  );
  expect(JSON.parse(fs.readFileSync(fileOf("n", "json"), "utf8"))).toMatchObject({
    name: "n",
    subject: "/the/root",
    sessionId: claim.sessionId,
    command: "one",
    pid: process.pid,
    epoch: lease.epoch,
  });
  await lease.release();
  expect(fs.existsSync(fileOf("n", "lock"))).toBe(true);
});

test.each([
  ["the file is deleted", () => fs.rmSync(fileOf("n", "json"))],
  ["the file is garbled", () => fs.writeFileSync(fileOf("n", "json"), '{"name":"n","epoch":')],
  [
    "the file says less",
    () =>
      fs.writeFileSync(
        fileOf("n", "json"),
        fs.readFileSync(fileOf("n", "json"), "utf8").replace(/"epoch":\d+/, '"epoch":1'),
      ),
  ],
  ["the row is deleted", () => inDatabase("DELETE FROM leases")],
  ["the row says less", () => inDatabase("UPDATE leases SET epoch = 1, record = NULL")],
])("the epoch goes on when %s", async (_, lose) => {
  for (let i = 1; i <= 3; i++) expect(await epochAfter()).toBe(i);
  lose();
  expect(await epochAfter()).toBe(4);
});

test("an acquisition that dies between any two writes leaves the lease free and the epoch growing", async () => {
  let last = await epochAfter();
  for (let effect = 0; effect < 40; effect++) {
    let left = effect;
    const failing = interceptFileSystem(nodeFileSystem, (call) => {
      if (call.effect && left-- === 0) throw Object.assign(new Error("injected"), { code: "EIO" });
    });
    const through = await openLocalStorage({ dir, fileSystem: failing }).catch(() => undefined);
    const lease = await through?.leaser.acquire("n", claimOf("failing")).catch((error: unknown) => {
      expect(isLooprigError(error, "storage.failed")).toBe(true);
      return undefined;
    });
    await through?.close();
    if (lease !== undefined) expect(lease.epoch).toBeGreaterThan(last);
    const next = await epochAfter();
    expect(next).toBeGreaterThan(lease?.epoch ?? last);
    last = next;
    if (left >= 0) return;
  }
  throw new Error("the last effect of an acquisition was never reached");
});

test("a second storage of this process, and a duplicate install, are answered from the registry without opening the lock file", async () => {
  await storage.leaser.acquire("n", claimOf("one"));
  const opened: unknown[] = [];
  const watching = interceptFileSystem(nodeFileSystem, (call) => {
    if (call.name === "open") opened.push(call.args[0]);
  });
  const second = await openLocalStorage({ dir, fileSystem: watching });
  await refused(second.leaser.acquire("n", claimOf("two")), "lease.held", { name: "n" });
  expect((await second.leaser.inspect("n"))?.holder.command).toBe("one");
  await second.close();
  expect(opened).not.toContain(fileOf("n", "lock"));
  expect(leaseRegistry()).toBe((globalThis as Record<symbol, unknown>)[Symbol.for("looprig.local-leases")]);
  const { dev, ino } = fs.statSync(fileOf("n", "lock"), { bigint: true });
  expect(leaseRegistry().get(`${dev}:${ino}`)?.info?.holder.command).toBe("one");
});

test("a lease whose lock file is removed or replaced is lost, and says so when it is looked at", async () => {
  for (const take of [
    (file: string) => fs.rmSync(file),
    (file: string) => {
      fs.writeFileSync(`${file}.new`, "");
      fs.renameSync(`${file}.new`, file);
    },
  ]) {
    const lease = await storage.leaser.acquire("n", claimOf("one"));
    lease.assertHeld();
    take(fileOf("n", "lock"));
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: "lease.lost" }));
    expect(lease.lost.aborted).toBe(true);
    expect(isLooprigError(lease.lost.reason, "lease.lost")).toBe(true);
    const next = await storage.leaser.acquire("n", claimOf("two"));
    expect(next.epoch).toBeGreaterThan(lease.epoch);
    await lease.release();
    next.assertHeld();
    await next.release();
  }
});

test("a holder that never asks is told of its loss by the watch", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const lease = await storage.leaser.acquire("n", claimOf("one"));
    vi.advanceTimersByTime(60_000);
    expect(lease.lost.aborted).toBe(false);
    fs.rmSync(dir, { recursive: true });
    vi.advanceTimersByTime(60_000);
    expect(lease.lost.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(1);
    await lease.release();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test("an aborted acquisition of a lease that is being tried frees what it got", async () => {
  const controller = new AbortController();
  const acquiring = storage.leaser.acquire("n", claimOf("one"), { signal: controller.signal });
  controller.abort(new Error("the test's reason"));
  await expect(acquiring).rejects.toBe(controller.signal.reason);
  expect(leaseRegistry().size).toBe(0);
  expect(await storage.leaser.list("")).toEqual([]);
  await storage.leaser.acquire("n", claimOf("two"));
});

test("a held lease whose row is garbled is never called free", async () => {
  await storage.leaser.acquire("other", claimOf("one"));
  inDatabase("UPDATE leases SET record = '{'");
  await refused(storage.leaser.inspect("other"), "storage.damaged");
  await refused(storage.leaser.list(""), "storage.damaged");
});

test("an acquisition that meets a probe, which holds nothing, tries again", async () => {
  await epochAfter();
  const probe = openSqlite(fileOf("n", "lock"));
  probe.exec("BEGIN");
  probe.rows("PRAGMA schema_version");
  setTimeout(() => probe.close(), 1);
  (await storage.leaser.acquire("n", claimOf("one"))).assertHeld();
});

test("a dead holder is not believed because of one who is trying", async () => {
  await storage.leaser.acquire("n", claimOf("dead"));
  const record = fs.readFileSync(fileOf("n", "json"), "utf8");
  await storage.close();
  storage = await openLocalStorage({ dir });
  inDatabase(`UPDATE leases SET record = '${record}'`);
  expect(await storage.leaser.inspect("n")).toBeUndefined();
  const trying = openSqlite(fileOf("n", "lock"));
  trying.exec("BEGIN EXCLUSIVE");
  // Due before the second look, whose wait is longer and begins later.
  setTimeout(() => trying.close(), 1);
  expect(await storage.leaser.inspect("n")).toBeUndefined();
  expect(await storage.leaser.list("")).toEqual([]);
});
