import { describe, expect, it } from "vitest";
import { isLooprigError } from "../core/index.js";
import { parseScript } from "./script.js";
import { scriptedModel } from "./scripted-model.js";
import { recordingHost, ofType, turnOf } from "./testing/turns.js";
import { runTurn } from "./turn.js";

const wrong = (json: string): string => {
  try {
    parseScript(json);
  } catch (error) {
    if (isLooprigError(error, "model.script_invalid")) return error.details.field;
    throw error;
  }
  return "accepted";
};

describe("a scripted model", () => {
  it.each(["v3", "v4"] as const)("plays its steps as a model of specification %s", async (specificationVersion) => {
    const model = scriptedModel(
      [
        {
          text: "I look.",
          calls: [
            { tool: "Echo", input: { a: 1 } },
            { tool: "Echo", input: { a: 2 } },
          ],
        },
        { text: "Done." },
      ],
      { specificationVersion },
    );
    const host = recordingHost();
    const outcome = await runTurn(turnOf(model, host));
    expect(model.specificationVersion).toBe(specificationVersion);
    expect(outcome).toMatchObject({ status: "done", text: "Done.", steps: 2, usage: {} });
    expect(
      ofType(host.events, "tool-done")
        .map(({ text }) => text)
        .sort(),
    ).toEqual(['{"a":1}', '{"a":2}']);
  });

  it("streams text word by word, and the words are the text", async () => {
    const text = "  One two\n three, four.  ";
    const host = recordingHost();
    await runTurn(turnOf(scriptedModel([{ text }]), host));
    const deltas = host.live.parts.map((part) => part.text);
    expect(deltas.length).toBeGreaterThan(3);
    expect(deltas.join("")).toBe(text);
  });

  it("fails clearly when it is called more often than its script has steps", async () => {
    const host = recordingHost();
    const outcome = await runTurn(turnOf(scriptedModel([{ calls: [{ tool: "Echo", input: {} }] }]), host));
    expect(outcome).toMatchObject({
      ...{ status: "failed", error: { code: "model.script_exhausted", retryable: false } },
    });
    expect(outcome).toMatchObject({ error: { message: expect.stringContaining("its one step is played") as unknown } });
  });

  it("is not changed by what is done to the steps it was made of", async () => {
    const steps = [{ text: "before" }];
    const model = scriptedModel(steps);
    steps[0] = { text: "after" };
    expect(await runTurn(turnOf(model, recordingHost()))).toMatchObject({ text: "before" });
  });
});

describe("a script", () => {
  it("is an array of steps", () => {
    expect(parseScript('[{"text":"hi"},{"calls":[{"tool":"Bash","input":{"command":"ls"}}]}]')).toEqual([
      { text: "hi" },
      { calls: [{ tool: "Bash", input: { command: "ls" } }] },
    ]);
  });

  it.each([
    ["not json", "the script"],
    ["{}", "the script"],
    ["[]", "the script"],
    ["[1]", "step 1"],
    ['[{"text":"a"},{}]', "step 2"],
    ['[{"text":1}]', 'step 1, "text"'],
    ['[{"calls":{}}]', 'step 1, "calls"'],
    ['[{"calls":[{"tool":""}]}]', 'step 1, call 1, "tool"'],
    ['[{"calls":[{"tool":"a"}]}]', 'step 1, call 1, "input"'],
    ['[{"say":"a"}]', 'step 1, "say"'],
    ['[{"calls":[{"tool":"a","input":1,"args":2}]}]', 'step 1, call 1, "args"'],
  ])("that is %s is refused with the place", (json, field) => {
    expect(wrong(json)).toBe(field);
  });
});
