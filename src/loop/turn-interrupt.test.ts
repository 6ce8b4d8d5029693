import { describe, expect, it } from "vitest";
import { ManualTimer } from "./testing/manual-timer.js";
import { calls, fakeModel, finish, hangingStream, says } from "./testing/models.js";
import { callsOnce, deferred, fakeTool, ofType, recordingHost, resultsIn, turnOf, typesOf } from "./testing/turns.js";
import { parallelCallsMax } from "./tool-batch.js";
import type { TurnTool } from "./turn-host.js";
import { runTurn } from "./turn.js";
import type { TurnOptions } from "./turn.js";

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
