/** Who gets to work in a session and when: the queue, interrupts at every stage, closing, and a session that lost its lease. */
import { describe, expect, it } from "vitest";
import { StorageError, interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import type { Session } from "../../src/session/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { Playground } from "../playground.js";
import { ManualTimer } from "../../src/loop/testing/manual-timer.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";
import { Moment, heldModel, journalOf, only, partsOf, rigOn, until, waiter, wrote } from "./scenes.js";

const says = (...texts: readonly string[]): readonly ScriptStep[] => texts.map((text) => ({ text }));

describe("the queue", () => {
  it("runs inputs one after the other, in the order they came", async () => {
    await using place = new Playground();
    await using session = await (await rigOn(place, { steps: says("One.", "Two.", "Three.") })).startSession();
    const turns = await Promise.all(["a", "b", "c"].map((input) => session.submit(input)));
    const results = await Promise.all(turns.map(({ done }) => done));
    expect(results).toMatchObject([{ text: "One." }, { text: "Two." }, { text: "Three." }]);
    expect(turns.map(({ number }) => number)).toEqual([1, 2, 3]);
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "turn-started").map(({ input }) => input)).toEqual(["a", "b", "c"]);
    // Idle once, when nothing waits any more.
    expect(only(events, "session-idle")).toHaveLength(1);
  });

  it("forgets an input whose signal aborts while it waits; what runs is not touched", async () => {
    await using place = new Playground();
    const model = heldModel(says("One.", "Three."));
    await using session = await (await rigOn(place, { model })).startSession();
    const first = await session.submit("a");
    const leave = new AbortController();
    const second = await session.submit("b", { signal: leave.signal });
    const third = await session.submit("c");
    await model.called.reached;
    leave.abort();
    expect(await second.done).toMatchObject({ status: "interrupted" });
    expect(await partsOf(second)).toEqual([]);
    model.go.reach();
    expect([await first.done, await third.done]).toMatchObject([{ text: "One." }, { text: "Three." }]);
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "turn-started").map(({ input }) => input)).toEqual(["a", "c"]);
  });

  it("refuses an input whose signal has aborted, and a blank one", async () => {
    await using place = new Playground();
    await using session = await (await rigOn(place)).startSession();
    await expect(session.submit("a", { signal: AbortSignal.abort(new Error("no more")) })).rejects.toThrow("no more");
    await expect(session.submit("  ")).rejects.toMatchObject({ code: "option.invalid" });
  });

  it("ends with the session: what runs is interrupted, what waits is never begun", async () => {
    await using place = new Playground();
    const model = heldModel(says("Never."));
    const session = await (await rigOn(place, { model })).startSession();
    const [first, second] = [await session.submit("a"), await session.submit("b")];
    await model.called.reached;
    await session.close();
    expect([await first.done, await second.done]).toMatchObject([{ status: "interrupted" }, { status: "interrupted" }]);
    await expect(session.submit("c")).rejects.toMatchObject({ code: "session.closed" });
    await session.close();
    const events = await journalOf(await place.storage(), session.id);
    expect(events.slice(-3).map(({ type }) => type)).toEqual(["turn-interrupted", "session-idle", "session-closed"]);
    expect(only(events, "turn-started")).toHaveLength(1);
  });
});

describe("K6: an interrupt", () => {
  interface Stage {
    readonly name: string;
    readonly arrange: (place: Playground) => Promise<{ session: Session; reached: Promise<unknown> }>;
  }
  const stages: readonly Stage[] = [
    {
      name: "while the baseline walks",
      arrange: async (place) => {
        place.write({ f: "0" });
        let reach = (): void => undefined;
        const reached = new Promise<void>((resolve) => (reach = resolve));
        const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
          if (name === "open" && String(args[0]).endsWith("/f")) reach();
        });
        const rig = await rigOn(place, { steps: says("One.", "Two."), world: { fileSystem }, snapshots: "idle" });
        const session = await rig.startSession();
        return { session, reached };
      },
    },
    {
      name: "while the model is called",
      arrange: async (place) => {
        const model = heldModel(says("One.", "Two."));
        const session = await (await rigOn(place, { model, snapshots: "idle" })).startSession();
        void model.called.reached.then(() => setImmediate(model.go.reach));
        return { session, reached: model.called.reached };
      },
    },
    {
      name: "while a tool runs",
      arrange: async (place) => {
        const { tool, begun } = waiter();
        const steps = [{ calls: [{ tool: "Wait", input: {} }] }, ...says("One.", "Two.")];
        const session = await (await rigOn(place, { tools: [tool], steps, snapshots: "idle" })).startSession();
        return { session, reached: begun.reached };
      },
    },
    {
      name: "while a question is open",
      arrange: async (place) => {
        const steps = [{ calls: [{ tool: "Careful", input: { what: "it" } }] }, ...says("One.", "Two.")];
        const session = await (await rigOn(place, { steps, snapshots: "idle" })).startSession();
        return { session, reached: until(session, "gate-opened") };
      },
    },
  ];

  it.each(stages)(
    "$name ends the turn, and holds what comes after it until the session is idle on record",
    async ({ arrange }) => {
      await using place = new Playground();
      const { session, reached } = await arrange(place);
      const turn = await session.submit("a");
      await reached;
      const interrupted = session.interrupt({ reason: "enough" });
      const next = await session.submit("b");
      await interrupted;
      const seen = await journalOf(await place.storage(), session.id);
      // Idle on record before the promise resolves, and before what waited began.
      const idle = seen.findIndex(({ type }) => type === "session-idle");
      expect(idle).toBeGreaterThan(0);
      expect(await turn.done).toMatchObject({ status: "interrupted", reason: "enough" });
      expect(await next.done).toMatchObject({ status: "done" });
      // Closing would cancel the capture that follows.
      await session.idle();
      await session.close();
      const events = await journalOf(await place.storage(), session.id);
      const [end] = only(events, "turn-interrupted");
      expect(end).toMatchObject({ turnId: turn.id, reason: "enough" });
      expect(events[idle]?.seq).toBeGreaterThan(end?.seq ?? Infinity);
      expect(only(events, "turn-started")[1]?.seq).toBeGreaterThan(events[idle]?.seq ?? Infinity);
      // The idle checkpoint after it says what led to it (K6).
      const taken = only(events, "workspace-checkpointed").filter(({ cause }) => cause !== undefined);
      expect(taken.map(({ trigger, cause }) => [trigger, cause])).toEqual([
        ["interrupt", events[idle]?.id],
        ["idle", only(events, "session-idle")[1]?.id],
      ]);
      expect(await (await place.storage()).leaser.list("")).toEqual([]);
    },
  );

  it("while nothing runs does nothing", async () => {
    await using place = new Playground();
    await using session = await (await rigOn(place, { steps: says("One.") })).startSession();
    const before = (await journalOf(await place.storage(), session.id)).length;
    await session.interrupt();
    expect(await journalOf(await place.storage(), session.id)).toHaveLength(before);
    expect(await (await session.submit("a")).done).toMatchObject({ status: "done" });
  });

  it("during a boundary waits for a required capture", async () => {
    await using place = new Playground();
    const snapshots = { trigger: "turn-done", priority: "required" };
    const steps = [wrote("f", "1"), ...says("One.")];
    await using session = await (await rigOn(place, { steps, snapshots })).startSession();
    const turn = await session.submit("a");
    for await (const event of session.events()) if (event.type === "turn-done") break;
    await session.interrupt();
    expect(await turn.done).toMatchObject({ status: "done", text: "One." });
    const events = await journalOf(await place.storage(), session.id);
    const [done] = only(events, "turn-done");
    expect(only(events, "workspace-checkpointed").at(-1)).toMatchObject({ trigger: "turn-done", cause: done?.id });
  });
});

describe("K6: what is asked of the workspace by hand", () => {
  it("needs an idle session; after a turn is acknowledged it is one", async () => {
    await using place = new Playground();
    const { tool, begun, go } = waiter();
    const steps = [{ calls: [{ tool: "Wait", input: {} }] }, ...says("One.")];
    await using session = await (await rigOn(place, { tools: [tool], steps })).startSession();
    const turn = await session.submit("a");
    await begun.reached;
    for (const refused of [
      session.workspace.checkpoint(),
      session.workspace.undo(),
      session.workspace.redo(),
      session.workspace.restore("c1"),
      session.workspace.exec(["true"]),
    ]) {
      await expect(refused).rejects.toMatchObject({
        ...{ code: "session.busy", details: { doing: "a turn" } },
        message: expect.stringMatching(/: a turn is under way; .*`await session\.idle\(\)`$/) as unknown,
      });
    }
    go.reach();
    await turn.done;
    expect(await session.workspace.checkpoint()).toMatchObject({ trigger: "manual" });
  });

  it("is never coalesced: two checkpoints of one tree are two", async () => {
    await using place = new Playground();
    await using session = await (await rigOn(place)).startSession();
    const [first, second] = [await session.workspace.checkpoint(), await session.workspace.checkpoint()];
    expect(second).toMatchObject({ number: first.number + 1, ref: first.ref, unchanged: true });
  });

  it("closes with the session, whichever of the two is closed", async () => {
    await using place = new Playground();
    const session = await (await rigOn(place, { steps: says("One.") })).startSession();
    const turn = await session.submit("a");
    await session.workspace.close();
    expect((await turn.done).status).toBe("interrupted");
    await expect(session.submit("b")).rejects.toMatchObject({ code: "session.closed" });
    const events = await journalOf(await place.storage(), session.id);
    expect(only(events, "session-closed")).toHaveLength(1);
  });
});

describe("C5: a session that loses its lease", () => {
  it("interrupts its turn, ends what waits, admits nothing, records nothing more, and can be closed", async () => {
    await using place = new Playground();
    let now = 1_000_000;
    const storage = createMemoryStorage({ leaseTtlMs: 10_000, clock: () => now });
    const { tool, begun } = waiter();
    const steps = [{ calls: [{ tool: "Wait", input: {} }] }, ...says("Never.")];
    const session = await (await rigOn(place, { storage, tools: [tool], steps })).startSession();
    const [turn, queued] = [await session.submit("a"), await session.submit("b")];
    await begun.reached;
    now += 10_001;
    // Somebody else takes the root: this is what tells the first that it is no longer the holder.
    const other = await (await rigOn(place, { storage, steps: says("Mine.") })).startSession();
    expect(await turn.done).toMatchObject({ status: "interrupted" });
    expect(await queued.done).toMatchObject({ status: "interrupted" });
    await expect(session.submit("c")).rejects.toMatchObject({ code: expect.stringMatching(/lease/) as string });
    await expect(session.workspace.checkpoint()).rejects.toMatchObject({
      code: expect.stringMatching(/lease/) as string,
    });
    await session.close();
    expect(await (await other.submit("d")).done).toMatchObject({ status: "done", text: "Mine." });
    await other.close();
  });
});

describe("C6: a tool that does not end when it is interrupted", () => {
  it("is given 5 s; then the session is idle, and its captures are fuzzy until the tool ends after all", async () => {
    await using place = new Playground();
    const timer = new ManualTimer();
    const [begun, go] = [new Moment(), new Moment()];
    const deaf = defineTool({
      name: "Deaf",
      description: "Listens to no signal",
      inputSchema: jsonSchema({ type: "object" }),
      execute: async () => {
        begun.reach();
        await go.reached;
        return "at last";
      },
    });
    const steps = [{ calls: [{ tool: "Deaf", input: {} }] }, ...says("Two.")];
    await using session = await (await rigOn(place, { tools: [deaf], steps, world: { timer } })).startSession();
    const turn = await session.submit("a");
    await begun.reached;
    const interrupted = session.interrupt();
    await timer.waitsFor(5_000);
    timer.advance(5_000);
    await interrupted;
    expect(await turn.done).toMatchObject({ status: "interrupted" });
    expect(only(await journalOf(await place.storage(), session.id), "tool-done")).toMatchObject([
      { outcome: "unknown" },
    ]);
    expect(await session.workspace.checkpoint()).toMatchObject({ consistency: "fuzzy" });
    go.reach();
    // The call settles in steps of its own.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await session.workspace.checkpoint()).toMatchObject({ consistency: "quiescent" });
  });
});

describe("a journal that cannot be written", () => {
  /** Memory storage whose ledger is full while `full.now`, or for one append. */
  function filling(full: { now: boolean; once: boolean }) {
    const storage = createMemoryStorage();
    const append: typeof storage.ledger.append = async (...args) => {
      if (full.now || full.once) {
        full.once = false;
        throw new StorageError("storage.full", "Cannot append: the disk is full", { path: "/state" });
      }
      return storage.ledger.append(...args);
    };
    const ledger = new Proxy(storage.ledger, {
      get: (target, name) => {
        const member: unknown = name === "append" ? append : Reflect.get(target, name);
        return typeof member === "function" ? (member.bind(target) as unknown) : member;
      },
    });
    return { ...storage, ledger };
  }

  it("for a moment fails the turn; its end is on record, and the session goes on", async () => {
    await using place = new Playground();
    const full = { now: false, once: false };
    const storage = filling(full);
    const { tool, begun, go } = waiter();
    const steps = [{ calls: [{ tool: "Wait", input: {} }] }, ...says("Two.")];
    const session = await (await rigOn(place, { storage, tools: [tool], steps })).startSession();
    const turn = await session.submit("a");
    await begun.reached;
    full.once = true;
    go.reach();
    expect(await turn.done).toMatchObject({ status: "failed", error: { code: "storage.full" } });
    expect(await (await session.submit("b")).done).toMatchObject({ status: "done" });
    await session.close();
    const events = await journalOf(storage, session.id);
    expect(only(events, "turn-failed")).toMatchObject([{ turnId: turn.id, code: "storage.full" }]);
  });

  it("for good ends what waits, admits nothing, gives the leases back, and a resume settles the turn", async () => {
    await using place = new Playground();
    const full = { now: false, once: false };
    const storage = filling(full);
    const { tool, begun, go } = waiter();
    const steps = [{ calls: [{ tool: "Wait", input: {} }] }, ...says("Two.")];
    const rig = await rigOn(place, { storage, tools: [tool], steps });
    const session = await rig.startSession();
    const [turn, queued] = [await session.submit("a"), await session.submit("b")];
    await begun.reached;
    full.now = true;
    go.reach();
    const failed = { status: "failed", error: { code: "storage.full" } };
    expect([await turn.done, await queued.done]).toMatchObject([failed, failed]);
    await expect(session.submit("c")).rejects.toMatchObject({ code: "storage.full" });
    await expect(session.close()).rejects.toMatchObject({ code: "storage.full" });
    expect(await storage.leaser.list("")).toEqual([]);
    full.now = false;
    await using again = await rig.resumeSession(session.id);
    expect((await again.workspace.history()).turns).toMatchObject([{ number: 1, state: "interrupted" }]);
    expect(await (await again.submit("d")).done).toMatchObject({ status: "done", text: "Two." });
  });
});
