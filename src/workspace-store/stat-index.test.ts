import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../core/index.js";
import { isSettled } from "./stamps.js";
import { StatIndexes } from "./stat-indexes.js";
import { temporaryDirectory } from "./testing/tree-on-disk.js";
import { RowList } from "./row-list.js";
import { directoryFlags, field, kinds, lastingRowFlags, rowBytes, rowFlags, transientFlags } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

const stamps = (mtimeMs: number, ctimeMs: number, extraMs = 0.25, size = 1) => ({
  size,
  mtimeMs: mtimeMs + extraMs,
  ctimeMs: ctimeMs + extraMs,
});

describe("a file's stamps are settled", () => {
  const now = 1_700_000_000_000;

  it.each([
    ["when both are well in the past", stamps(now - 60_000, now - 1_001), true],
    ["not when the change time is young, however old the modification time", stamps(now - 60_000, now - 990), false],
    ["not when the modification time is young", stamps(now - 990, now - 60_000), false],
    ["not when they lie in the future, as after a clock that was set back", stamps(now + 5_000, now - 60_000), false],
    ["not when whole seconds may hide two of them", stamps(now - 2_000, now - 2_000, 0), false],
    ["when whole seconds are old enough", stamps(now - 3_001, now - 3_001, 0), true],
    ["not while one write of its size may still be under way", stamps(now - 9_000, now - 9_000, 0.25, 2 ** 30), false],
    ["when even that is over", stamps(now - 30_000, now - 30_000, 0.25, 2 ** 30), true],
  ])("%s", (_, given, expected) => {
    expect(isSettled(given, now)).toBe(expected);
  });
});

describe("a stat index", () => {
  let dir: ReturnType<typeof temporaryDirectory>;
  beforeEach(() => {
    dir = temporaryDirectory();
  });
  afterEach(() => {
    dir.dispose();
  });

  const head = { key: "ab".repeat(32), dev: 7n };
  const fresh = () => new StatIndexes(nodeFileSystem, dir.path);
  const only = () => path.join(dir.path, "stat-index", fs.readdirSync(path.join(dir.path, "stat-index"))[0] as string);

  /** The names of the root's rows and their sizes. */
  const rowsOf = (table: TreeTable): (readonly [string, number])[] =>
    Array.from({ length: table.rowCount(0) }, (_, i) => {
      const row = table.rows(0) + i * rowBytes;
      return [table.name(0, row), table.size(row)] as const;
    });
  const withRows = (table: TreeTable, rows: readonly (readonly [string, number])[]): void => {
    const list = new RowList();
    for (const [name, size] of rows) {
      const isRaw = name.includes("\udcff");
      list.setStamps(list.add(kinds.file, isRaw ? Buffer.from([120, 255]) : name), size, 1.5, -2, 3);
    }
    table.setRows(0, list);
  };
  const learn = async (indexes: StatIndexes, rows: readonly (readonly [string, number])[]): Promise<void> => {
    using loan = await indexes.borrow(head);
    withRows(loan.table, rows);
    await loan.save(() => undefined);
  };
  const known = async (indexes: StatIndexes, of = head): Promise<(readonly [string, number])[]> => {
    using loan = await indexes.borrow(of);
    return rowsOf(loan.table);
  };
  const rows = [
    ["a", 5],
    ["x\udcff", 2 ** 40],
  ] as const;

  it("brings every row back in another process", async () => {
    await learn(fresh(), rows);
    expect(await known(fresh())).toEqual(rows);
  });

  it("brings back what was learnt later, and grows by that alone", async () => {
    const indexes = fresh();
    await learn(indexes, rows);
    const before = fs.readFileSync(only());
    await learn(indexes, [["b", 1]]);
    const after = fs.readFileSync(only());
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect(await known(fresh())).toEqual([["b", 1]]);
  });

  it("is written anew when it has grown to a multiple of what it says", async () => {
    const indexes = fresh();
    await learn(indexes, rows);
    for (let i = 0; i < 3000; i++) await learn(indexes, [["b", i]]);
    expect(fs.statSync(only()).size).toBeLessThan(512 * 1024);
    expect(await known(fresh())).toEqual([["b", 2999]]);
  });

  it("of a changed row grows by little more than what changed in it", async () => {
    const indexes = fresh();
    await learn(
      indexes,
      Array.from({ length: 500 }, (_, i) => [`name ${i}`, i] as const),
    );
    const before = fs.statSync(only()).size;
    {
      using loan = await indexes.borrow(head);
      const { table } = loan;
      const row = table.rows(0) + 250 * rowBytes;
      table.setStamps(row, 7, 8.25, 9.25, 10);
      table.setDigest(row, Buffer.alloc(32, 0xcd));
      await loan.save(() => undefined);
    }
    expect(fs.statSync(only()).size - before).toBeLessThan(200);
    expect((await known(fresh()))[250]).toEqual(["name 250", 7]);
  });

  it("does not grow by what was found to be as it was", async () => {
    const indexes = fresh();
    await learn(indexes, rows);
    const before = fs.statSync(only()).size;
    {
      using loan = await indexes.borrow(head);
      const { table } = loan;
      const row = table.rows(0);
      // As a file is that was changed a moment ago: it is read each time, and holds the same.
      table.setFlags(row, rowFlags.unread, rowFlags.trusted | rowFlags.identified);
      table.setStamps(row, table.size(row), table.mtime(row), table.ctime(row), table.ino(row));
      table.setDigest(row, Buffer.alloc(32));
      table.setFlags(row, rowFlags.identified, rowFlags.unread);
      table.setDirectoryFlags(0, 0, directoryFlags.encoded);
      table.setTreeId(0, Buffer.alloc(32));
      table.setDirectoryFlags(0, directoryFlags.encoded);
      await loan.save(() => undefined);
    }
    expect(fs.statSync(only()).size).toBe(before);
  });

  it("after any changes brings back the very table, however many captures made them", async () => {
    const step = fc.record({
      directory: fc.nat(20),
      row: fc.nat(20),
      what: fc.constantFrom("stamps", "digest", "mode", "flags", "rows", "add", "remove", "id"),
      value: fc.nat(0xff),
      save: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const key = randomBytes(32).toString("hex");
        const indexes = fresh();
        using loan = await indexes.borrow({ ...head, key });
        const { table } = loan;
        withRows(table, [
          ["a", 1],
          ["b", 2],
          ["c", 3],
        ]);
        await loan.save(() => undefined);
        for (const { directory: any, row: anyRow, what, value, save } of steps) {
          const there = Array.from({ length: table.directories }, (_, i) => i).filter((i) => table.has(i));
          const directory = there[any % there.length] as number;
          change(table, directory, anyRow, what, value);
          if (save) await loan.save(() => undefined);
        }
        await loan.save(() => undefined);
        using again = await fresh().borrow({ ...head, key });
        expect(listed(again.table)).toEqual(listed(table));
      }),
      { numRuns: 60 },
    );
  });

  function change(table: TreeTable, directory: number, anyRow: number, what: string, value: number): void {
    const count = table.rowCount(directory);
    const row = table.rows(directory) + (anyRow % Math.max(1, count)) * rowBytes;
    if (what === "id") table.setTreeId(directory, Buffer.alloc(32, value));
    else if (what === "rows" || what === "add" || what === "remove" || count === 0) {
      const list = new RowList();
      let added: number | undefined;
      for (let i = 0; i < count; i++) {
        const at = table.rows(directory) + i * rowBytes;
        if (what === "remove" && at === row) {
          if (table.kind(at) === kinds.directory) table.remove(table.extra(at));
        } else list.copyRow(table, directory, at);
      }
      if (what === "add") {
        added = list.count;
        list.setExtra(list.add(kinds.directory, `d${value}`), table.addDirectory(directory, added));
      } else if (what === "rows") list.setStamps(list.add(kinds.file, `f${value}`), value, value, value, value);
      table.setRows(directory, list);
    } else if (what === "stamps") table.setStamps(row, value, value + 0.5, value + 0.25, value);
    else if (what === "digest") table.setDigest(row, Buffer.alloc(32, value));
    else if (what === "mode") table.setMode(row, value);
    else if (value % 2 === 0) table.setFlags(row, rowFlags.trusted, rowFlags.identified);
    else table.setDirectoryFlags(directory, directoryFlags.listed);
  }

  /** Everything a table says that outlives a capture. */
  function listed(table: TreeTable): unknown {
    return Array.from({ length: table.directories }, (_, directory) => {
      if (!table.has(directory)) return "gone";
      const id = table.bytes.toString("hex", table.treeId(directory), table.treeId(directory) + 32);
      const rows = Array.from({ length: table.rowCount(directory) }, (__, i) => {
        const row = table.rows(directory) + i * rowBytes;
        const digest = table.bytes.toString("hex", row + field.digest, row + field.digest + 32);
        const stamps = [table.size(row), table.mtime(row), table.ctime(row), table.ino(row), table.mode(row)];
        return [table.name(directory, row), table.kind(row), table.flags(row) & lastingRowFlags, digest, ...stamps];
      });
      return [table.pathOf(directory), table.directoryFlags(directory) & ~transientFlags, id, rows];
    }).filter((each) => each !== "gone");
  }

  it("knows nothing of another device", async () => {
    await learn(fresh(), rows);
    expect(await known(fresh(), { ...head, dev: 8n })).toEqual([]);
  });

  it("knows nothing when any byte of it is another, or it is cut, emptied or gone", async () => {
    await learn(fresh(), rows);
    const good = fs.readFileSync(only());
    for (let at = 0; at < good.length; at++) {
      const bad = Buffer.from(good);
      bad[at] = (bad[at] as number) ^ 1;
      fs.writeFileSync(only(), bad);
      expect(await known(fresh())).toEqual([]);
    }
    for (const bad of [good.subarray(0, 60), Buffer.alloc(good.length), Buffer.alloc(0)]) {
      fs.writeFileSync(only(), bad);
      expect(await known(fresh())).toEqual([]);
    }
    fs.rmSync(only());
    expect(await known(fresh())).toEqual([]);
  });

  it("keeps what came before a batch that was cut short", async () => {
    const indexes = fresh();
    await learn(indexes, rows);
    const { length } = fs.readFileSync(only());
    await learn(indexes, [["b", 1]]);
    const cut = fs.readFileSync(only()).subarray(0, -1);
    expect(cut.length).toBeGreaterThan(length);
    fs.writeFileSync(only(), cut);
    expect(await known(fresh())).toEqual(rows);
    // The next one leaves a whole file again.
    await learn(fresh(), [["c", 2]]);
    expect(await known(fresh())).toEqual([["c", 2]]);
  });

  it("that cannot be written is no error", async () => {
    fs.writeFileSync(path.join(dir.path, "file"), "");
    const nowhere = new StatIndexes(nodeFileSystem, path.join(dir.path, "file", "below"));
    await learn(nowhere, rows);
    expect(await known(nowhere)).toEqual(rows);
  });

  it("of two processes that write in turn is whole whatever each of them knew", async () => {
    const mine = fresh();
    const theirs = fresh();
    await learn(mine, rows);
    await learn(theirs, [["b", 1]]);
    await learn(mine, [["c", 1]]);
    expect(await known(fresh())).toEqual([["c", 1]]);
  });

  it("serves one capture at a time, and an aborted wait takes no turn", async () => {
    const indexes = fresh();
    const first = await indexes.borrow(head);
    const aborted = indexes.borrow(head, { signal: AbortSignal.abort(new Error("enough")) });
    await expect(aborted).rejects.toThrow("enough");
    const second = indexes.borrow(head);
    let served = false;
    void second.then(() => {
      served = true;
    });
    await Promise.resolve();
    expect(served).toBe(false);
    first[Symbol.dispose]();
    (await second)[Symbol.dispose]();
  });
});
