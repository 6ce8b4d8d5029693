import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mintCallId, mintLoopId, mintStepId, mintTurnId } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import type { AssistantPart, NewEvent, ToolCallPart, ToolOutcome } from "../session-store/index.js";
import { emptyConversation, resultsOf, withEvents } from "./conversation.js";
import type { Conversation } from "./conversation.js";
import { resultsCharsMax, textCharsMax, toPrompt } from "./prompt.js";
import type { Prompt, PromptResult } from "./prompt.js";

const loopId = mintLoopId();
const ids = { loopId, turnId: mintTurnId(), stepId: mintStepId() };
const target = { model: "p/m", specificationVersion: "v4" as const };

const said = (input: string): NewEvent => ({
  type: "turn-started",
  ...ids,
  number: 1,
  order: 1,
  input,
  kind: "prompt",
});
const step = (content: readonly AssistantPart[], model = "p/m"): NewEvent => ({
  type: "step-started",
  ...ids,
  model,
  content,
});
const call = (modelCallId: string, name = "Read", input = "{}"): ToolCallPart => ({
  type: "tool-call",
  callId: mintCallId(),
  name,
  input,
  modelCallId,
});
const began = ({ callId, name }: ToolCallPart): NewEvent => ({ type: "tool-started", ...ids, callId, name });
const done = ({ callId, name }: ToolCallPart, text: string, outcome: ToolOutcome = "ok"): NewEvent => ({
  type: "tool-done",
  ...ids,
  callId,
  name,
  outcome,
  text,
});

const after = (...events: readonly NewEvent[]): Conversation => withEvents(emptyConversation, events, loopId);
const promptOf = (...events: readonly NewEvent[]): Prompt => toPrompt(after(...events), target);
const resultsIn = (prompt: Prompt): readonly PromptResult[] =>
  prompt.flatMap((message) => (message.role === "tool" ? message.content : []));
const callIdsIn = (prompt: Prompt): readonly string[] =>
  prompt.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
      : [],
  );

describe("a conversation", () => {
  it("is the same whether its events came at once or one by one", () => {
    const a = call("1");
    const events = [said("hi"), step([{ type: "text", text: "well" }, a]), began(a), done(a, "61 lines"), said("on")];
    const oneByOne = events.reduce((before, event) => withEvents(before, [event], loopId), emptyConversation);
    expect(oneByOne).toEqual(after(...events));
  });

  it("is unchanged, and the same value, after events without words", () => {
    const before = after(said("hi"));
    expect(withEvents(before, [{ type: "session-idle" }, { type: "step-done", ...ids, usage: {} }], loopId)).toBe(
      before,
    );
  });

  it("holds nothing of other loops and of commands", () => {
    const other = { ...said("for another"), loopId: mintLoopId() };
    const command: NewEvent = { type: "turn-started", number: 2, order: 2, input: "npm test", kind: "command" };
    expect(after(other, command, said("hi")).messages).toEqual([{ role: "user", text: "hi" }]);
  });

  it("survives JSON, which is how others may keep it", () => {
    const a = call("1");
    const conversation = after(said("hi"), step([a]), done(a, "ok"));
    expect(JSON.parse(JSON.stringify(conversation))).toEqual(conversation);
  });

  it("has results in the order of calls, whichever ended first", () => {
    const [a, b] = [call("1"), call("2")];
    const { messages } = after(step([a, b]), began(a), began(b), done(b, "second"), done(a, "first"));
    const message = messages[0];
    expect(message?.role === "assistant" && resultsOf(message).map(({ text }) => text)).toEqual(["first", "second"]);
  });

  it("says of a call without a recorded end that its outcome is unknown, and of one that never began that it did not run", () => {
    const [a, b] = [call("1"), call("2")];
    const results = resultsIn(promptOf(said("hi"), step([a, b]), began(a)));
    expect(results.map(({ output }) => output)).toEqual([
      { type: "error-text", value: expect.stringContaining("outcome of this call is unknown") as string },
      { type: "error-text", value: expect.stringContaining("did not run") as string },
    ]);
  });

  it("tells which paths a restore changed beneath the loop", () => {
    const ref = `v1:sha256:${"a".repeat(64)}` as SnapshotRef;
    const restored: NewEvent = {
      type: "workspace-restored",
      action: "undo",
      entry: "t1",
      from: ref,
      ref,
      order: 1,
      planId: "p",
      result: "done",
      written: Array.from({ length: 60 }, (_, i) => `src/${i}.ts`),
      deleted: ["new.ts"],
      kept: [],
      conflicts: [],
    };
    const [message] = promptOf(restored, said("go on"));
    expect(message?.content).toEqual([
      {
        type: "text",
        text: expect.stringMatching(
          /^\[An undo .*"src\/49\.ts" and 10 more; removed "new\.ts".*\]\n\ngo on$/s,
        ) as string,
      },
    ]);
  });
});

describe("a prompt", () => {
  it("begins with the system, and ends with what is said for one call only", () => {
    const prompt = toPrompt(after(said("hi")), { ...target, system: "be brief", closing: "[answer now]" });
    expect(prompt).toEqual([
      { role: "system", content: "be brief" },
      { role: "user", content: [{ type: "text", text: "hi\n\n[answer now]" }] },
    ]);
  });

  it("lets nobody speak twice in a row, also after an interrupted turn", () => {
    const interrupted: NewEvent = { type: "turn-interrupted", ...ids, order: 2, changed: 0, reason: "Ctrl-C" };
    expect(promptOf(said("one"), interrupted, said("two"))).toEqual([
      { role: "user", content: [{ type: "text", text: "one\n\n[The turn was interrupted: Ctrl-C]\n\ntwo" }] },
    ]);
  });

  it("sends a provider's metadata back to the model it came from, and to no other", () => {
    const metadata = { anthropic: { signature: "c2ln" } };
    const parts: readonly AssistantPart[] = [
      { type: "reasoning", text: "", metadata },
      { type: "text", text: "so", metadata },
      { type: "custom", kind: "anthropic.compaction", metadata },
    ];
    const events = [said("hi"), step(parts), said("on")];
    const content = (model: string, specificationVersion: "v3" | "v4") =>
      toPrompt(after(...events), { model, specificationVersion })[1]?.content;
    expect(content("p/m", "v4")).toEqual([
      { type: "reasoning", text: "", providerOptions: metadata },
      { type: "text", text: "so", providerOptions: metadata },
      { type: "custom", kind: "anthropic.compaction", providerOptions: metadata },
    ]);
    expect(content("p/m", "v3")).toHaveLength(2);
    expect(content("q/m", "v4")).toEqual([{ type: "text", text: "so" }]);
  });

  it("leaves out a message without content, since providers refuse one", () => {
    expect(promptOf(said("hi"), step([]), said("well?"))).toHaveLength(1);
  });

  it("has no reasoning that nothing came of, no text of white space, and no error without a word: providers refuse those", () => {
    const thought = { type: "reasoning", text: "hm", metadata: { p: { signature: "s" } } } as const;
    const a = call("1");
    expect(promptOf(said("hi"), step([thought])).map(({ role }) => role)).toEqual(["user"]);
    expect(promptOf(said("hi"), step([{ type: "text", text: " \n" }])).map(({ role }) => role)).toEqual(["user"]);
    const prompt = promptOf(said("hi"), step([thought, a, thought]), began(a), done(a, "", "error"));
    expect(prompt[1]?.content).toMatchObject([{ type: "reasoning" }, { type: "tool-call" }]);
    expect(resultsIn(prompt)[0]?.output).toEqual({ type: "error-text", value: "[no output]" });
  });

  it("is bounded in each text, and in all results of one step together", () => {
    const many = Array.from({ length: 100 }, (_, i) => call(`c${i}`));
    const results = many.map((each) => done(each, "x".repeat(50_000)));
    const text = { type: "text", text: "y".repeat(2 * textCharsMax) } as const;
    const prompt = promptOf(said("hi"), step([text, ...many]), ...results);
    expect(resultsIn(prompt)).toHaveLength(100);
    const size = resultsIn(prompt).reduce((sum, { output }) => sum + output.value.length, 0);
    expect(size).toBeLessThan(1.1 * resultsCharsMax);
    expect(JSON.stringify(prompt[1]).length).toBeLessThan(1.1 * textCharsMax);
    const few = promptOf(said("hi"), step(many.slice(0, 8)), ...results.slice(0, 8));
    expect(resultsIn(few).every(({ output }) => output.value.length === 50_000)).toBe(true);
  });

  it("keeps the model's own call ids as long as they are its own and fit, and gives ours for repeated or odd ones", () => {
    const given = [call("call_1"), call("call_1"), call("a b"), call(""), call("x".repeat(65)), call("call_2")];
    const again = call("call_2");
    const ours = (at: number): string => given[at]?.callId ?? "";
    const prompt = promptOf(said("hi"), step(given), step([again]));
    expect(callIdsIn(prompt)).toEqual(["call_1", ours(1), ours(2), ours(3), ours(4), "call_2", again.callId]);
    expect(resultsIn(prompt).map(({ toolCallId }) => toolCallId)).toEqual(callIdsIn(prompt));
  });

  it("names only what providers take as a name, and sends only objects as input", () => {
    const prompt = promptOf(
      said("hi"),
      step([call("1", "Re\u0000 ad/\u{1f600}"), call("2", ""), call("3", "Read", "[1"), call("4", "Read", '"text"')]),
    );
    const calls = prompt[1]?.content as readonly { readonly toolName: string; readonly input: unknown }[];
    expect(calls.map(({ toolName }) => toolName)).toEqual(["Re__ad___", "unnamed", "Read", "Read"]);
    expect(calls.map(({ input }) => input)).toEqual([{}, {}, {}, {}]);
  });

  it("of a longer conversation begins with that of a shorter one", () => {
    const [a, b] = [call("same"), call("same")];
    const events = [said("hi"), step([a]), done(a, "1"), step([b]), done(b, "2"), step([{ type: "text", text: "so" }])];
    const prompts = [3, 5, 6].map((count) => toPrompt(after(...events.slice(0, count)), target));
    for (const [index, prompt] of prompts.entries()) {
      const longer = prompts[index + 1];
      if (longer !== undefined) expect(longer.slice(0, prompt.length)).toEqual(prompt);
    }
  });

  it("is one that providers accept, whatever the events hold", () => {
    const text = fc.oneof(fc.string({ unit: "binary", maxLength: 8 }), fc.constantFrom("", "\ud800", "a\udc00", "x"));
    const name = fc.constantFrom("Read", "", "a b", "\ud83d", "x".repeat(80));
    const input = fc.oneof(text, fc.constantFrom('{"a":"\\ud800"}', "{}", "[]", "[".repeat(100) + "]".repeat(100)));
    const part: fc.Arbitrary<AssistantPart> = fc.oneof(
      fc.record({ type: fc.constantFrom("text" as const, "reasoning" as const), text }),
      fc
        .record({ type: fc.constant("tool-call" as const), name, input, modelCallId: text })
        .map((given) => ({ ...given, callId: mintCallId() })),
    );
    const content = fc.array(part, { maxLength: 4 });
    const event: fc.Arbitrary<readonly NewEvent[]> = fc.oneof(
      text.map((input) => [said(input)]),
      fc.tuple(content, text, fc.array(fc.boolean(), { maxLength: 4 })).map(([parts, output, ended]) => {
        const calls = parts.filter((each) => each.type === "tool-call");
        return [step(parts), ...calls.flatMap((each, i) => (ended[i] === true ? [done(each, output)] : []))];
      }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 8 }), (history) => {
        const prompt = promptOf(...history.flat());
        expect(JSON.parse(JSON.stringify(prompt))).toEqual(prompt);
        expect(JSON.stringify(prompt)).not.toMatch(/\\ud[89a-f]/i);
        expect(callIdsIn(prompt)).toEqual(resultsIn(prompt).map(({ toolCallId }) => toolCallId));
        expect(new Set(callIdsIn(prompt)).size).toBe(callIdsIn(prompt).length);
        for (const [index, message] of prompt.entries()) {
          expect(message.content.length).toBeGreaterThan(0);
          if (message.role === "user") expect(prompt[index - 1]?.role).not.toBe("user");
          if (message.role === "tool") expect(prompt[index - 1]?.role).toBe("assistant");
          if (message.role !== "assistant") continue;
          const calls = message.content.filter((each) => each.type === "tool-call");
          for (const { toolName, toolCallId } of calls) {
            expect([toolName, toolCallId]).toEqual([
              expect.stringMatching(/^[\w-]{1,64}$/),
              expect.stringMatching(/^[\w-]{1,64}$/),
            ]);
          }
          if (calls.length > 0) expect(prompt[index + 1]?.role).toBe("tool");
        }
      }),
    );
  });
});

it("an id of ours is never taken for the model's of another call", () => {
  const a = call("x");
  const b: ToolCallPart = { ...call("y"), modelCallId: "x" };
  const c: ToolCallPart = { ...call("z"), modelCallId: b.callId };
  const prompt = promptOf(said("hi"), step([a, b, c]));
  expect(new Set(callIdsIn(prompt)).size).toBe(3);
});
