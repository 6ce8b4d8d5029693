import { describe, expect, it } from "vitest";
import { calls } from "./testing/models.js";
import { callsOnce, fakeTool, recordingHost, resultsIn, turnOf, typesOf } from "./testing/turns.js";
import type { TurnTool } from "./turn-host.js";
import { runTurn } from "./turn.js";

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
