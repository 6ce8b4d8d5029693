/** A killed session's turn, continued: every place a kill can leave is tried. */
import { describe, expect, it } from "vitest";
import { mintEventId, mintSessionId } from "../core/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import { withEvents, emptyConversation } from "./conversation.js";
import { defaultLimits } from "./definition.js";
import { openTurn } from "./open-turn.js";
import { calls, fakeModel, finish, says } from "./testing/models.js";
import { fakeTool, ofType, recordingHost, turnOf, typesOf } from "./testing/turns.js";
import { runTurn } from "./turn.js";
import type { TurnOptions } from "./turn.js";

const sessionId = mintSessionId();
const journaled = (events: readonly NewEvent[]): readonly SessionEvent[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, id: mintEventId(), at: new Date(0), sessionId }));

/** Two calls, of which the second needs a yes, and then a reply. */
const model = () =>
  fakeModel((_, { prompt }) =>
    prompt.some(({ role }) => role === "tool")
      ? [...says("done"), finish("stop", { input: 7 })]
      : [calls("Read", {}, "a"), calls("Bash", {}, "b"), finish("tool-calls", { input: 5 })],
  );

interface Run {
  readonly ran: string[];
  readonly asked: string[];
  readonly tools: TurnOptions["tools"];
  readonly host: ReturnType<typeof recordingHost>;
}

function scene(): Run {
  const ran: string[] = [];
  const asked: string[] = [];
  const read = fakeTool("Read", () => (ran.push("Read"), "61 lines"));
  const bash = fakeTool("Bash", () => (ran.push("Bash"), "exit 0"), { needsApproval: async () => true });
  const host = recordingHost({
    approve: async ({ callId }) => {
      asked.push(callId);
      return { approve: true };
    },
  });
  return { ran, asked, tools: new Map([read, bash].map((tool) => [tool.name, tool])), host };
}

/** The events of a whole turn, its start included. */
async function wholeTurn() {
  const { host, tools } = scene();
  const options = turnOf(model(), host, [], { tools });
  await runTurn(options);
  const { loopId, turnId } = options;
  const start: NewEvent = { type: "turn-started", loopId, turnId, number: 1, order: 1, input: "do it", kind: "prompt" };
  return { options, events: journaled([start, ...host.events]) };
}

describe("an open turn", () => {
  it("goes on wherever the kill left it: no call runs twice, none is lost, and it ends the same way", async () => {
    const { options, events } = await wholeTurn();
    const { loopId } = options;
    for (let kept = 1; kept <= events.length; kept++) {
      const before = events.slice(0, kept);
      const open = openTurn(before, loopId, defaultLimits);
      const { ran, host, tools } = scene();
      const conversation = withEvents(emptyConversation, before, loopId);
      const outcome = await runTurn({
        ...options,
        loop: { ...options.loop, model: model() },
        tools,
        host,
        conversation,
        open,
      });
      const all = [...before, ...host.events];
      expect(outcome).toMatchObject({ status: "done", text: "done", steps: 2 });
      // Twice never: what had begun before the kill does not run again, and its outcome is said to be unknown.
      const begunBefore = ofType(before, "tool-started").map(({ name }) => name);
      expect(ran.filter((name) => begunBefore.includes(name))).toEqual([]);
      const done = ofType(all, "tool-done");
      expect(done.map(({ name }) => name).sort()).toEqual(["Bash", "Read"]);
      for (const { name, outcome: how, callId } of done) {
        const known = ofType(before, "tool-done").some((event) => event.callId === callId);
        expect(how).toBe(!known && begunBefore.includes(name) ? "unknown" : "ok");
      }
      expect(ofType(all, "step-done")).toHaveLength(2);
      expect(ofType(all, "step-started")).toHaveLength(2);
    }
  });

  it("asks again for a call whose gate was open, with the same call id", async () => {
    const { options, events } = await wholeTurn();
    const gateAt = events.findIndex((event) => event.type === "tool-started" && event.name === "Bash");
    const before = events.slice(0, gateAt);
    const { asked, host, tools } = scene();
    await runTurn({
      ...options,
      tools,
      host,
      conversation: withEvents(emptyConversation, before, options.loopId),
      open: openTurn(before, options.loopId, defaultLimits),
    });
    expect(asked).toEqual(
      ofType(events, "tool-started")
        .filter(({ name }) => name === "Bash")
        .map(({ callId }) => callId),
    );
  });

  it("counts the steps, calls and tokens from before", async () => {
    const { options, events } = await wholeTurn();
    const afterFirst = events.slice(0, events.findIndex(({ type }) => type === "step-done") + 1);
    expect(openTurn(afterFirst, options.loopId, defaultLimits)?.state).toMatchObject({
      steps: 1,
      toolCalls: 2,
      usage: { inputTokens: 5 },
    });
  });

  it("is none once it has ended, for another loop, and after a message that was cut short", async () => {
    const { options, events } = await wholeTurn();
    const { loopId, turnId } = options;
    const ended = journaled([...events, { type: "turn-done", loopId, turnId, order: 2, changed: 0 }]);
    const cut = journaled([
      ...events.slice(0, 1),
      {
        type: "step-started",
        loopId,
        turnId,
        model: "p/m",
        content: [{ type: "text", text: "I" }],
        finish: "interrupted",
      },
    ]);
    const other = turnOf(model(), recordingHost()).loopId;
    expect([ended, cut].map((history) => openTurn(history, loopId, defaultLimits))).toEqual([undefined, undefined]);
    expect(openTurn(events, other, defaultLimits)).toBeUndefined();
    expect(openTurn([], loopId, defaultLimits)).toBeUndefined();
  });
});

it("a turn that was whole but for its end calls nothing again", async () => {
  const { options, events } = await wholeTurn();
  const { host, tools } = scene();
  const again = model();
  const outcome = await runTurn({
    ...options,
    loop: { ...options.loop, model: again },
    tools,
    host,
    conversation: withEvents(emptyConversation, events, options.loopId),
    open: openTurn(events, options.loopId, defaultLimits),
  });
  expect(outcome).toMatchObject({ status: "done", text: "done", usage: { inputTokens: 12 } });
  expect([again.calls, typesOf(host.events)]).toEqual([[], []]);
});
