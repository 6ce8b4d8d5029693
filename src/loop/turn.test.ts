import { describe, expect, it } from "vitest";
import type { NewEvent } from "../session-store/index.js";
import { resultsOf, withEvents } from "./conversation.js";
import { scriptedModel } from "./scripted-model.js";
import { ManualTimer } from "./testing/manual-timer.js";
import { calls, fakeModel, finish, hangingStream, says } from "./testing/models.js";
import { deferred, echo, fakeTool, ofType, recordingHost, turnOf, typesOf } from "./testing/turns.js";
import { parallelCallsMax } from "./tool-batch.js";
import { resultCharsMax } from "./tool-output.js";
import type { TurnTool } from "./turn-host.js";
import { runTurn, turnEnd } from "./turn.js";
import type { TurnOptions } from "./turn.js";

/** A model that makes these calls in its first step, and then says that it is done. */
const callsOnce = (...made: readonly unknown[]) =>
  fakeModel((call) => (call === 1 ? [...made, finish("tool-calls")] : [...says("done"), finish()]));

const resultsIn = (events: readonly NewEvent[]) =>
  ofType(events, "tool-done").map(({ name, outcome, text }) => ({ name, outcome, text }));

describe("a turn", () => {
  it("journals a step before its calls, a call before its tool, and the step's end after all of them (E2)", async () => {
    const order: string[] = [];
    const host = recordingHost({
      journal: async (events) => {
        await Promise.resolve();
        order.push(...typesOf(events));
      },
      beforeModelCall: async (step) => void order.push(`model ${step}`),
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

describe("approval (T5)", () => {
  const gated = fakeTool("Bash", () => "ran", { needsApproval: async () => true });

  it("is asked before anything of the call runs, with the input as the model wrote it", async () => {
    const order: unknown[] = [];
    const host = recordingHost({
      journal: async (events) => void order.push(...typesOf(events)),
      approve: async ({ tool, input }) => {
        order.push([tool, input]);
        return { approve: true };
      },
    });
    await runTurn(turnOf(callsOnce(calls("Bash", { command: "ls" })), host, [gated]));
    expect(order.slice(0, 4)).toEqual(["step-started", ["Bash", { command: "ls" }], "tool-started", "tool-done"]);
  });

  it("that is refused is a result the model can act on, and the tool never began", async () => {
    const host = recordingHost({ approve: async () => ({ approve: false, reason: "not on a Friday" }) });
    const outcome = await runTurn(turnOf(callsOnce(calls("Bash", {})), host, [gated]));
    expect(outcome.status).toBe("done");
    expect(typesOf(host.events)).not.toContain("tool-started");
    expect(resultsIn(host.events)).toEqual([
      { name: "Bash", outcome: "refused", text: "This call did not run: it was not approved: not on a Friday" },
    ]);
  });

  it("is not asked for a call that could not run anyway", async () => {
    const asked: unknown[] = [];
    const host = recordingHost({
      approve: async (call) => {
        asked.push(call);
        return { approve: true };
      },
    });
    const strict: TurnTool = { ...gated, validate: async () => ({ issues: ["command: missing"] }) };
    await runTurn(turnOf(callsOnce(calls("Bash", {}), calls("Bash", "{")), host, [strict]));
    expect(asked).toEqual([]);
    expect(
      resultsIn(host.events)
        .map(({ text }) => text)
        .join(),
    ).toContain("command: missing");
  });

  it("is not waited for once the turn is interrupted", async () => {
    const controller = new AbortController();
    const host = recordingHost({
      approve: () => {
        controller.abort("changed my mind");
        return new Promise<never>(() => undefined);
      },
    });
    const outcome = await runTurn(turnOf(callsOnce(calls("Bash", {})), host, [gated], { signal: controller.signal }));
    expect(outcome).toMatchObject({ status: "interrupted", reason: "changed my mind" });
    expect(typesOf(host.events)).toEqual(["step-started", "tool-done", "step-done"]);
    expect(resultsIn(host.events)[0]).toMatchObject({
      outcome: "refused",
      text: expect.stringContaining("interrupted") as string,
    });
  });

  it("that cannot be asked for ends the turn with the session's own failure", async () => {
    const host = recordingHost({ approve: async () => Promise.reject(new Error("the gate is gone")) });
    await expect(runTurn(turnOf(callsOnce(calls("Bash", {})), host, [gated]))).rejects.toThrow("the gate is gone");
    expect(typesOf(host.events)).not.toContain("tool-started");
  });
});

describe("a hostile model", () => {
  it.each<[string, unknown, string]>([
    ["invalid JSON", calls("Echo", '{"a":'), "not valid JSON"],
    ["an unknown tool", calls("Erase", {}), 'There is no tool "Erase". There are: Echo, Strict.'],
    ["the name of what every object has", calls("__proto__", {}), 'There is no tool "__proto__"'],
    ["a name of a megabyte", calls("x".repeat(1_000_000), {}), 'There is no tool "xxx'],
    ["input that does not suit", calls("Strict", { a: 1 }), "does not suit the tool.\na: unknown"],
    ["input that nests too deep", calls("Echo", "[".repeat(5_000) + "]".repeat(5_000)), "nested too deeply"],
  ])("that calls with %s gets an error it can act on, and the turn goes on", async (_, made, text) => {
    const host = recordingHost();
    const strict = fakeTool("Strict", () => "ran", { validate: async () => ({ issues: ["a: unknown"] }) });
    const outcome = await runTurn(turnOf(callsOnce(made), host, [echo, strict]));
    expect(outcome).toMatchObject({ status: "done", text: "done" });
    expect(typesOf(host.events)).not.toContain("tool-started");
    expect(resultsIn(host.events)).toMatchObject([{ outcome: "error", text: expect.stringContaining(text) as string }]);
    expect(resultsIn(host.events)[0]?.text.length).toBeLessThan(1_000);
  });

  it("that repeats call ids has every call run once and answered by itself", async () => {
    const model = fakeModel((call) =>
      call <= 2
        ? [calls("Echo", { call, n: 1 }, "id"), calls("Echo", { call, n: 2 }, "id"), finish()]
        : [...says("ok"), finish()],
    );
    const host = recordingHost();
    await runTurn(turnOf(model, host));
    const done = ofType(host.events, "tool-done");
    expect(new Set(done.map(({ callId }) => callId)).size).toBe(4);
    expect(done.map(({ text }) => text).sort()).toEqual([
      '{"call":1,"n":1}',
      '{"call":1,"n":2}',
      '{"call":2,"n":1}',
      '{"call":2,"n":2}',
    ]);
  });

  it("that calls for ever is closed with a clear last message", async () => {
    const model = fakeModel(() => [calls("Echo", {}), finish()]);
    const host = recordingHost();
    const options = turnOf(model, host);
    const outcome = await runTurn({ ...options, loop: { ...options.loop, limits: { steps: 3, toolCalls: 500 } } });
    expect(outcome).toMatchObject({ status: "done", limit: "steps", steps: 4 });
    expect(outcome.status === "done" && outcome.text).toMatch(/^Stopped at the limit of 3 steps/);
    expect(ofType(host.events, "tool-started")).toHaveLength(3);
    expect(ofType(host.events, "tool-done").at(-1)).toMatchObject({ outcome: "refused" });
    expect(model.calls.at(-1)?.toolChoice).toEqual({ type: "none" });
  });

  it("that asks for hundreds of calls at once gets as many as it may have, and an answer to each", async () => {
    const made = Array.from({ length: 700 }, (_, i) => calls("Echo", {}, `c${i}`));
    const appends: number[] = [];
    const host = recordingHost({ journal: async (events) => void appends.push(events.length) });
    const outcome = await runTurn(turnOf(callsOnce(...made), host));
    expect(outcome).toMatchObject({ status: "done", limit: "toolCalls" });
    expect(ofType(host.events, "tool-started")).toHaveLength(500);
    expect(ofType(host.events, "tool-done")).toHaveLength(700);
    expect(Math.max(...appends)).toBeLessThanOrEqual(100);
  });
});

describe("a tool", () => {
  it("that throws, at once or later, is an error result", async () => {
    const host = recordingHost();
    const throws = fakeTool("Throws", () => {
      throw new Error("no such file");
    });
    const raw: TurnTool = {
      ...throws,
      name: "Raw",
      execute: () => {
        throw new Error("at once");
      },
    };
    const outcome = await runTurn(turnOf(callsOnce(calls("Throws", {}), calls("Raw", {})), host, [throws, raw]));
    expect(outcome.status).toBe("done");
    expect(resultsIn(host.events).sort((a, b) => b.name.localeCompare(a.name))).toEqual([
      { name: "Throws", outcome: "error", text: "no such file" },
      { name: "Raw", outcome: "error", text: "at once" },
    ]);
  });

  it("whose check of the input throws is an error result, and nothing ran", async () => {
    const host = recordingHost();
    const tool: TurnTool = { ...echo, validate: async () => Promise.reject(new Error("schema broke")) };
    await runTurn(turnOf(callsOnce(calls("Echo", {})), host, [tool]));
    expect(resultsIn(host.events)[0]).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("schema broke") as string,
    });
    expect(typesOf(host.events)).not.toContain("tool-started");
  });

  it("that answers with 10 MB has its answer cut for the model, and says so", async () => {
    const host = recordingHost();
    const model = callsOnce(calls("Big", {}));
    await runTurn(turnOf(model, host, [fakeTool("Big", () => "x".repeat(10_000_000))]));
    const text = resultsIn(host.events)[0]?.text ?? "";
    expect(text.length).toBeLessThan(resultCharsMax + 100);
    expect(text).toContain("characters are left out here");
    expect(JSON.stringify(model.calls[1]?.prompt).length).toBeLessThan(resultCharsMax + 1_000);
  });

  it("that marks its answer as an error, and adds data, has both recorded", async () => {
    const host = recordingHost();
    await runTurn(
      turnOf(callsOnce(calls("T", {})), host, [
        fakeTool("T", () => ({ text: "exit 1", isError: true, data: { exit: 1 } })),
      ]),
    );
    expect(ofType(host.events, "tool-done")[0]).toMatchObject({ outcome: "error", text: "exit 1", data: { exit: 1 } });
  });

  it("shows its progress while it runs, and nothing afterwards", async () => {
    let later: (text: string) => void = () => undefined;
    const host = recordingHost();
    const tool = fakeTool("T", (_, { progress }) => {
      progress("half way");
      later = progress;
      return "";
    });
    await runTurn(turnOf(callsOnce(calls("T", {})), host, [tool]));
    later("too late");
    expect(host.live.parts.filter(({ type }) => type === "tool-progress")).toMatchObject([{ text: "half way" }]);
  });
});

describe("an interrupt", () => {
  const interrupted = (
    model: Parameters<typeof turnOf>[0],
    host: Parameters<typeof turnOf>[1],
    tools: readonly TurnTool[],
    overrides: Partial<TurnOptions> = {},
  ) => {
    const controller = new AbortController();
    const timer = new ManualTimer();
    return {
      controller,
      timer,
      turn: runTurn(turnOf(model, host, tools, { signal: controller.signal, timer, ...overrides })),
    };
  };

  it("before the turn calls no model and journals nothing", async () => {
    const model = fakeModel(() => [finish()]);
    const host = recordingHost();
    const outcome = await runTurn(turnOf(model, host, [], { signal: AbortSignal.abort(new Error("Ctrl-C")) }));
    expect(outcome).toMatchObject({ status: "interrupted", reason: "Ctrl-C", steps: 0 });
    expect([model.calls, host.events]).toEqual([[], []]);
  });

  it("of a running tool that heeds its signal records what the tool says", async () => {
    const began = deferred();
    const tool = fakeTool(
      "T",
      (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve("stopped half way"));
          began.resolve();
        }),
    );
    const host = recordingHost();
    const { controller, timer, turn } = interrupted(callsOnce(calls("T", {})), host, [tool]);
    await began.promise;
    controller.abort("stop");
    expect(await turn).toMatchObject({ status: "interrupted", reason: "stop", steps: 1 });
    expect(resultsIn(host.events)).toEqual([{ name: "T", outcome: "ok", text: "stopped half way" }]);
    expect(typesOf(host.events).at(-1)).toBe("step-done");
    expect(timer.pending).toEqual([]);
  });

  it("of a tool that ignores its signal waits 5 s, gives it up, and then says that its outcome is unknown (C6)", async () => {
    const began = deferred();
    const release = deferred<string>();
    const order: string[] = [];
    const tool = fakeTool("T", () => {
      began.resolve();
      return release.promise;
    });
    const host = recordingHost({
      journal: async (events) => void order.push(...typesOf(events)),
      abandoned: ({ tool: name, settled }) => {
        order.push(`abandoned ${name}`);
        void settled.then(() => order.push("settled"));
      },
    });
    const { controller, timer, turn } = interrupted(callsOnce(calls("T", {})), host, [tool]);
    await began.promise;
    controller.abort("stop");
    await timer.waitsFor(5_000);
    timer.advance(5_000);
    expect(await turn).toMatchObject({ status: "interrupted" });
    expect(order).toEqual(["step-started", "tool-started", "abandoned T", "tool-done", "step-done"]);
    expect(resultsIn(host.events)[0]?.outcome).toBe("unknown");
    release.resolve("late");
    await new Promise((resolve) => setImmediate(resolve));
    expect(order.at(-1)).toBe("settled");
    expect(ofType(host.events, "tool-done")).toHaveLength(1);
  });

  it("leaves calls that had not begun unbegun, and answers them too", async () => {
    const began = deferred();
    const tool = fakeTool(
      "T",
      (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(""));
          began.resolve();
        }),
    );
    const made = Array.from({ length: parallelCallsMax + 5 }, (_, i) => calls("T", {}, `c${i}`));
    const host = recordingHost();
    const { controller, turn } = interrupted(callsOnce(...made), host, [tool]);
    await began.promise;
    controller.abort("stop");
    await turn;
    const started = ofType(host.events, "tool-started").length;
    expect(started).toBeLessThanOrEqual(parallelCallsMax);
    expect(
      ofType(host.events, "tool-done").filter(({ outcome }) => outcome === "refused").length,
    ).toBeGreaterThanOrEqual(5);
    expect(ofType(host.events, "tool-done")).toHaveLength(made.length);
  });

  it("keeps the text that was shown, as a message that ends there", async () => {
    const shown = deferred();
    const host = recordingHost();
    const live = (part: Parameters<typeof host.live>[0]) => {
      host.live(part);
      shown.resolve();
    };
    const model = fakeModel(() => hangingStream(says("I was about to")));
    const { controller, turn } = interrupted(model, { ...host, live }, []);
    await shown.promise;
    controller.abort("stop");
    await turn;
    expect(host.events).toMatchObject([
      { type: "step-started", content: [{ type: "text", text: "I was about to" }], finish: "interrupted" },
      { type: "step-done" },
    ]);
  });

  it("after the last message is too late", async () => {
    const controller = new AbortController();
    const host = recordingHost({ afterStep: async () => controller.abort("stop") });
    const outcome = await runTurn(
      turnOf(
        fakeModel(() => [...says("all done"), finish()]),
        host,
        [],
        { signal: controller.signal },
      ),
    );
    expect(outcome).toMatchObject({ status: "done", text: "all done" });
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
