/** `exec` through the library: what the command sees, what is recorded of it, and what happens when it or we are stopped. */
import fs from "node:fs";
import { expect, it } from "vitest";
import { createSessionStore } from "../../src/session-store/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";

const quiet = { stdio: "ignore" } as const;

async function eventsOf(place: Playground, workspace: Workspace): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = [];
  for await (const event of createSessionStore(await place.storage()).read(workspace.sessionId)) events.push(event);
  return events;
}

it("journals baseline, process, window and turn in the order that survives a crash at any point (U2, G5)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  const result = await workspace.exec(place.sh("printf 1 > f; exit 7"), quiet);
  expect(result).toMatchObject({ exitCode: 7, turn: 1, protected: true, undone: false });
  const events = await eventsOf(place, workspace);
  expect(events.map(({ type }) => type)).toEqual([
    "session-started",
    "turn-started",
    "workspace-checkpointed",
    "process-started",
    "process-exited",
    "workspace-checkpointed",
    "workspace-changed",
    "turn-done",
    "session-idle",
  ]);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.flatMap((event) => (event.type === "workspace-checkpointed" ? [event.trigger] : []))).toEqual([
    "baseline",
    "window",
  ]);
});

it("journals no window and no second checkpoint when nothing changed (U2)", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  const { changes, checkpoints } = await workspace.exec(place.sh("cat f"), quiet);
  expect([changes.length, checkpoints.length]).toEqual([0, 1]);
  expect((await eventsOf(place, workspace)).some(({ type }) => type === "workspace-changed")).toBe(false);
});

it("gives the command root and session in its environment, and its directory", async () => {
  await using place = new Playground();
  fs.mkdirSync(place.at("sub"));
  await using workspace = await place.open();
  await workspace.exec(place.sh('printf "%s\\n%s\\n%s\\n%s" "$LOOPRIG_ROOT" "$LOOPRIG_SESSION" "$PWD" "$X" > out'), {
    ...quiet,
    cwd: "sub",
    env: { X: "y" },
  });
  expect(place.read("sub/out").split("\n")).toEqual([place.root, workspace.sessionId, place.at("sub"), "y"]);
  await expect(workspace.exec(["true"], { ...quiet, cwd: ".." })).rejects.toMatchObject({ code: "option.invalid" });
});

it("refuses wrong options and commands before anything is captured or journaled", async () => {
  await using place = new Playground();
  await using workspace = await place.open();
  for (const [command, options, code] of [
    [[], {}, "option.invalid"],
    [[""], {}, "option.invalid"],
    [["a\0b"], {}, "option.invalid"],
    [["true"], { everyMs: -1 }, "option.invalid"],
    [["true"], { everyMs: Number.NaN }, "option.invalid"],
    [["no-such-command-at-all"], {}, "exec.not_found"],
    [["/"], {}, "exec.not_executable"],
  ] as const) {
    await expect(workspace.exec(command as unknown as [string], options)).rejects.toMatchObject({ code });
  }
  expect((await workspace.history()).checkpoints).toEqual([]);
});

it("takes fuzzy checkpoints at intervals, only when something changed (U2)", async () => {
  await using place = new Playground();
  place.write({ step: "0" });
  await using workspace = await place.open();
  // The command goes on only when a checkpoint of its first change was taken, so nothing here depends on speed.
  const running = workspace.exec(place.sh("printf 1 > step; while [ ! -e go ]; do :; done; rm go"), {
    ...quiet,
    everyMs: 100,
  });
  await expect
    .poll(async () => (await workspace.history()).checkpoints.filter(({ trigger }) => trigger === "interval").length, {
      timeout: 30_000,
    })
    .toBe(1);
  const busy = await workspace.checkpoint().catch((error: unknown) => error);
  expect(busy).toMatchObject({ code: "session.busy" });
  fs.writeFileSync(place.at("go"), "");
  const { checkpoints } = await running;
  const intervals = checkpoints.filter(({ trigger }) => trigger === "interval");
  expect(intervals.every(({ consistency }) => consistency === "fuzzy")).toBe(true);
  expect(new Set(intervals.map(({ ref }) => ref)).size).toBe(intervals.length);
});

it("an abort ends the command, captures what it did, and the turn can be undone", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  const stop = new AbortController();
  const running = workspace.exec(place.sh("printf 1 > f; : > ready; exec sleep 1000"), {
    ...quiet,
    signal: stop.signal,
  });
  await expect.poll(() => fs.existsSync(place.at("ready")), { timeout: 30_000 }).toBe(true);
  stop.abort(new Error("enough"));
  await expect(running).rejects.toThrow("enough");
  const [turn] = (await workspace.history()).turns;
  expect(turn).toMatchObject({ state: "interrupted", protected: true, changed: 2 });
  expect((await workspace.undo()).result).toBe("done");
  expect(place.tree()).toEqual({ f: "file 644 0" });
});

it("an abort before the command leaves no turn", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  await expect(workspace.exec(["touch", "made"], { ...quiet, signal: AbortSignal.abort() })).rejects.toThrow();
  expect(place.tree()).toEqual({ f: "file 644 0" });
  expect((await workspace.history()).turns).toEqual([]);
});

it("undoOnFailure takes the turn back on any status but 0", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  await using workspace = await place.open();
  const failed = await workspace.exec(place.sh("printf 1 > f; exit 1"), { ...quiet, undoOnFailure: true });
  expect([failed.undone, place.read("f")]).toEqual([true, "0"]);
  const fine = await workspace.exec(place.sh("printf 1 > f"), { ...quiet, undoOnFailure: true });
  expect([fine.undone, place.read("f")]).toEqual([false, "1"]);
});

it("a signal that ends the command is its status", async () => {
  await using place = new Playground();
  await using workspace = await place.open();
  expect(await workspace.exec(place.sh("kill -KILL $$"), quiet)).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
});
