import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import { isSettled } from "./stat-index.js";
import type { StatRow } from "./stat-index.js";
import { StatIndexStore } from "./stat-index-store.js";
import { temporaryDirectory } from "./testing/tree-on-disk.js";

const ms = 1_000_000n;
const stamps = (mtimeMs: number, ctimeMs: number, extraNs = 1n, size = 1n) => ({
  size,
  mtimeNs: BigInt(mtimeMs) * ms + extraNs,
  ctimeNs: BigInt(ctimeMs) * ms + extraNs,
});

describe("a file's stamps are settled", () => {
  const now = 1_700_000_000_000;

  it.each([
    ["when both are well in the past", stamps(now - 60_000, now - 1_001), true],
    ["not when the change time is young, however old the modification time", stamps(now - 60_000, now - 990), false],
    ["not when the modification time is young", stamps(now - 990, now - 60_000), false],
    ["not when they lie in the future, as after a clock that was set back", stamps(now + 5_000, now - 60_000), false],
    ["not when whole seconds may hide two of them", stamps(now - 2_000, now - 2_000, 0n), false],
    ["when whole seconds are old enough", stamps(now - 3_001, now - 3_001, 0n), true],
    ["not while one write of its size may still be under way", stamps(now - 9_000, now - 9_000, 1n, 2n ** 30n), false],
    ["when even that is over", stamps(now - 30_000, now - 30_000, 1n, 2n ** 30n), true],
  ])("%s", (_, given, expected) => {
    expect(isSettled(given, now)).toBe(expected);
  });
});

describe("a stat index file", () => {
  let dir: ReturnType<typeof temporaryDirectory>;
  beforeEach(() => {
    dir = temporaryDirectory();
  });
  afterEach(() => {
    dir.dispose();
  });

  const head = { key: "ab".repeat(32), dev: 7n };
  const row: StatRow = { ino: 5n, size: 3n, mtimeNs: 1n, ctimeNs: -2n, mode: 0o644, id: "cd".repeat(32) as never };
  const rows = new Map([
    ["a", row],
    ["dir/x\udcff", { ...row, ino: 2n ** 63n }],
  ]);
  const pace = () => undefined;
  const fresh = () => new StatIndexStore(nodeFileSystem, dir.path);
  const only = () => path.join(dir.path, "stat-index", fs.readdirSync(path.join(dir.path, "stat-index"))[0] as string);

  it("brings every row back in another process", async () => {
    await fresh().save(head, rows, pace);
    expect(await fresh().load(head, pace)).toEqual(rows);
  });

  it("knows nothing of another device", async () => {
    await fresh().save(head, rows, pace);
    expect((await fresh().load({ ...head, dev: 8n }, pace)).size).toBe(0);
  });

  it("knows nothing when any byte of it is another, or it is cut, emptied or gone", async () => {
    await fresh().save(head, rows, pace);
    const good = fs.readFileSync(only());
    for (let at = 0; at < good.length; at++) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] as number) ^ 1;
      fs.writeFileSync(only(), bad);
      expect((await fresh().load(head, pace)).size).toBe(0);
    }
    for (const bad of [good.subarray(0, 60), Buffer.alloc(good.length), Buffer.alloc(0)]) {
      fs.writeFileSync(only(), bad);
      expect((await fresh().load(head, pace)).size).toBe(0);
    }
    fs.rmSync(only());
    expect((await fresh().load(head, pace)).size).toBe(0);
  });

  it("that cannot be written is no error", async () => {
    const nowhere = new StatIndexStore(nodeFileSystem, path.join(dir.path, "file", "below"));
    fs.writeFileSync(path.join(dir.path, "file"), "");
    await nowhere.save(head, rows, pace);
    expect(await nowhere.load(head, pace)).toEqual(rows);
  });

  it("written by another process meanwhile replaces what was remembered", async () => {
    const mine = fresh();
    await mine.save(head, rows, pace);
    const other = new Map([["b", row]]);
    await fresh().save(head, other, pace);
    expect(await mine.load(head, pace)).toEqual(other);
  });
});
