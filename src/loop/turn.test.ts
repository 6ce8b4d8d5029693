import { describe, expect, it } from "vitest";
import { resultsOf, withEvents } from "./conversation.js";
import { scriptedModel } from "./scripted-model.js";
import { calls, fakeModel, finish, says } from "./testing/models.js";
import { callsOnce, deferred, fakeTool, ofType, recordingHost, resultsIn, turnOf, typesOf } from "./testing/turns.js";
import { parallelCallsMax } from "./tool-batch.js";
import { runTurn, turnEnd } from "./turn.js";

describe("a turn", () => {
  it("journals a step before its calls, a call before its tool, and the step's end after all of them (E2)", async () => {
    const order: string[] = [];
    const host = recordingHost({
      journal: async (events) => {
        await Promise.resolve();
        order.push(...typesOf(events));
      },
      beforeModelCall: async (step) => {
        order.push(`model ${step}`);
        return [];
      },
      afterStep: async (step) => void order.push(`after ${step}`),
    });
    const tool = fakeTool("Echo", () => {
      order.push("runs");
      return "";
    });
    await runTurn(turnOf(callsOnce(calls("Echo", {})), host, [tool]));
    expect(order).toEqual([
      ...["model 1", "step-started", "tool-started", "runs", "tool-done", "step-done", "after 1"],
      ...["model 2", "step-started", "step-done", "after 2"],
    ]);
  });

  it("stamps its events with loop, turn and step, one step's all alike", async () => {
    const host = recordingHost();
    const options = turnOf(callsOnce(calls("Echo", {})), host);
    await runTurn(options);
    const { loopId, turnId } = options;
    for (const event of host.events) expect(event).toMatchObject({ loopId, turnId });
    const steps = host.events.map(({ stepId }) => stepId);
    expect(new Set(steps).size).toBe(2);
    expect(new Set(steps.slice(0, 4)).size).toBe(1);
  });

  it("runs the calls of a step side by side, and tells the model their results in the order of calls", async () => {
    const ran: unknown[] = [];
    const secondDone = deferred();
    const tool = fakeTool("Wait", async (input) => {
      ran.push(input);
      if (ran.length === 2) return "2";
      await secondDone.promise;
      return "1";
    });
    const model = callsOnce(calls("Wait", { n: 1 }, "a"), calls("Wait", { n: 2 }, "b"));
    const host = recordingHost({
      journal: async (events) => {
        if (ofType(events, "tool-done").length > 0) secondDone.resolve();
      },
    });
    await runTurn(turnOf(model, host, [tool]));
    expect(ran).toEqual([{ n: 1 }, { n: 2 }]);
    expect(resultsIn(host.events).map(({ text }) => text)).toEqual(["2", "1"]);
    const toolMessage = model.calls[1]?.prompt.at(-1)?.content as readonly { readonly output: unknown }[];
    expect(toolMessage.map(({ output }) => output)).toEqual([
      { type: "text", value: "1" },
      { type: "text", value: "2" },
    ]);
  });

  it("runs no more calls at a time than it may", async () => {
    let [running, most] = [0, 0];
    const tool = fakeTool("Busy", async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return "";
    });
    const made = Array.from({ length: 3 * parallelCallsMax }, (_, i) => calls("Busy", {}, `c${i}`));
    const host = recordingHost();
    await runTurn(turnOf(callsOnce(...made), host, [tool]));
    expect(most).toBe(parallelCallsMax);
    expect(ofType(host.events, "tool-done")).toHaveLength(3 * parallelCallsMax);
  });

  it("has an end that the session can journal", async () => {
    const usage = { input: 5, output: 2 };
    const outcome = await runTurn(
      turnOf(
        fakeModel(() => [...says("hi"), finish("stop", usage)]),
        recordingHost(),
      ),
    );
    expect(turnEnd(outcome)).toEqual({
      type: "turn-done",
      text: "hi",
      steps: 1,
      usage: { inputTokens: 5, outputTokens: 2 },
    });
    const failed = await runTurn(turnOf(scriptedModel([]), recordingHost()));
    expect(turnEnd(failed)).toMatchObject({ type: "turn-failed", code: "model.script_exhausted" });
    const stopped = await runTurn(turnOf(scriptedModel([]), recordingHost(), [], { signal: AbortSignal.abort("no") }));
    expect(turnEnd(stopped)).toEqual({ type: "turn-interrupted", reason: "no" });
  });
});

describe("a journal that fails", () => {
  const failsAt = (type: string) =>
    recordingHost({
      journal: async (events) => {
        if (typesOf(events).includes(type)) throw new Error(`no ${type}`);
      },
    });

  it.each(["step-started", "tool-started", "tool-done", "step-done"])(
    "at %s ends the turn with its own error",
    async (type) => {
      const ran: unknown[] = [];
      const tool = fakeTool("T", (input) => {
        ran.push(input);
        return "";
      });
      await expect(runTurn(turnOf(callsOnce(calls("T", {})), failsAt(type), [tool]))).rejects.toThrow(`no ${type}`);
      expect(ran).toHaveLength(type === "tool-done" || type === "step-done" ? 1 : 0);
    },
  );

  it("interrupts what else runs, begins nothing more, and is reported when all has ended", async () => {
    let ended = 0;
    const slow = fakeTool(
      "Slow",
      (_, { signal }) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () =>
            setImmediate(() => {
              ended += 1;
              resolve("");
            }),
          ),
        ),
    );
    const quick = fakeTool("Quick", () => "");
    let began = 0;
    const host = recordingHost({
      journal: async (events) => {
        began += ofType(events, "tool-started").length;
        if (ofType(events, "tool-done").some(({ name }) => name === "Quick")) throw new Error("disk full");
      },
    });
    const made = [calls("Slow", {}, "a"), calls("Slow", {}, "b"), calls("Quick", {}, "c")];
    const more = Array.from({ length: parallelCallsMax }, (_, i) => calls("Slow", {}, `d${i}`));
    await expect(runTurn(turnOf(callsOnce(...made, ...more), host, [slow, quick]))).rejects.toThrow("disk full");
    expect(ended).toBe(began - 1);
    expect(began).toBeLessThan(made.length + more.length);
  });

  it("at the session's own boundaries is reported as it is", async () => {
    const host = recordingHost({ afterStep: async () => Promise.reject(new Error("no checkpoint")) });
    await expect(runTurn(turnOf(callsOnce(calls("Echo", {})), host))).rejects.toThrow("no checkpoint");
  });
});

it("the journal alone gives the conversation the turn had", async () => {
  const host = recordingHost();
  const options = turnOf(callsOnce(calls("Echo", { n: 1 }, "a"), calls("None", {}, "b")), host);
  await runTurn(options);
  const { messages } = withEvents(options.conversation, host.events, options.loopId);
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "assistant"]);
  const [, step] = messages;
  expect(step?.role === "assistant" && resultsOf(step).map(({ outcome }) => outcome)).toEqual(["ok", "error"]);
});
