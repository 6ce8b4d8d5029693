import { describe, expect, it } from "vitest";
import { calls } from "./testing/models.js";
import { callsOnce, echo, fakeTool, ofType, recordingHost, resultsIn, turnOf, typesOf } from "./testing/turns.js";
import { resultCharsMax } from "./tool-output.js";
import type { TurnTool } from "./turn-host.js";
import { runTurn } from "./turn.js";

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
    expect([...resultsIn(host.events)].sort((a, b) => b.name.localeCompare(a.name))).toEqual([
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
