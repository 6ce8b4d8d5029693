/** What readers see: of a turn, late, slow or several at once; and of the session's events, from anywhere on (E1, E2). */
import { describe, expect, it } from "vitest";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { SessionEvent } from "../../src/session-store/index.js";
import { Playground } from "../playground.js";
import { chatty, heldModel, isEvent, journalOf, only, partsOf, rigOn, wrote } from "./scenes.js";

const types = (parts: readonly { readonly type: string }[]): readonly string[] => parts.map(({ type }) => type);

describe("E1: a turn, read", () => {
  it("by several, by one that comes late and by one that stops, is the same events for all", async () => {
    await using place = new Playground();
    const steps = [wrote("f", "1"), { text: "Several words are said." }];
    await using session = await (await rigOn(place, { steps })).startSession();
    const turn = await session.submit("go");
    const stopped = (async () => {
      for await (const part of turn) return part;
      return undefined;
    })();
    const [first, second] = await Promise.all([partsOf(turn), partsOf(turn)]);
    expect(await stopped).toMatchObject({ type: "turn-started" });
    const late = await partsOf(turn);
    expect(first).toEqual(second);
    expect(late).toEqual(first.filter(isEvent));
    expect(types(first)[0]).toBe("turn-started");
    expect(types(first).at(-1)).toBe("turn-done");
    const seqs = late.flatMap((part) => ("seq" in part ? [part.seq] : []));
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  });

  it("slowly loses live parts at most, never an event, and holds nobody up", async () => {
    await using place = new Playground();
    const words = Array.from({ length: 3_000 }, (_, i) => `word${i}`);
    const steps = [{ calls: [{ tool: "Chatty", input: { words } }] }, { text: words.join(" ") }];
    await using session = await (await rigOn(place, { tools: [chatty], steps })).startSession();
    const turn = await session.submit("go");
    const reading = turn[Symbol.asyncIterator]();
    const first = await reading.next();
    // The turn ends though its reader took one part only.
    expect(await turn.done).toMatchObject({ status: "done" });
    const rest = [];
    for (let next = await reading.next(); next.done !== true; next = await reading.next()) rest.push(next.value);
    const seen = [...(first.done === true ? [] : [first.value]), ...rest];
    expect(seen.filter(isEvent)).toEqual((await partsOf(turn)).filter(isEvent));
    const live = seen.filter((part) => !isEvent(part));
    expect(live.length).toBeGreaterThan(0);
    expect(live.length).toBeLessThanOrEqual(1_001);
    // What is left of them is the newest.
    expect(live.at(-1)).toMatchObject({ type: "text-delta", text: expect.stringContaining("word2999") as string });
  });

  it("shows what a tool says while it runs, and nothing of that is on record", async () => {
    await using place = new Playground();
    const steps = [{ calls: [{ tool: "Chatty", input: { words: ["one", "two"] } }] }, { text: "Done." }];
    await using session = await (await rigOn(place, { tools: [chatty], steps })).startSession();
    const turn = await session.submit("go");
    const progress = (await partsOf(turn)).filter(({ type }) => type === "tool-progress");
    const events = await journalOf(await place.storage(), session.id);
    const [started] = only(events, "tool-started");
    expect(progress).toEqual(
      ["one", "two"].map((text) => ({ type: "tool-progress", turnId: turn.id, callId: started?.callId, text })),
    );
    expect(types(events)).not.toContain("tool-progress");
  });

  it("shows how far its captures are", async () => {
    await using place = new Playground();
    place.write(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, `${i}`])));
    await using session = await (await rigOn(place, { steps: [{ text: "Done." }] })).startSession();
    const parts = await partsOf(await session.submit("go"));
    const progress = parts.filter((part) => part.type === "capture-progress");
    expect(progress.length).toBeGreaterThan(0);
    // A few a second: a walk as short as this one is told of once or twice.
    expect(progress.length).toBeLessThan(10);
    expect(types(await journalOf(await place.storage(), session.id))).not.toContain("capture-progress");
  });

  it("never rejects its end, whatever the model does", async () => {
    await using place = new Playground();
    const models = [
      { ...heldModel([]), doStream: () => Promise.reject(new Error("no")) },
      {
        ...heldModel([]),
        doStream: () => {
          throw new Error("thrown at once");
        },
      },
      { ...heldModel([]), doStream: async () => ({ stream: undefined as never }) },
    ];
    for (const model of models) {
      await using session = await (await rigOn(place, { model, snapshots: "manual" })).startSession();
      const stop = new AbortController();
      const turn = await session.submit("go", { signal: stop.signal });
      // A model that fails is tried again after a pause; nobody has to wait for that.
      for await (const part of turn) if (part.type === "workspace-checkpointed") stop.abort();
      expect(["failed", "interrupted"]).toContain((await turn.done).status);
    }
  });
});

describe("E1: the session's events, from a number on", () => {
  it("come without gap or repeat to readers that go and come back while it runs", async () => {
    await using place = new Playground();
    const steps = Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? wrote(`f${i}`, "x") : { text: `Turn ${i}.` }));
    const session = await (await rigOn(place, { steps, snapshots: "turn-done" })).startSession();
    const seen: SessionEvent[] = [];
    // Reconnects after every third event, wherever that is.
    const reading = (async () => {
      for (;;) {
        let count = 0;
        for await (const event of session.events({ from: seen.length + 1 })) {
          seen.push(event);
          if (++count === 3) break;
        }
        if (count < 3) return;
      }
    })();
    for (let i = 0; i < 6; i++) await (await session.submit(`input ${i}`)).done;
    await session.idle();
    await session.close();
    await reading;
    expect(seen).toEqual(await journalOf(await place.storage(), session.id));
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, i) => i + 1));
  });

  it("can begin beyond what is there yet, and stop when they are told to", async () => {
    await using place = new Playground();
    await using session = await (await rigOn(place, { steps: [{ text: "One." }] })).startSession();
    const head = (await journalOf(await place.storage(), session.id)).length;
    const stop = new AbortController();
    const reading = (async () => {
      const seen: number[] = [];
      for await (const { seq } of session.events({ from: head + 3, signal: stop.signal })) {
        seen.push(seq);
        if (seen.length === 2) stop.abort();
      }
      return seen;
    })();
    await (
      await session.submit("go")
    ).done;
    expect(await reading).toEqual([head + 3, head + 4]);
  });

  it("reach a reader that fell far behind from the journal, all of them", async () => {
    await using place = new Playground();
    const calls = Array.from({ length: 400 }, (_, i) => ({ tool: "Chatty", input: { words: [`${i}`] } }));
    const steps = [{ calls }, { text: "Done." }];
    const session = await (await rigOn(place, { tools: [chatty], steps })).startSession();
    const reading = session.events()[Symbol.asyncIterator]();
    const first = await reading.next();
    await (
      await session.submit("go")
    ).done;
    await session.close();
    const seqs = [first.value as SessionEvent];
    for (let next = await reading.next(); next.done !== true; next = await reading.next()) seqs.push(next.value);
    expect(seqs).toEqual(await journalOf(await place.storage(), session.id));
    expect(seqs.length).toBeGreaterThan(800);
  });
});

it("E2: a session's life is told in the events of the list, in their order", async () => {
  await using place = new Playground();
  const steps = [{ calls: [{ tool: "Careful", input: { what: "it" } }] }, { text: "Done." }];
  const session = await (await rigOn(place, { steps, snapshots: "idle" })).startSession();
  const turn = await session.submit("go");
  for await (const part of turn) {
    if (part.type === "gate-opened") await session.respond(part.gateId, { approve: true });
  }
  await session.idle();
  await session.close();
  const events = await journalOf(await place.storage(), session.id);
  expect(types(events)).toEqual([
    ...["session-started", "loop-started", "session-active", "turn-started", "workspace-checkpointed"],
    ...["step-started", "gate-opened", "gate-resolved", "tool-started", "tool-done", "step-done"],
    ...["step-started", "step-done", "turn-done", "session-idle", "workspace-checkpointed", "session-closed"],
  ]);
});

it("K4: the baseline is in the turn's own events, also where the tree is as it was; so the very first turn can be undone", async () => {
  await using place = new Playground();
  place.write({ f: "0" });
  const steps = [wrote("f", "1"), { text: "One." }, { text: "Two." }];
  await using session = await (await rigOn(place, { steps })).startSession();
  await (
    await session.submit("one")
  ).done;
  const second = await partsOf(await session.submit("two"));
  const baselines = second.filter((part) => part.type === "workspace-checkpointed");
  expect(baselines).toMatchObject([{ trigger: "baseline" }]);
  expect((await session.workspace.undo()).result).toBe("done");
  expect(place.read("f")).toBe("0");
});

it("K5: a turn whose baseline failed goes on, and is visibly unprotected", async () => {
  await using place = new Playground();
  place.write({ fragile: "0" });
  let broken = true;
  const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
    if (!broken || name !== "open" || !String(args[0]).endsWith("/fragile")) return;
    throw Object.assign(new Error("EACCES: permission denied, open"), { code: "EACCES", errno: -13, syscall: "open" });
  });
  const rig = await rigOn(place, { steps: [{ text: "One." }, { text: "Two." }], strict: true, world: { fileSystem } });
  await using session = await rig.startSession();
  expect(await (await session.submit("one")).done).toMatchObject({ status: "done" });
  broken = false;
  expect(await (await session.submit("two")).done).toMatchObject({ status: "done" });
  const { turns } = await session.workspace.history();
  expect(turns.map((turn) => turn.protected)).toEqual([false, true]);
  expect(only(await journalOf(await place.storage(), session.id), "checkpoint-failed")).toMatchObject([
    { trigger: "baseline", code: "capture.incomplete", turnId: turns[0]?.turnId },
  ]);
});
