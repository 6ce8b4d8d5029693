/** What happened around a command is never lost over what happens to the store, and nothing is said that is not so. */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { LooprigError, interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const quiet = { stdio: "ignore" } as const;

it("a turn of a killed session is foreseen by plans before it is settled, and needs the same consent after", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const script = "printf 1 > f; : > ready; while [ ! -e go ]; do :; done; rm go ready";
  const child = startProcess("tests/processes/exec-holder.ts", [place.root, place.stateDir, script]);
  await expect.poll(() => fs.existsSync(place.at("ready")), { timeout: 30_000 }).toBe(true);
  child.kill("SIGKILL");
  await child.ended;
  fs.writeFileSync(place.at("go"), "");
  await expect.poll(() => fs.existsSync(place.at("ready")), { timeout: 30_000 }).toBe(false);
  await using view = await place.view();
  const foreseen = await view.plan({ kind: "undo" });
  expect([foreseen.entry, foreseen.writes, foreseen.window]).toEqual(["t1", ["f"], ["f"]]);
  await expect
    .poll(
      async () =>
        place
          .open()
          .then(async (workspace) => workspace.close().then(() => true))
          .catch(() => false),
      { timeout: 30_000 },
    )
    .toBe(true);
  const settled = await view.plan({ kind: "undo" });
  expect([settled.entry, settled.writes, settled.window]).toEqual(["t1", ["f"], ["f"]]);
});

it("a root made unreadable by its command leaves the command's status and an unprotected turn", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  let forbidden = false;
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    if (forbidden && name === "readdir" && /\/proc\/self\/fd\/\d+\/\.$/.test(String(args[0]))) {
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    }
  });
  const storage = await place.storage();
  const workspace = await openWorkspace(
    { root: place.root, storage, baseline: false, command: "test" },
    { fileSystem },
  );
  const result = await workspace.exec(place.sh("printf 1 > f; exit 3"), {
    ...quiet,
    onSpawn: () => {
      forbidden = true;
    },
  });
  expect([result.exitCode, result.protected]).toEqual([3, false]);
  forbidden = false;
  await expect(workspace.undo()).rejects.toMatchObject({ code: "undo.unprotected", details: { paths: ["f"] } });
  await workspace.close();
});

it("a pack that is gone costs neither a command's status nor what is around it", async () => {
  await using place = new Playground();
  place.write({ a: "1", b: "0" });
  const first = await place.open();
  await first.exec(place.sh("printf 2 > a"), quiet);
  await first.close();
  const packs = path.join(place.stateDir, "blobs", "packs");
  const oldest = fs
    .readdirSync(packs)
    .map((name) => path.join(packs, name))
    .sort((x, y) => Number(fs.statSync(x, { bigint: true }).mtimeNs - fs.statSync(y, { bigint: true }).mtimeNs))[0];
  fs.rmSync(oldest ?? "");
  await using storage = await openLocalStorage({ dir: place.stateDir });
  await using second = await openWorkspace({ root: place.root, storage, baseline: false, command: "test" });
  const result = await second.exec(place.sh("printf 1 > b; exit 7"), quiet);
  expect([result.exitCode, result.protected, result.changes.map((change) => change.path)]).toEqual([7, true, ["b"]]);
  fs.writeFileSync(place.at("c"), "by hand");
  expect((await second.changes()).map(({ path: name, by }) => [name, by.kind])).toEqual([["c", "foreign"]]);
  expect((await second.undo()).written).toEqual(["b"]);
});

it("a turn whose end cannot be recorded says that its command ran, and is settled by the next", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const storage = await place.storage();
  const workspace = await openWorkspace({ root: place.root, storage, baseline: false, command: "test" });
  const append = storage.ledger.append.bind(storage.ledger);
  const failed = await workspace
    .exec(place.sh("printf 1 > f; exit 5"), {
      ...quiet,
      onSpawn: () => {
        storage.ledger.append = async () => {
          throw new LooprigError("storage.full", "Cannot append: the disk is full", { path: "state" });
        };
      },
    })
    .catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: "exec.unrecorded", details: { turn: 1, exitCode: 5 } });
  storage.ledger.append = append;
  await workspace.close();
  await using next = await place.open();
  expect((await next.history()).turns).toMatchObject([{ state: "interrupted", protected: true, changed: 1 }]);
  expect((await next.undo({ includeWindow: true })).result).toBe("done");
  expect(place.read("f")).toBe("0");
});

it("what was not captured is refused by undo, not passed over as if it had not changed (U4, U14)", async () => {
  await using place = new Playground();
  place.write({ b: "precious", c: "0" });
  await using workspace = await place.open();
  const { changes } = await workspace.exec(place.sh("rm b; mkfifo b"), quiet);
  expect(changes).toMatchObject([{ path: "b", captured: false }]);
  const refused = await workspace.undo();
  expect(refused).toMatchObject({ entry: "t1", result: "refused", kept: [{ path: "b", reason: "omitted" }] });
  await workspace.exec(place.sh("rm b; mkfifo d; printf 1 > c"), quiet);
  const partly = await workspace.undo();
  expect(partly).toMatchObject({ entry: "t2", result: "partly", written: ["c"] });
  expect(partly.kept.map(({ path: name }) => name)).toEqual(["b", "d"]);
});

it("a label that reads as something else is refused", async () => {
  await using place = new Playground();
  await using workspace = await place.open();
  for (const label of ["c1", "t4^", "now", "last", "a:b", "deadbeef", "x\ny", " "]) {
    await expect(workspace.checkpoint({ label })).rejects.toMatchObject({ code: "option.invalid" });
  }
  expect((await workspace.checkpoint({ label: "before the codemod" })).label).toBe("before the codemod");
});
