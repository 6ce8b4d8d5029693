import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mintCallId } from "../core/index.js";
import type { ToolCallPart } from "../session-store/index.js";
import { addUsage, answered, batchDone, beginTurn, decide } from "./turn-state.js";
import type { Answer, Decision, TurnState } from "./turn-state.js";

const answer = (calls: number, text = ""): Answer => ({
  text,
  usage: { inputTokens: 1 },
  calls: Array.from({ length: calls }, (): ToolCallPart => ({
    type: "tool-call",
    callId: mintCallId(),
    name: "Read",
    input: "{}",
  })),
});

interface Played {
  readonly state: TurnState;
  readonly decisions: readonly Decision[];
}

/** Plays a turn against a model that answers like this, and with its last answer for ever. */
function play(limits: TurnState["limits"], answers: readonly Answer[], decisionsMax: number): Played {
  const decisions: Decision[] = [];
  let state = beginTurn(limits);
  for (let asked = 0; decisions.length < decisionsMax;) {
    const decision = decide(state);
    decisions.push(decision);
    if (decision.do === "reply") break;
    if (decision.do === "call-model") {
      const next = answers[Math.min(asked, answers.length - 1)] ?? answer(0);
      asked += 1;
      state = answered(state, next);
    } else state = batchDone(state);
  }
  return { state, decisions };
}

const modelCalls = ({ decisions }: Played) => decisions.filter((decision) => decision.do === "call-model");
const admitted = ({ decisions }: Played) =>
  decisions.flatMap((decision) => (decision.do === "run-calls" ? decision.calls : []));

describe("a turn", () => {
  it("ends with the first message that has no calls", () => {
    const played = play({ steps: 9, toolCalls: 9 }, [answer(2), answer(1), answer(0, "done")], 100);
    expect(played.decisions.map((decision) => decision.do)).toEqual([
      ...["call-model", "run-calls", "call-model", "run-calls", "call-model", "reply"],
    ]);
    expect(played.decisions.at(-1)).toEqual({ do: "reply", text: "done" });
    expect(played.state).toMatchObject({ steps: 3, toolCalls: 3, usage: { inputTokens: 3 }, limit: undefined });
  });

  it("that comes to its steps has one more call of the model, which is told why", () => {
    const played = play({ steps: 2, toolCalls: 9 }, [answer(1), answer(1), answer(0, "half done")], 100);
    expect(modelCalls(played).map(({ closing }) => closing)).toEqual([
      undefined,
      undefined,
      expect.stringContaining("limit of 2 steps"),
    ]);
    expect(played.decisions.at(-1)).toEqual({ do: "reply", text: "half done" });
    expect(played.state.limit).toBe("steps");
  });

  it("that comes to its tool calls has the rest refused, and is closed in the same way", () => {
    const played = play({ steps: 9, toolCalls: 3 }, [answer(2), answer(2), answer(0, "so far")], 100);
    expect(admitted(played).map(({ refused }) => refused === undefined)).toEqual([true, true, true, false]);
    expect(admitted(played)[3]?.refused).toContain("limit of 3 tool calls");
    expect(played.state).toMatchObject({ limit: "toolCalls", toolCalls: 3 });
  });

  it("that exactly uses its tool calls is not closed for it", () => {
    const played = play({ steps: 9, toolCalls: 2 }, [answer(2), answer(0, "done")], 100);
    expect(played.state.limit).toBeUndefined();
  });

  it("that has nothing to say at its limit says that", () => {
    const played = play({ steps: 1, toolCalls: 9 }, [answer(1)], 100);
    expect(played.decisions.at(-1)).toEqual({
      do: "reply",
      text: "Stopped at the limit of 1 steps in one turn. Submit again to go on, or raise the loop's limits.",
    });
    expect(admitted(played)[1]?.refused).toContain("come to its limit");
  });

  it("ends within its limits, whatever the model does", () => {
    const limits = fc.record({ steps: fc.integer({ min: 1, max: 6 }), toolCalls: fc.nat(8) });
    const answers = fc.array(fc.tuple(fc.nat(5), fc.constantFrom("", "text")), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(limits, answers, (given, script) => {
        const played = play(
          given,
          script.map(([calls, text]) => answer(calls, text)),
          1_000,
        );
        const ran = admitted(played).filter(({ refused }) => refused === undefined).length;
        expect(played.decisions.at(-1)?.do).toBe("reply");
        expect(modelCalls(played).length).toBeLessThanOrEqual(given.steps + 1);
        expect(modelCalls(played).map(({ step }) => step)).toEqual(modelCalls(played).map((_, index) => index + 1));
        expect(ran).toBeLessThanOrEqual(given.toolCalls);
        expect(ran).toBe(played.state.toolCalls);
        expect(modelCalls(played).filter(({ closing }) => closing !== undefined).length).toBeLessThanOrEqual(1);
      }),
    );
  });
});

it("token use adds up, says nothing of what was never stated, and stays exact", () => {
  expect(addUsage({ inputTokens: 1 }, { inputTokens: 2, outputTokens: 3 })).toEqual({
    inputTokens: 3,
    outputTokens: 3,
  });
  expect(addUsage({}, {})).toEqual({});
  const most = Number.MAX_SAFE_INTEGER;
  expect(addUsage({ inputTokens: most }, { inputTokens: most })).toEqual({ inputTokens: most });
});
