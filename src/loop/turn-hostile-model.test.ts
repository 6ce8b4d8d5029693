import { describe, expect, it } from "vitest";
import { calls, fakeModel, finish, says } from "./testing/models.js";
import { callsOnce, echo, fakeTool, ofType, recordingHost, resultsIn, turnOf, typesOf } from "./testing/turns.js";
import { runTurn } from "./turn.js";

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
