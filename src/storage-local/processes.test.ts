/**
 * Many processes on one state directory, some of them killed or stopped: no update is lost, every lease has one holder at a
 * time, and a dead holder's lease is free (G4; cases C036, C075, C090).
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isLooprigError } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { claimOf, collect, refused, text } from "../storage/testing/conformance.js";
import { startProcess } from "../../tests/processes.js";
import type { TestProcess } from "../../tests/processes.js";
import { openLocalStorage } from "./open.js";

let parent: string;
let dir: string;
let storage: Storage;
const children: TestProcess[] = [];
beforeEach(async () => {
  parent = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
  dir = path.join(parent, "state");
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.ended;
  }
  await storage.close();
  fs.rmSync(parent, { recursive: true, force: true });
});

function start(...args: readonly string[]): TestProcess {
  const child = startProcess("tests/processes/storage.ts", [dir, ...args]);
  children.push(child);
  return child;
}
const eight = (...args: readonly string[]): TestProcess[] => Array.from({ length: 8 }, () => start(...args));

async function lines(child: TestProcess): Promise<readonly string[]> {
  const ended = await child.ended;
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  return ended.lines;
}

describe("eight processes that open a directory which is not there yet", () => {
  test("append to one ledger: every record is there once, in its writer's order, at the place it was told", async () => {
    const count = 12;
    const writers = Array.from({ length: 8 }, (_, i) => start("append", "l", `w${i}`, `${count}`));
    const told = await Promise.all(writers.map(lines));
    storage = await openLocalStorage({ dir });
    const records = await collect(storage.ledger.read("l"));
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 8 * count }, (_, i) => i + 1));
    const at = new Map(records.map(({ seq, body }) => [text(body), seq]));
    expect(at.size).toBe(8 * count);
    told.forEach((heads, i) => {
      expect(heads.map((_, n) => at.get(`w${i} ${n}`))).toEqual(heads.map(Number));
    });
  });

  test("put one blob: one creates it, and it is whole", async () => {
    const size = 3 * 1024 * 1024;
    const created = (await Promise.all(eight("put", "a/b", `${size}`).map(lines))).flat();
    expect(created.filter((line) => line === "true")).toHaveLength(1);
    expect(created).toHaveLength(8);
    storage = await openLocalStorage({ dir });
    const bytes = Buffer.from(await storage.blobs.get("a/b"));
    expect(bytes.length).toBe(size);
    expect(bytes.equals(Buffer.alloc(size, bytes[0]))).toBe(true);
    expect(fs.readdirSync(path.join(dir, "tmp"))).toEqual([]);
  });
});

test("C090: increments of one value by eight processes, some killed in the middle, lose nothing that was acknowledged", async () => {
  // Every second one is killed after a different number of acknowledgements, and would never end by itself.
  const workers = Array.from({ length: 8 }, (_, i) => start("increment", "k", i % 2 === 1 ? "1000000" : "40"));
  const killed = workers.filter((_, i) => i % 2 === 1);
  await Promise.all(
    killed.map(async (worker, i) => {
      for (let n = 0; n < 5 + 7 * i; n++) await worker.line();
      worker.kill("SIGKILL");
    }),
  );
  const ends = await Promise.all(workers.map((worker) => worker.ended));
  expect(ends.map((end) => end.signal).filter((signal) => signal === "SIGKILL")).toHaveLength(killed.length);
  const heard = killed.reduce((sum, _, i) => sum + 5 + 7 * i, 0);
  const acknowledged = heard + ends.reduce((sum, end) => sum + end.lines.length, 0);
  storage = await openLocalStorage({ dir });
  const value = Number(Buffer.from((await storage.kv.get("k"))?.value ?? []).toString());
  // A process killed after a commit and before its line is the only difference there may be.
  expect(value).toBeGreaterThanOrEqual(acknowledged);
  expect(value).toBeLessThanOrEqual(acknowledged + killed.length);
  const revision = await storage.kv.set("k", Buffer.from("0"), {
    revision: (await storage.kv.get("k"))?.revision ?? 0,
  });
  expect(revision).toBe(value + 1);
});

describe("a lease", () => {
  const holder = async (): Promise<TestProcess> => {
    const child = start("hold", "n");
    expect(await child.line()).toBe("1");
    storage = await openLocalStorage({ dir });
    return child;
  };

  test("C036, C075: is free the moment its holder is killed, by the lock alone, whatever the record says", async () => {
    const child = await holder();
    const refusal: unknown = await storage.leaser.acquire("n", claimOf("us")).catch((error: unknown) => error);
    if (!isLooprigError(refusal, "lease.held")) throw new Error("wanted lease.held", { cause: refusal });
    expect(refusal.details.holder).toMatchObject({
      pid: child.pid,
      command: "test hold",
      host: os.hostname(),
      epoch: 1,
    });
    child.kill("SIGKILL");
    await child.ended;
    expect(await storage.leaser.inspect("n")).toBeUndefined();
    expect(await storage.leaser.list("")).toEqual([]);
    const lease = await storage.leaser.acquire("n", claimOf("us"));
    expect(lease.epoch).toBe(2);
    lease.assertHeld();
  });

  test("C036: is kept while its holder is stopped, and still when it goes on", async () => {
    const child = await holder();
    child.kill("SIGSTOP");
    await refused(storage.leaser.acquire("n", claimOf("us")), "lease.held");
    expect((await storage.leaser.inspect("n"))?.holder.pid).toBe(child.pid);
    child.kill("SIGCONT");
    await refused(storage.leaser.acquire("n", claimOf("us")), "lease.held");
    child.say("done");
    await child.ended;
    expect((await storage.leaser.acquire("n", claimOf("us"))).epoch).toBe(2);
  });

  test("a live holder that bears our own process id is no other than a holder", async () => {
    // Two containers on one volume are both process 1: the record then names the reader's own id.
    const child = await holder();
    const { openSqlite } = await import("./sqlite.js");
    const sql = openSqlite(path.join(dir, "state.db"));
    sql.run("UPDATE leases SET record = replace(record, ?, ?)", [`"pid":${child.pid}`, `"pid":${process.pid}`]);
    sql.close();
    await refused(storage.leaser.acquire("n", claimOf("us")), "lease.held");
    expect((await storage.leaser.inspect("n"))?.holder.pid).toBe(process.pid);
    child.kill("SIGKILL");
    await child.ended;
    (await storage.leaser.acquire("n", claimOf("us"))).assertHeld();
  });

  test("taken in turn by eight processes has one holder at a time and an epoch that never repeats", async () => {
    const epochs = (await Promise.all(eight("contend", "n", "6").map(lines))).flat().map(Number);
    expect([...epochs].sort((a, b) => a - b)).toEqual(Array.from({ length: 48 }, (_, i) => i + 1));
    storage = await openLocalStorage({ dir });
  });

  test("that nobody else wants is never refused, however much it is looked at, and a free one never seen held", async () => {
    storage = await openLocalStorage({ dir });
    // A holder that died left its record: what a careless look would take for a holder.
    const dead = start("hold", "free");
    await dead.line();
    dead.kill("SIGKILL");
    await dead.ended;
    const lookers = [start("inspect", "n"), start("inspect", "n"), start("inspect", "free"), start("inspect", "free")];
    for (const looker of lookers) expect(await looker.line()).toBe("looking");
    expect(await lines(start("undisturbed", "n", "30"))).toEqual(["never refused"]);
    for (const looker of lookers) looker.say("stop");
    const seen = await Promise.all(lookers.map(async (looker) => (await lines(looker))[0]));
    expect(seen.slice(2)).toEqual(["0", "0"]);
  });
});
