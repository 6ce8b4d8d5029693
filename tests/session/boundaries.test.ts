/** When the policy has the tree captured, in which order, and what becomes of a session whose required capture failed. */
import fs from "node:fs";
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { ManualTimer } from "../../src/loop/testing/manual-timer.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { Playground } from "../playground.js";
import { Moment, journalOf, only, partsOf, put, rigOn, squatter, until, wrote } from "./scenes.js";

const placements = ["exclusive", "session", "shared"] as const;
const priorities = ["best-effort", "required"] as const;
const triggers = ["manual", "idle", "turn-done", "step-done"] as const;

/** What caused each automatic checkpoint, as "trigger ← event". */
function causes(events: readonly SessionEvent[]): readonly string[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  return only(events, "workspace-checkpointed").flatMap(({ trigger, cause }) =>
    cause === undefined ? [] : [`${trigger} <- ${byId.get(cause)?.type ?? "nothing"}`],
  );
}

const expected: Readonly<Record<(typeof triggers)[number], readonly string[]>> = {
  manual: [],
  idle: ["idle <- session-idle"],
  "turn-done": ["turn-done <- turn-done"],
  "step-done": ["step-done <- step-done", "step-done <- step-done"],
};

describe.each(["memory", "local"])("S2: the policy, on %s storage", (kind) => {
  for (const placement of placements) {
    for (const priority of priorities) {
      if (placement === "shared" && priority === "required") continue;
      for (const trigger of triggers) {
        it(`${trigger}, ${priority}, ${placement}: its checkpoints and what caused them (K1, S3)`, async () => {
          await using place = new Playground();
          const storage = kind === "memory" ? createMemoryStorage() : await place.storage();
          const steps = [wrote("f", "1"), { text: "Done." }];
          const rig = await rigOn(place, { storage, placement, steps, snapshots: { trigger, priority } });
          const session = await rig.startSession();
          expect(await (await session.submit("go")).done).toMatchObject({ status: "done" });
          await session.idle();
          await session.close();
          const events = await journalOf(storage, session.id);
          expect(causes(events)).toEqual(expected[trigger]);
          const taken = only(events, "workspace-checkpointed");
          expect(taken.map((each) => each.trigger)).toContain("baseline");
          expect(new Set(taken.map(({ consistency }) => consistency))).toEqual(
            new Set([placement === "shared" ? "fuzzy" : "quiescent"]),
          );
          // The event stands before its checkpoint, always.
          for (const { cause, seq } of taken) {
            if (cause !== undefined) expect(events.find(({ id }) => id === cause)?.seq).toBeLessThan(seq);
          }
          expect(only(events, "checkpoint-failed")).toEqual([]);
        });
      }
    }
  }

  it("shared and required is refused (S2)", async () => {
    await using place = new Playground();
    const snapshots = { trigger: "idle", priority: "required" };
    await expect(rigOn(place, { placement: "shared", snapshots })).rejects.toMatchObject({
      code: "snapshot_policy.shared_required",
    });
  });
});

it("K1: a required capture of a turn's end is on record before the turn counts as done, and shown in it", async () => {
  await using place = new Playground();
  const snapshots = { trigger: "turn-done", priority: "required" };
  await using session = await (
    await rigOn(place, { steps: [wrote("f", "1"), { text: "Done." }], snapshots })
  ).startSession();
  const turn = await session.submit("go");
  const types = (await partsOf(turn)).flatMap((part) => ("seq" in part ? [part.type] : []));
  expect(types.slice(-2)).toEqual(["turn-done", "workspace-checkpointed"]);
  const events = await journalOf(await place.storage(), session.id);
  expect(events.slice(-2).map(({ type }) => type)).toEqual(["workspace-checkpointed", "session-idle"]);
});

it("K1: without the permit nothing is on record of a required boundary; out of time, its event is, and a fault", async () => {
  await using place = new Playground();
  const timer = new ManualTimer();
  const { tool, letGo } = squatter();
  const rig = await rigOn(place, {
    ...{ tools: [tool], steps: [{ calls: [{ tool: "Squat", input: {} }] }, { text: "Never said." }] },
    ...{ snapshots: { trigger: "step-done", priority: "required", timeoutMs: 7_000 }, world: { timer } },
  });
  const session = await rig.startSession();
  const turn = await session.submit("go");
  await until(session, "tool-done");
  await timer.waitsFor(7_000);
  expect(only(await journalOf(await place.storage(), session.id), "step-done")).toEqual([]);
  timer.advance(7_000);
  await until(session, "session-faulted");
  letGo.reach();
  expect(await turn.done).toMatchObject({ status: "failed", error: { code: "session.faulted" } });
  await session.close();
  const events = await journalOf(await place.storage(), session.id);
  const from = events.findIndex(({ type }) => type === "step-done");
  expect(events.slice(from, from + 3)).toMatchObject([
    { type: "step-done" },
    { type: "checkpoint-failed", trigger: "step-done", code: "checkpoint.timed_out", cause: events[from]?.id },
    { type: "session-faulted", code: "checkpoint.timed_out" },
  ]);
  expect(only(events, "turn-failed")).toMatchObject([{ code: "session.faulted" }]);
});

it("K2: a best-effort boundary waits 10 ms for its permit; then its event stands without a checkpoint, and the turn goes on", async () => {
  await using place = new Playground();
  const timer = new ManualTimer();
  const { tool, letGo } = squatter();
  const rig = await rigOn(place, {
    ...{ tools: [tool], steps: [{ calls: [{ tool: "Squat", input: {} }] }, { text: "Said." }] },
    ...{ snapshots: { trigger: "step-done" }, world: { timer } },
  });
  await using session = await rig.startSession();
  const turn = await session.submit("go");
  await until(session, "tool-done");
  await timer.waitsFor(10);
  timer.advance(10);
  await until(session, "checkpoint-failed");
  letGo.reach();
  expect(await turn.done).toMatchObject({ status: "done", text: "Said." });
  const events = await journalOf(await place.storage(), session.id);
  const [first] = only(events, "step-done");
  expect(only(events, "checkpoint-failed")).toMatchObject([
    { trigger: "step-done", code: "checkpoint.tree_busy", cause: first?.id, seq: (first?.seq ?? 0) + 1 },
  ]);
  expect(only(events, "session-faulted")).toEqual([]);
});

/** A file that cannot be read while `broken.now`: a strict capture fails then. */
function breakable(): { readonly broken: { now: boolean }; readonly fileSystem: typeof nodeFileSystem } {
  const broken = { now: false };
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    if (!broken.now || name !== "open" || !String(args[0]).endsWith("/fragile")) return;
    throw Object.assign(new Error("EACCES: permission denied, open"), { code: "EACCES", errno: -13, syscall: "open" });
  });
  return { broken, fileSystem };
}

describe("a required capture that fails (K1, K5)", () => {
  async function faulty(place: Playground, trigger = "turn-done") {
    place.write({ fragile: "0" });
    const { broken, fileSystem } = breakable();
    const rig = async () =>
      rigOn(place, {
        ...{ steps: [wrote("fragile", "1"), { text: "One." }, { text: "Two." }, { text: "Three." }] },
        ...{ snapshots: { trigger, priority: "required" }, world: { fileSystem } },
        strict: true,
      });
    return { broken, rig };
  }

  it("K1: stops the session: what waits ends unrun, and nothing is admitted until a checkpoint is taken", async () => {
    await using place = new Playground();
    const { broken, rig } = await faulty(place);
    await using session = await (await rig()).startSession();
    const first = await session.submit("one");
    const second = await session.submit("two");
    await until(session, "tool-done");
    broken.now = true;
    expect(await first.done).toMatchObject({ status: "done", text: "One." });
    expect(await second.done).toMatchObject({ status: "failed", error: { code: "session.faulted" } });
    expect(second.number).toBe(0);
    await expect(session.submit("three")).rejects.toMatchObject({ code: "session.faulted" });
    await expect(session.workspace.checkpoint()).rejects.toMatchObject({ code: "capture.incomplete" });
    await expect(session.submit("three")).rejects.toMatchObject({ code: "session.faulted" });

    broken.now = false;
    await session.workspace.checkpoint({ label: "by hand" });
    expect(await (await session.submit("three")).done).toMatchObject({ status: "done" });
    const events = await journalOf(await place.storage(), session.id);
    const recovered = only(events, "session-recovered");
    expect(recovered).toHaveLength(1);
    expect(events[(recovered[0]?.seq ?? 0) - 2]).toMatchObject({ type: "workspace-checkpointed", trigger: "manual" });
    expect(only(events, "session-faulted")).toHaveLength(1);
  });

  it("K1: stays a fault over a restart, and closing is always allowed", async () => {
    await using place = new Playground();
    const { broken, rig } = await faulty(place);
    const session = await (await rig()).startSession();
    const turn = await session.submit("one");
    await until(session, "tool-done");
    broken.now = true;
    await turn.done;
    await session.close();
    const again = await (await rig()).resumeSession(session.id);
    await expect(again.submit("two")).rejects.toMatchObject({ code: "session.faulted" });
    await again.close();
    broken.now = false;
    await using third = await (await rig()).resumeSession(session.id);
    await third.workspace.checkpoint();
    expect(await (await third.submit("two")).done).toMatchObject({ status: "done" });
  });

  it("K1: ends the turn in the middle of which it fails: the next step would be new work", async () => {
    await using place = new Playground();
    const { broken, rig } = await faulty(place, "step-done");
    await using session = await (await rig()).startSession();
    const turn = await session.submit("one");
    await until(session, "tool-started");
    broken.now = true;
    expect(await turn.done).toMatchObject({ status: "failed", error: { code: "session.faulted" } });
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "step-started")).toHaveLength(1);
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["turn-failed", "session-idle"]);
  });

  it("K3: leaves the event that caused it, and no ref", async () => {
    await using place = new Playground();
    const { broken, rig } = await faulty(place);
    await using session = await (await rig()).startSession();
    const turn = await session.submit("one");
    await until(session, "tool-done");
    broken.now = true;
    await turn.done;
    const events = await journalOf(await place.storage(), session.id);
    const [done] = only(events, "turn-done");
    expect(causes(events)).toEqual([]);
    expect(only(events, "checkpoint-failed").at(-1)).toMatchObject({
      ...{ trigger: "turn-done", code: "capture.incomplete", cause: done?.id },
    });
  });
});

it("K5: a capture that takes too long gives no ref, is on record as timed out, and is no off-switch", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const timer = new ManualTimer();
  let slow = false;
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    if (slow && name === "open" && String(args[0]).endsWith("/f")) timer.advance(5_000);
  });
  const rig = await rigOn(place, {
    ...{ steps: [wrote("f", "1"), { text: "One." }, wrote("f", "2"), { text: "Two." }] },
    ...{ snapshots: { trigger: "turn-done", timeoutMs: 5_000 }, world: { fileSystem, timer } },
  });
  await using session = await rig.startSession();
  const turn = await session.submit("one");
  const stop = session.events();
  for await (const event of stop) {
    // From the end of the turn on: the capture of its boundary.
    if (event.type === "turn-done") {
      slow = true;
      break;
    }
  }
  // The file is touched, so that the capture has to look into it.
  fs.writeFileSync(place.at("f"), "changed meanwhile");
  await turn.done;
  await session.idle();
  slow = false;
  const failed = only(await journalOf(await place.storage(), session.id), "checkpoint-failed");
  // What was quick enough was captured; what was not is told.
  for (const each of failed) expect(each).toMatchObject({ trigger: "turn-done", code: "checkpoint.timed_out" });
  expect(await (await session.submit("two")).done).toMatchObject({ status: "done", text: "Two." });
  await session.idle();
  const events = await journalOf(await place.storage(), session.id);
  expect(causes(events.filter(({ seq }) => seq > (failed.at(-1)?.seq ?? 0)))).toEqual(["turn-done <- turn-done"]);
});

it("K6: closing waits for a required capture that is under way, and the leases go after it", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const walking = new Moment();
  let watching = false;
  const fileSystem = interceptFileSystem(nodeFileSystem, () => {
    if (watching) walking.reach();
  });
  const rig = await rigOn(place, {
    ...{ tools: [put], steps: [wrote("f", "1"), { text: "One." }] },
    ...{ snapshots: { trigger: "turn-done", priority: "required" }, world: { fileSystem } },
  });
  const session = await rig.startSession();
  const turn = await session.submit("one");
  for await (const event of session.events()) if (event.type === "turn-done") break;
  watching = true;
  await Promise.race([walking.reached, turn.done]);
  await session.close();
  expect(await turn.done).toMatchObject({ status: "done" });
  const storage = await place.storage();
  const events = await journalOf(storage, session.id);
  expect(causes(events)).toEqual(["turn-done <- turn-done"]);
  expect(events.at(-1)?.type).toBe("session-closed");
  expect(await storage.leaser.list("")).toEqual([]);
});
