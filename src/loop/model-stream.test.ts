import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mintCallId } from "../core/index.js";
import { callModel } from "./model-stream.js";
import type { ModelCall, ModelReply } from "./model-stream.js";
import { inputCharsMax, replyCharsMax } from "./reply.js";
import { callModelRetrying } from "./retrying-model.js";
import { ManualTimer } from "./testing/manual-timer.js";
import { calls, fakeModel, finish, hangingStream, says, streamOf } from "./testing/models.js";
import type { LanguageModel } from "./model.js";

const callOf = (overrides: Partial<ModelCall> = {}): ModelCall => ({
  prompt: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [],
  toolChoice: "auto",
  signal: new AbortController().signal,
  idleMs: 120_000,
  timer: new ManualTimer(),
  mintCallId,
  onText: () => undefined,
  ...overrides,
});

const replyTo = (parts: readonly unknown[]): Promise<ModelReply> =>
  callModel(
    fakeModel(() => parts),
    callOf(),
  );
const fail = (): never => {
  throw new Error("a trap");
};
const trapAt = (object: object, name: string): object => Object.defineProperty(object, name, { get: fail });
const contentOf = async (parts: readonly unknown[]) => (await replyTo(parts)).content;
const codeOf = (reply: ModelReply): string => (reply.status === "failed" ? reply.failure.error.code : reply.status);

describe("the answer of a model", () => {
  it("is text as it comes, in order, with usage and the reason of its end", async () => {
    const heard: string[] = [];
    const model = fakeModel(() => [
      { type: "stream-start", warnings: [] },
      ...says("one "),
      ...says("two"),
      { type: "ping" },
      finish("length", { input: 7, output: 3 }),
    ]);
    const reply = await callModel(model, callOf({ onText: (text) => heard.push(text) }));
    expect(reply).toEqual({
      status: "complete",
      content: [
        { type: "text", text: "one " },
        { type: "text", text: "two" },
      ],
      finish: "length",
      usage: { inputTokens: 7, outputTokens: 3 },
    });
    expect(heard).toEqual(["one ", "two"]);
  });

  it("keeps reasoning with the last metadata its provider gave, also when the reasoning is empty", async () => {
    const metadata = (signature: string) => ({ providerMetadata: { anthropic: { signature } } });
    expect(
      await contentOf([
        { type: "reasoning-start", id: "r", ...metadata("first") },
        { type: "reasoning-delta", id: "r", delta: "", ...metadata("last") },
        { type: "reasoning-end", id: "r" },
        { type: "reasoning-start", id: "empty" },
        { type: "reasoning-end", id: "empty" },
        finish(),
      ]),
    ).toEqual([{ type: "reasoning", text: "", metadata: { anthropic: { signature: "last" } } }]);
  });

  it("takes a call whole, whatever was streamed of it before", async () => {
    const content = await contentOf([
      { type: "tool-input-start", id: "1", toolName: "Read" },
      { type: "tool-input-delta", id: "1", delta: '{"a":' },
      { type: "tool-input-end", id: "1" },
      { ...(calls("Read", { a: 1 }, "1") as object), providerMetadata: { google: { thoughtSignature: "s" } } },
      finish("tool-calls"),
    ]);
    expect(content).toMatchObject([
      {
        type: "tool-call",
        name: "Read",
        input: '{"a":1}',
        modelCallId: "1",
        metadata: { google: { thoughtSignature: "s" } },
      },
    ]);
  });

  it("takes a call that was only streamed, and marks one that never ended", async () => {
    const content = await contentOf([
      { type: "tool-input-start", id: "1", toolName: "Read" },
      { type: "tool-input-delta", id: "1", delta: "{}" },
      { type: "tool-input-end", id: "1" },
      { type: "tool-input-start", id: "2", toolName: "Patch", inputEncoding: "text" },
      { type: "tool-input-delta", id: "2", delta: 'a "b"' },
      { type: "tool-input-end", id: "2" },
      { type: "tool-input-start", id: "3", toolName: "Write" },
      { type: "tool-input-delta", id: "3", delta: '{"file' },
      finish("length"),
    ]);
    expect(content).toMatchObject([
      { name: "Read", input: "{}" },
      { name: "Patch", input: '"a \\"b\\""' },
      { name: "Write", input: '{"file', cut: true },
    ]);
    expect(content[0]).not.toHaveProperty("cut");
  });

  it("gives every call an id of ours, whatever ids the model gives", async () => {
    const content = await contentOf([calls("A", {}, "0"), calls("B", {}, "0"), calls("C", {}, ""), finish()]);
    const ids = content.map((part) => (part.type === "tool-call" ? part.callId : ""));
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain("0");
  });

  it("has nothing of calls that the provider ran itself, and of parts nobody knows", async () => {
    expect(
      await contentOf([
        { type: "tool-input-start", id: "1", toolName: "web_search", providerExecuted: true },
        { ...(calls("web_search", {}, "1") as object), providerExecuted: true },
        { type: "tool-result", toolCallId: "1", toolName: "web_search", result: {} },
        { type: "something-new", anything: true },
        ...says("found"),
        finish(),
      ]),
    ).toEqual([{ type: "text", text: "found" }]);
  });

  it("states only token counts that are counts", async () => {
    const usage = { inputTokens: { total: -1, cacheRead: NaN }, outputTokens: { total: "7", reasoning: 2 } };
    expect(await replyTo([{ type: "finish", finishReason: { unified: "stop" }, usage }])).toMatchObject({
      usage: { reasoningTokens: 2 },
    });
    expect(await replyTo([{ type: "finish", finishReason: "stop" }])).toMatchObject({ finish: "other", usage: {} });
  });
});

describe("what a provider hands over", () => {
  it("is kept of a call's input up to a bound, and the call is cut there", async () => {
    const long = "x".repeat(inputCharsMax + 1);
    const [whole, streamed] = await contentOf([
      calls("Write", long, "1"),
      { type: "tool-input-start", id: "2", toolName: "Write" },
      ...Array.from({ length: 3 }, () => ({ type: "tool-input-delta", id: "2", delta: "y".repeat(inputCharsMax / 2) })),
      { type: "tool-input-end", id: "2" },
      finish(),
    ]);
    for (const part of [whole, streamed]) {
      expect(part).toMatchObject({ type: "tool-call", cut: true });
      expect(part?.type === "tool-call" && part.input.length).toBe(inputCharsMax);
    }
  });

  it("never makes the reader hang or throw, whatever it is", async () => {
    const value = fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withTypedArray: true });
    const type = fc.constantFrom(
      ...["text-start", "text-delta", "text-end", "reasoning-delta", "tool-input-start", "tool-input-delta"],
      ...["tool-input-end", "tool-call", "custom", "finish", "error", "ping"],
    );
    const members = fc.constantFrom("id", "delta", "toolCallId", "toolName", "input", "kind", "error", "usage");
    const part = fc.oneof(
      value,
      fc.tuple(type, fc.dictionary(members, fc.oneof(fc.string(), value))).map(([of, rest]) => ({ ...rest, type: of })),
      fc.tuple(type, members).map(([of, name]) => trapAt({ type: of }, name)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 20 }), fc.boolean(), async (parts, ends) => {
        const reply = await replyTo(ends ? [...parts, finish()] : parts);
        expect(["complete", "failed"]).toContain(reply.status);
        if (reply.status === "failed") expect(reply.failure.error.code).toMatch(/^model\.(?:stream_|invalid_)/);
        expect(() => JSON.stringify(reply.content)).not.toThrow();
      }),
      { numRuns: 300 },
    );
  });

  it("never makes the call hang or throw, whatever it throws", async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything({ withBigInt: true, withNullPrototype: true }), async (thrown) => {
        const model = fakeModel(() => {
          throw thrown;
        });
        const reply = await callModel(model, callOf());
        expect(reply).toMatchObject({ status: "failed", failure: { error: { code: "model.call_failed" } } });
      }),
      { numRuns: 200 },
    );
  });

  it.each<[string, unknown]>([
    ["nothing to read with", { getReader: () => undefined }],
    ["a reader that throws", { getReader: () => ({ read: fail, cancel: fail }) }],
    ["a reader whose parts are none", { getReader: () => ({ read: () => undefined, cancel: () => undefined }) }],
    ["a reader that reads at once", { getReader: () => ({ read: () => ({ done: true }), cancel: fail }) }],
    ["a lock on it", { getReader: fail }],
  ])("as a stream with %s fails the call", async (_, stream) => {
    const model = { ...fakeModel(() => []), doStream: async () => ({ stream }) } as unknown as LanguageModel;
    expect((await callModel(model, callOf())).status).toBe("failed");
  });
});

describe("a call of a model", () => {
  it("names its tools, and says when they may not be called", async () => {
    const model = fakeModel(() => [finish()]);
    const tool = { name: "Read", description: "reads", inputSchema: { type: "object" } };
    await callModel(model, callOf({ tools: [tool], toolChoice: "none" }));
    await callModel(model, callOf());
    expect(model.calls[0]).toMatchObject({ tools: [{ type: "function", ...tool }], toolChoice: { type: "none" } });
    expect(model.calls[1]).not.toHaveProperty("tools");
    expect(model.calls[1]).not.toHaveProperty("toolChoice");
  });

  it.each<[string, readonly unknown[], string]>([
    [
      "an error part",
      [...says("a"), { type: "error", error: { message: "overloaded" } }, finish()],
      "model.stream_failed",
    ],
    ["the reason error", [...says("a"), finish("error")], "model.stream_failed"],
    ["no end", says("a"), "model.stream_cut"],
    ["nothing at all", [], "model.stream_cut"],
    ["a part that is none", [...says("a"), 7], "model.invalid_response"],
    ["a delta without text", [{ type: "text-delta", id: "0" }], "model.invalid_response"],
    ["more text than any answer has", [...says("x".repeat(replyCharsMax + 1)), finish()], "model.invalid_response"],
    [
      "more calls than any answer has",
      [...Array.from({ length: 1_100 }, () => calls("A", {})), finish()],
      "model.invalid_response",
    ],
  ])("whose stream has %s fails", async (_, parts, code) => {
    expect(codeOf(await replyTo(parts))).toBe(code);
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["no stream", {}],
    ["a stream that is none", { stream: [] }],
  ])("that answers with %s fails", async (_, answer) => {
    const model = { ...fakeModel(() => []), doStream: async () => answer } as unknown as LanguageModel;
    expect(codeOf(await callModel(model, callOf()))).toBe("model.invalid_response");
  });

  it("that throws at once fails like one that rejects", async () => {
    const model: LanguageModel = {
      ...fakeModel(() => []),
      doStream: () => {
        throw new Error("no key");
      },
    };
    const reply = await callModel(model, callOf());
    expect(reply).toMatchObject({ failure: { error: { code: "model.call_failed", retryable: false } } });
  });

  it("keeps what was said until it failed, and nothing that is half", async () => {
    const reply = await replyTo([
      { type: "reasoning-delta", id: "r", delta: "hm" },
      ...says("I begin"),
      { type: "tool-input-start", id: "1", toolName: "Read" },
      { type: "error", error: "gone" },
    ]);
    expect(reply).toMatchObject({ status: "failed", content: [{ type: "text", text: "I begin" }] });
  });

  it("is given up after silence, and the provider is told", async () => {
    const timer = new ManualTimer();
    let cancelled = false;
    const model = fakeModel(() =>
      hangingStream([{ type: "text-delta", id: "0", delta: "so" }], () => (cancelled = true)),
    );
    const heard = new Promise<void>((resolve) => {
      void callModel(model, callOf({ timer, onText: () => resolve() })).then((reply) => (ended = reply));
    });
    let ended: ModelReply | undefined;
    await heard;
    timer.advance(119_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toBeUndefined();
    timer.advance(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toMatchObject({ failure: { error: { code: "model.stalled", retryable: true } } });
    expect([cancelled, model.calls[0]?.abortSignal.aborted, timer.pending]).toEqual([true, true, []]);
  });

  it("is not given up while anything comes, however long it takes", async () => {
    const timer = new ManualTimer();
    let source: ReadableStreamDefaultController<unknown> | undefined;
    const model = fakeModel(() => new ReadableStream<unknown>({ start: (controller) => void (source = controller) }));
    const reply = callModel(model, callOf({ timer }));
    for (const part of [{ type: "ping" }, ...says("slow"), { type: "ping" }]) {
      await new Promise((resolve) => setImmediate(resolve));
      timer.advance(100_000);
      source?.enqueue(part);
    }
    await new Promise((resolve) => setImmediate(resolve));
    source?.enqueue(finish());
    expect(await reply).toMatchObject({ status: "complete", content: [{ text: "slow" }] });
  });

  it("that has its end does not wait for a provider that goes on, and tells it so", async () => {
    let cancelled = false;
    const model = fakeModel(() => hangingStream([...says("done"), finish()], () => (cancelled = true)));
    expect(await callModel(model, callOf())).toMatchObject({ status: "complete" });
    expect([cancelled, model.calls[0]?.abortSignal.aborted]).toEqual([true, true]);
  });

  it("is interrupted at once, also by a model that heeds no signal and never answers", async () => {
    const controller = new AbortController();
    const model = fakeModel(() => new Promise<never>(() => undefined));
    const reply = callModel(model, callOf({ signal: controller.signal }));
    controller.abort("stop");
    expect(await reply).toEqual({ status: "interrupted", content: [] });
  });

  it("that answers after it was given up has its stream cancelled", async () => {
    const controller = new AbortController();
    let answer: (stream: { stream: ReadableStream<unknown> }) => void = () => undefined;
    const model: LanguageModel = {
      ...fakeModel(() => []),
      doStream: () => new Promise((resolve) => (answer = resolve)),
    };
    const reply = callModel(model, callOf({ signal: controller.signal }));
    await Promise.resolve();
    controller.abort("stop");
    await reply;
    await new Promise<void>((resolve) => answer({ stream: hangingStream([], resolve) }));
  });

  it("does not begin when it is interrupted before", async () => {
    const model = fakeModel(() => [finish()]);
    expect(await callModel(model, callOf({ signal: AbortSignal.abort("stop") }))).toMatchObject({
      status: "interrupted",
    });
    expect(model.calls).toHaveLength(0);
  });

  it("hears an interrupt while a stream sends without a pause", async () => {
    const controller = new AbortController();
    const endless = new ReadableStream<unknown>({ pull: (stream) => stream.enqueue({ type: "ping" }) });
    setImmediate(() => controller.abort("stop"));
    expect(
      await callModel(
        fakeModel(() => endless),
        callOf({ signal: controller.signal }),
      ),
    ).toMatchObject({
      status: "interrupted",
    });
  });

  it("puts no more than a short, masked line of a provider's words into its message", async () => {
    const message = `bad key sk-abcdef123456, Bearer abc.def\n${"x".repeat(1_000)}`;
    const reply = await replyTo([{ type: "error", error: { message, requestBodyValues: "the prompt" } }]);
    if (reply.status !== "failed") throw new Error("it should have failed");
    const { error } = reply.failure;
    expect(error.message).toContain("bad key [masked], [masked] xxx");
    expect(error.message.length).toBeLessThan(600);
    expect(JSON.stringify(error)).not.toContain("the prompt");
  });
});

describe("a repeated call of a model", () => {
  const passing = Object.assign(new Error("slow down"), { statusCode: 429, isRetryable: true });
  const policy = { retries: 2, delayMs: 1_000, delayMsMax: 60_000 };

  it("waits longer each time, and then answers", async () => {
    const timer = new ManualTimer();
    const model = fakeModel((call) => {
      if (call <= 2) throw passing;
      return [...says("at last"), finish()];
    });
    const reply = callModelRetrying(model, callOf({ timer }), policy, () => 1);
    await timer.waitsFor(1_000);
    timer.advance(1_000);
    await timer.waitsFor(2_000);
    timer.advance(2_000);
    expect(await reply).toMatchObject({ status: "complete", content: [{ text: "at last" }] });
    expect(timer.pending).toEqual([]);
  });

  it("happens a bounded number of times", async () => {
    const timer = new ManualTimer();
    const model = fakeModel(() => {
      throw passing;
    });
    const reply = callModelRetrying(model, callOf({ timer }), policy, () => 1);
    for (const delay of [1_000, 2_000]) {
      await timer.waitsFor(delay);
      timer.advance(delay);
    }
    expect(await reply).toMatchObject({ failure: { error: { code: "model.call_failed", retryable: true } } });
    expect(model.calls).toHaveLength(3);
  });

  it("waits as long as the provider asked, and not at all for one that asks too much", async () => {
    const timer = new ManualTimer();
    const asking = (seconds: string) =>
      Object.assign(new Error("slow down"), { statusCode: 429, responseHeaders: { "retry-after": seconds } });
    const model = fakeModel((call) => {
      throw asking(call === 1 ? "7" : "3600");
    });
    const reply = callModelRetrying(model, callOf({ timer }), policy, () => 0);
    await timer.waitsFor(7_000);
    timer.advance(7_000);
    expect(await reply).toMatchObject({ failure: { error: { code: "model.call_failed", details: { status: 429 } } } });
    expect(model.calls).toHaveLength(2);
  });

  it.each<[string, unknown, boolean]>([
    ["a refused key", Object.assign(new Error("no"), { statusCode: 401, isRetryable: false }), false],
    ["a failure of no known kind", new Error("no"), false],
    ["a failing server", Object.assign(new Error("no"), { statusCode: 503 }), true],
  ])("happens for %s only if that can pass", async (_, error, repeated) => {
    const timer = new ManualTimer();
    const model = fakeModel((call) => {
      if (call === 1) throw error;
      return [finish()];
    });
    const reply = callModelRetrying(model, callOf({ timer }), policy, () => 1);
    if (repeated) {
      await timer.waitsFor(1_000);
      timer.advance(1_000);
    }
    expect((await reply).status).toBe(repeated ? "complete" : "failed");
  });

  it("does not happen once text was shown", async () => {
    const shown: string[] = [];
    const model = fakeModel(() => [...says("I begin"), { type: "error", error: { type: "overloaded_error" } }]);
    const reply = await callModelRetrying(model, callOf({ onText: (text) => shown.push(text) }), policy, () => 1);
    expect(reply).toMatchObject({ failure: { error: { code: "model.stream_failed", retryable: true } } });
    expect([shown, model.calls.length]).toEqual([["I begin"], 1]);
  });

  it("is called off by an interrupt", async () => {
    const timer = new ManualTimer();
    const controller = new AbortController();
    const model = fakeModel(() => {
      throw passing;
    });
    const reply = callModelRetrying(model, callOf({ timer, signal: controller.signal }), policy, () => 1);
    await timer.waitsFor(1_000);
    controller.abort("stop");
    expect(await reply).toMatchObject({ status: "interrupted" });
    expect([model.calls.length, timer.pending]).toEqual([1, []]);
  });

  it("reads the stream of the attempt that answered", async () => {
    const timer = new ManualTimer();
    const model = fakeModel((call) => (call === 1 ? streamOf([]) : [...says("second"), finish()]));
    const reply = callModelRetrying(model, callOf({ timer }), policy, () => 1);
    await timer.waitsFor(1_000);
    timer.advance(1_000);
    expect(await reply).toMatchObject({ content: [{ text: "second" }] });
  });
});
