/** A session that is killed while its command runs (G5): nobody writes beside the command, and its turn is settled after it. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import { listSessions } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const holder = "tests/processes/exec-holder.ts";
const exists = (file: string) => expect.poll(() => fs.existsSync(file), { timeout: 30_000 });

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // A zombie that nobody has reaped yet is no longer alive.
    return !/^\d+ \(.*\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

it("a command that outlives its looprig keeps the root, is never signalled, and its turn is settled when it is gone", async () => {
  await using place = new Playground();
  place.write({ f: "0", theirs: "0" });
  const script = "echo $$ > pid; printf 1 > f; : > ready; while [ ! -e go ]; do :; done; printf 2 > f";
  const child = startProcess(holder, [place.root, place.stateDir, script]);
  await exists(place.at("ready")).toBe(true);
  child.kill("SIGKILL");
  await child.ended;
  const pid = Number(place.read("pid"));
  expect(isAlive(pid)).toBe(true);

  const refused = await place.open().catch((error: unknown) => error);
  expect(isLooprigError(refused, "workspace_root.command_running") && refused.details.pid).toBe(pid);
  const view = await place.view();
  expect((await view.history()).turns).toMatchObject([{ state: "unsettled" }]);
  expect(isAlive(pid)).toBe(true);

  // Who accepts it works beside it: fuzzy, and the turn stays open.
  const beside = await place.open({ acceptRunning: true });
  expect((await beside.checkpoint()).consistency).toBe("fuzzy");
  await beside.close();
  expect((await view.history()).turns).toMatchObject([{ state: "unsettled" }]);

  fs.writeFileSync(place.at("go"), "");
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
  await using next = await place.open();
  expect((await next.history()).turns).toMatchObject([{ state: "interrupted", protected: true }]);
  // The window was open until now, so what it holds may be anybody's: it is undone, with consent.
  await expect(next.undo()).rejects.toMatchObject({ code: "undo.needs_consent" });
  expect((await next.undo({ includeWindow: true })).result).toBe("done");
  expect(place.tree()).toEqual({ f: "file 644 0", theirs: "file 644 0" });
  expect((await next.redo()).result).toBe("done");
  expect(place.read("f")).toBe("2");
});

it("a stopped looprig keeps its root, and is not robbed", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const child = startProcess(holder, [place.root, place.stateDir, ": > ready; while [ ! -e go ]; do :; done"]);
  await exists(place.at("ready")).toBe(true);
  child.kill("SIGSTOP");
  await expect(place.open()).rejects.toMatchObject({
    code: "workspace_root.busy",
    details: { holder: { pid: child.pid } },
  });
  child.kill("SIGCONT");
  fs.writeFileSync(place.at("go"), "");
  expect(await child.line()).toBe("0");
  await (await place.open()).close();
});

it("a session killed without a turn is closed by the next one, and its checkpoints stay", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const first = startProcess(holder, [
    place.root,
    place.stateDir,
    "printf 1 > f; : > ready; while [ ! -e go ]; do :; done",
  ]);
  await exists(place.at("ready")).toBe(true);
  first.kill("SIGKILL");
  await first.ended;
  fs.writeFileSync(place.at("go"), "");
  let next = await place.open().catch(() => undefined);
  await expect
    .poll(async () => (next ??= await place.open().catch(() => undefined)) !== undefined, { timeout: 30_000 })
    .toBe(true);
  expect((await next?.history())?.checkpoints.map(({ trigger }) => trigger)).toEqual(["baseline", "window"]);
  await next?.close();
  const sessions = await listSessions(await place.storage());
  expect(sessions.map(({ state }) => state)).toEqual(["closed", "closed"]);
});

it("a dead session in a shared root is settled once, by whichever session comes next", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const script = "echo $$ > pid; printf 1 > f; : > ready; exec sleep 1000";
  const child = startProcess(holder, [place.root, place.stateDir, script, "shared"]);
  await exists(place.at("ready")).toBe(true);
  const pid = Number(place.read("pid"));
  const view = await place.view();
  expect((await view.history()).turns).toMatchObject([{ state: "running" }]);
  child.kill("SIGKILL");
  await child.ended;
  // The command still runs: in a shared root that hinders nobody, and its turn stays open.
  await (await place.open({ shared: true })).close();
  expect((await view.history()).turns).toMatchObject([{ state: "unsettled" }]);
  process.kill(pid, "SIGKILL");
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
  const [a, b] = await Promise.all([place.open({ shared: true }), place.open({ shared: true })]);
  const { turns, checkpoints } = await view.history();
  expect(turns).toMatchObject([{ state: "interrupted", changed: 3 }]);
  expect(checkpoints.map(({ trigger }) => trigger)).toEqual(["baseline", "window"]);
  await a.close();
  await b.close();
});
