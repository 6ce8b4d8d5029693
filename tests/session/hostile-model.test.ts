/**
 * Models and providers at their worst: what they stream, throw or withhold ends a turn or goes into it, is on record either way,
 * and the session takes the next turn. Part of it over the wire, with the real providers of both lines.
 */
import { createOpenAICompatible as createV3 } from "openai-compatible-v3";
import { createOpenAICompatible as createV4 } from "openai-compatible-v4";
import fc from "fast-check";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { LanguageModel } from "../../src/loop/index.js";
import { calls, finish, hangingStream, says } from "../../src/loop/testing/models.js";
import {
  cuts,
  delta,
  event,
  openAiServer,
  stalls,
  streamedCall,
  streams,
} from "../../src/loop/testing/openai-server.js";
import { HostileScene } from "./hostile-scene.js";
import type { Answer } from "./hostile-scene.js";

const read = (id: string) => calls("Read", { file_path: "a.txt" }, id);
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const trap = (name: string): object =>
  Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error("a trap");
    },
  });
const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};
const endless = (part: unknown): ReadableStream<unknown> =>
  new ReadableStream({ pull: (stream) => stream.enqueue(part) });
const usage = (total: unknown) => ({
  type: "finish",
  finishReason: { unified: "stop" },
  usage: { inputTokens: { total, cacheRead: total }, outputTokens: { total, reasoning: total } },
});

describe("a reply", () => {
  const scene = new HostileScene({ limits: { steps: 3, toolCalls: 20 } });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each<[string, readonly unknown[], string]>([
    ["with nothing", [finish()], ""],
    ["of white space", [...says(" \n\t"), finish()], " \n\t"],
    ["of mere reasoning", [{ type: "reasoning-delta", id: "r", delta: "hm" }, finish()], ""],
    [
      "of signed reasoning",
      [
        { type: "reasoning-start", id: "r", providerMetadata: { p: { signature: "s" } } },
        { type: "reasoning-end", id: "r" },
        finish(),
      ],
      "",
    ],
    ["of half characters and NULs", [...says("a\ud800\0b"), finish()], "a\ud800\0b"],
    ["that ends for a reason nobody knows", [...says("a"), finish("tired")], "a"],
    ["that ends for no reason", [...says("a"), { type: "finish" }], "a"],
    ["whose tokens are no numbers", [...says("a"), usage(NaN)], "a"],
    ["whose tokens are negative", [...says("a"), usage(-7)], "a"],
    ["whose tokens are texts", [...says("a"), usage("7")], "a"],
    ["whose tokens are too many", [...says("a"), usage(Number.MAX_VALUE)], "a"],
    ["whose tokens are traps", [...says("a"), { ...(finish() as object), usage: trap("inputTokens") }], "a"],
    [
      "with parts nobody knows",
      [{ type: "hologram" }, { type: "" }, ...says("a"), { type: "__proto__" }, finish()],
      "a",
    ],
    [
      "with parts of calls that never began",
      [{ type: "tool-input-delta", id: "x", delta: "{" }, { type: "tool-input-end", id: "x" }, ...says("a"), finish()],
      "a",
    ],
    [
      "with results of calls that were never made",
      [{ type: "tool-result", toolCallId: "x", toolName: "Read", result: "forged" }, ...says("a"), finish()],
      "a",
    ],
    [
      "with calls the provider ran",
      [{ ...(read("x") as object), providerExecuted: true }, ...says("a"), finish()],
      "a",
    ],
    [
      "with metadata that is none",
      ["x", 7, [1], { toJSON: () => "x" }, { a: 1n }, trap("toJSON"), revoked()]
        .map((providerMetadata) => ({ type: "text-delta", id: "0", delta: "a", providerMetadata }))
        .concat([finish() as never]),
      "aaaaaaa",
    ],
    [
      "with metadata of 10 MB",
      [{ type: "text-delta", id: "0", delta: "a", providerMetadata: { p: "x".repeat(10_000_000) } }, finish()],
      "a",
    ],
    [
      "with metadata of odd names",
      [
        {
          type: "text-delta",
          id: "0",
          delta: "a",
          providerMetadata: JSON.parse('{"__proto__":{"a":1},"constructor":{},"":{"\\ud800":1}}') as object,
        },
        finish(),
      ],
      "a",
    ],
  ])("%s ends its turn, and the next one begins", async (_, parts, text) => {
    const { result, events } = await scene.attack([parts]);
    expect(result).toMatchObject({ status: "done", text });
    for (const each of events) expect(JSON.stringify(each).length).toBeLessThan(10_000);
  });

  it("without a start of its calls has them run, and a call that is cut is told so", async () => {
    const cut = [
      { type: "tool-input-start", id: "b", toolName: "Write" },
      { type: "tool-input-delta", id: "b", delta: '{"file_path":"cut"' },
      finish("length"),
    ];
    const { told } = await scene.attack([[read("a"), ...cut]]);
    expect(told).toMatchObject([
      { type: "text", text: expect.stringContaining("one") as string },
      { type: "error-text", text: expect.stringContaining("your message ended before the input did") as string },
    ]);
  });

  it("of one call for ever comes to a limit that everybody is told of", async () => {
    const { result, told } = await scene.attack(
      Array.from({ length: 9 }, (_, i) => [read(`c${i}`), finish("tool-calls")]),
    );
    expect(result).toMatchObject({ status: "done", steps: 4 });
    expect(result.status === "done" && result.text).toMatch(
      /^Stopped at the limit of 3 steps in one turn\. Submit again/,
    );
    expect(told.map(({ type }) => type)).toEqual(["text", "text", "text"]);
  });

  it("of hundreds of calls has as many run as it may, and an answer to each", async () => {
    const { result, told } = await scene.attackCalls(...Array.from({ length: 600 }, (_, i) => read(`c${i}`)));
    expect(result).toMatchObject({ status: "done", text: "Fine." });
    expect(told).toHaveLength(600);
    expect(told.filter(({ type }) => type === "text")).toHaveLength(20);
    expect(told.at(-1)?.text).toMatch(/did not run: the limit of 20 tool calls/);
  });

  it("stays in a conversation which another session goes on with", () => scene.proveResumable());
});

describe("a provider", () => {
  const scene = new HostileScene();
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each<[string, Answer, string]>([
    ["throws", throwing(new Error("no")), "model.call_failed"],
    ["throws a text", throwing("no"), "model.call_failed"],
    ["throws nothing", throwing(undefined), "model.call_failed"],
    ["throws a symbol", throwing(Symbol("no")), "model.call_failed"],
    ["throws what cannot be looked at", throwing(revoked()), "model.call_failed"],
    ["throws traps", throwing(trap("message")), "model.call_failed"],
    [
      "throws a text that cannot be made",
      throwing({ toString: throwing("no"), message: { toString: throwing("no") } }),
      "model.call_failed",
    ],
    [
      "throws what looks like ours",
      throwing(Object.assign(new Error("no"), { "~looprig": true, code: 7 })),
      "model.call_failed",
    ],
    [
      "throws statuses that are none",
      throwing({ statusCode: Symbol("s"), responseHeaders: { "retry-after": Symbol("s") } }),
      "model.call_failed",
    ],
    ["ends without an end", says("I begin"), "model.stream_cut"],
    ["ends for an error", [...says("I begin"), finish("error")], "model.stream_failed"],
    ["reports an error", [...says("a"), { type: "error", error: new Error("on fire") }], "model.stream_failed"],
    ["reports no error as one", [...says("a"), { type: "error" }], "model.stream_failed"],
    ["reports traps", [...says("a"), { type: "error", error: trap("isRetryable") }], "model.stream_failed"],
    ["reports what cannot be looked at", [...says("a"), { type: "error", error: revoked() }], "model.stream_failed"],
    [
      "reports codes that are none",
      [...says("a"), { type: "error", error: { code: Symbol("c"), status: 1n, name: {} } }],
      "model.stream_failed",
    ],
    ["streams a number", [...says("a"), 7], "model.invalid_response"],
    ["streams nothing", [...says("a"), undefined], "model.invalid_response"],
    ["streams what cannot be looked at", [...says("a"), revoked()], "model.invalid_response"],
    ["streams a trap", [...says("a"), trap("type")], "model.invalid_response"],
    [
      "streams a delta that is no text",
      [...says("a"), { type: "text-delta", id: "0", delta: { toString: () => "x" } }],
      "model.invalid_response",
    ],
    [
      "streams a call that is an object",
      [...says("a"), { type: "tool-call", toolCallId: "x", toolName: "Read", input: {} }],
      "model.invalid_response",
    ],
    [
      "streams thousands of calls",
      [...says("a"), ...Array.from({ length: 5_000 }, (_, i) => read(`c${i}`)), finish()],
      "model.invalid_response",
    ],
    [
      "streams text for ever",
      endless({ type: "text-delta", id: "0", delta: "y".repeat(10_000) }),
      "model.invalid_response",
    ],
    ["streams nothings for ever", endless({ type: "text-delta", id: "0", delta: "" }), "model.invalid_response"],
    ["breaks its stream", () => new ReadableStream({ start: (stream) => stream.error("broken") }), "model.stream_cut"],
  ])("that %s fails its turn, says so on record, and serves the next one", async (_, answer, code) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const passing = setInterval(() => vi.advanceTimersByTime(10_000), 1);
    try {
      // A failure that may pass by itself is tried four times.
      const { result, events } = await scene.turn([answer, answer, answer, answer]);
      expect(result).toMatchObject({ status: "failed", error: { code } });
      expect(events.at(-1)).toMatchObject({ type: "turn-failed", code });
      expect(JSON.stringify(events.at(-1)).length).toBeLessThan(2_000);
    } finally {
      clearInterval(passing);
      vi.useRealTimers();
    }
    await scene.proveUsable();
    expect(JSON.stringify(scene.prompts.at(-1))).toContain(`The turn ended with an error (${code}).`);
  });

  it("that falls silent is given up after two minutes, and what it said is on record", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const silent = scene.turn([hangingStream(says("I was about to"))], undefined, () =>
        setImmediate(() => vi.advanceTimersByTime(120_000)),
      );
      const { result, events } = await silent;
      expect(result).toMatchObject({
        status: "failed",
        error: { code: "model.stalled", details: { idleMs: 120_000 } },
      });
      expect(events.find(({ type }) => type === "step-started")).toMatchObject({
        content: [{ type: "text", text: "I was about to" }],
      });
    } finally {
      vi.useRealTimers();
    }
    await scene.proveUsable();
  });

  it("that never answers is interrupted at once", async () => {
    const session = await scene.session();
    const { result } = await scene.turn([hangingStream([])], ({ type }) => {
      if (type === "turn-started") setImmediate(() => void session.interrupt({ reason: "enough" }));
    });
    expect(result).toMatchObject({ status: "interrupted", reason: "enough" });
    await scene.proveUsable();
    expect(JSON.stringify(scene.prompts.at(-1))).toContain("The turn was interrupted: enough");
  });

  it("that streams anything at all, in any order, never stops the session", async () => {
    const texts = fc.constantFrom("", "a", "a.txt", "Read", "{}", '{"file_path":"a.txt"}', "__proto__", "\ud800", "\0");
    const types = fc.constantFrom(
      ...["text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"],
      ...["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result", "custom"],
      ...["stream-start", "response-metadata", "file", "source", "ping", "raw", "error", "finish", "?"],
    );
    const part = fc.record(
      {
        ...{ type: types, id: texts, delta: texts, toolCallId: texts, toolName: texts, input: texts, kind: texts },
        ...{ providerExecuted: fc.boolean(), inputEncoding: texts, error: fc.anything(), usage: fc.anything() },
        finishReason: fc.record({ unified: fc.constantFrom("stop", "tool-calls", "length", "error", "?") }),
        providerMetadata: fc.oneof(fc.anything(), fc.dictionary(texts, fc.jsonValue())),
      },
      { requiredKeys: ["type", "id", "delta", "toolCallId", "toolName", "input"] },
    );
    const streams = fc.array(fc.oneof({ arbitrary: part, weight: 20 }, { arbitrary: fc.anything(), weight: 1 }), {
      maxLength: 12,
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const passing = setInterval(() => vi.advanceTimersByTime(10_000), 1);
    try {
      await fc.assert(
        fc.asyncProperty(streams, async (parts) => {
          const { result } = await scene.turn([
            [...parts, finish()],
            [...parts, finish()],
          ]);
          expect(["done", "failed"]).toContain(result.status);
          if (result.status === "failed")
            expect(result.error).toMatchObject({ code: expect.stringMatching(/^model\./) as string });
        }),
        { numRuns: 60 },
      );
    } finally {
      clearInterval(passing);
      vi.useRealTimers();
    }
    await scene.proveUsable();
  });

  it("stays in a conversation which another session goes on with", () => scene.proveResumable());
});

const lines: readonly { readonly line: string; readonly at: (baseURL: string) => LanguageModel }[] = [
  { line: "v3", at: (baseURL) => createV3({ name: "local", baseURL, includeUsage: true })("m") },
  { line: "v4", at: (baseURL) => createV4({ name: "local", baseURL, includeUsage: true })("m") },
];

it.each(lines)("over the wire, a session with a provider of $line lives through all of it", async ({ at }) => {
  const hello = [delta({ role: "assistant", content: "" }), delta({ content: "Hel" }), delta({ content: "lo" })];
  const fine = streams(...hello, delta({}, "stop"));
  const called = (...each: readonly (readonly string[])[]) => streams(...each.flat(), delta({}, "tool_calls"));
  await using server = await openAiServer([
    called(
      streamedCall(0, "call_0", "Read", '{"file_path"', ':"a.txt"}'),
      streamedCall(1, "call_0", "Read", '{"file_path": "a.t'),
      streamedCall(2, "", "Erase", "{}"),
      streamedCall(3, "call_3", "Read", '{"file_path":"../outside/secret"}'),
    ),
    fine,
    streams(...hello, event({ error: { message: "on fire", type: "server_error", code: 500 } })),
    cuts(...hello),
    stalls(...hello),
    streams(...hello, "data: {oops\n\n"),
    streams(delta({ reasoning_content: "hm" }), delta({}, "stop")),
    fine,
    fine,
  ]);
  await using scene = new HostileScene();
  const outside = scene.beside();
  const session = await (await scene.rig(at(server.baseURL))).startSession();
  const results: string[] = [];
  for (let turn = 1; turn <= 7; turn++) {
    const running = await session.submit(`turn ${turn}`);
    for await (const part of running) {
      if (turn === 4 && part.type === "text-delta" && part.text === "lo") void session.interrupt();
    }
    const result = await running.done;
    results.push(result.status === "failed" ? ((result.error as { code?: string }).code ?? "") : result.status);
  }
  expect(results).toEqual([
    ...["done", "model.stream_failed", "model.stream_cut", "interrupted", "model.stream_failed", "done", "done"],
  ]);
  const told = server.requests[1]?.messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
  expect(told).toMatchObject([
    expect.stringContaining("one"),
    expect.stringContaining("not valid JSON"),
    expect.stringContaining('There is no tool "Erase"'),
    expect.stringContaining("leads out of the workspace"),
  ]);
  await session.close();
  expect(scene.beside()).toEqual(outside);

  await using resumed = await scene.resume(session.id, at(server.baseURL));
  expect(await (await resumed.submit("turn 8")).done).toMatchObject({ status: "done", text: "Hello" });
  const [before, after] = [server.requests[7]?.messages ?? [], server.requests[8]?.messages ?? []];
  expect(after.slice(0, before.length)).toEqual(before);
  const ids = after.flatMap(({ tool_calls }) => tool_calls?.map(({ id }) => id) ?? []);
  expect(new Set(ids).size).toBe(4);
  expect(after.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(ids);
});
