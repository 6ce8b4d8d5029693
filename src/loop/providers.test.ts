/**
 * The model path over the wire: the real providers of both AI SDK lines, side by side, talk to a local server that speaks
 * the OpenAI-compatible streaming protocol, and turns are run with them.
 */
import { createOpenAICompatible as createV3 } from "openai-compatible-v3";
import { createOpenAICompatible as createV4 } from "openai-compatible-v4";
import { describe, expect, it } from "vitest";
import { withEvents } from "./conversation.js";
import type { LanguageModel } from "./model.js";
import { ManualTimer } from "./testing/manual-timer.js";
import {
  cuts,
  delta,
  event,
  openAiServer,
  refuses,
  stalls,
  streamedCall,
  streams,
  usage,
} from "./testing/openai-server.js";
import type { Answer, OpenAiServer } from "./testing/openai-server.js";
import { deferred, echo, fakeTool, ofType, recordingHost, turnOf, typesOf } from "./testing/turns.js";
import { runTurn } from "./turn.js";

const lines: readonly { readonly line: "v3" | "v4"; readonly model: (baseURL: string) => LanguageModel }[] = [
  { line: "v3", model: (baseURL) => createV3({ name: "local", baseURL, includeUsage: true })("m") },
  { line: "v4", model: (baseURL) => createV4({ name: "local", baseURL, includeUsage: true })("m") },
];

const hello = [delta({ role: "assistant", content: "" }), delta({ content: "Hel" }), delta({ content: "lo" })];
const stop = delta({}, "stop");
const callEnd = delta({}, "tool_calls");

describe.each(lines)("a provider of specification $line", ({ line, model: modelAt }) => {
  const serving = async (
    answers: readonly Answer[],
    run: (server: OpenAiServer, model: LanguageModel) => Promise<void>,
  ): Promise<void> => {
    await using server = await openAiServer(answers);
    await run(server, modelAt(server.baseURL));
  };

  it("is what it says", () => {
    expect(modelAt("http://127.0.0.1:1").specificationVersion).toBe(line);
  });

  it("streams text and states its tokens", async () => {
    await serving([streams(...hello, stop, usage(12, 3, 8))], async (server, model) => {
      const host = recordingHost();
      const outcome = await runTurn(turnOf(model, host));
      expect(outcome).toMatchObject({
        status: "done",
        text: "Hello",
        finish: "stop",
        usage: { inputTokens: 12, outputTokens: 3, cachedInputTokens: 8 },
      });
      expect(host.live.parts.map(({ text }) => text)).toEqual(["Hel", "lo"]);
      expect(server.requests[0]).toMatchObject({ stream: true, messages: [{ role: "user", content: "do it" }] });
      expect(server.requests[0]?.tools?.[0]).toMatchObject({
        function: { name: "Echo", parameters: { type: "object" } },
      });
    });
  });

  it("streams calls side by side, and is sent their results in the order of calls", async () => {
    const first = streams(
      delta({ role: "assistant", content: "Two at once." }),
      ...streamedCall(0, "call_a", "Echo", '{"n"', ":1}"),
      ...streamedCall(1, "call_b", "Echo", '{"n":2}'),
      callEnd,
      usage(20, 9),
    );
    await serving([first, streams(...hello, stop, usage(40, 2))], async (server, model) => {
      const host = recordingHost();
      const outcome = await runTurn(turnOf(model, host));
      expect(outcome).toMatchObject({ text: "Hello", steps: 2, usage: { inputTokens: 60, outputTokens: 11 } });
      const messages = server.requests[1]?.messages ?? [];
      expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool"]);
      expect(messages[1]).toMatchObject({
        content: "Two at once.",
        tool_calls: [
          { id: "call_a", function: { name: "Echo", arguments: '{"n":1}' } },
          { id: "call_b", function: { name: "Echo", arguments: '{"n":2}' } },
        ],
      });
      expect(messages.slice(2)).toMatchObject([
        { tool_call_id: "call_a", content: '{"n":1}' },
        { tool_call_id: "call_b", content: '{"n":2}' },
      ]);
    });
  });

  it("that sends arguments which are no JSON is told so, and can go on", async () => {
    const bad = streams(...streamedCall(0, "call_a", "Echo", '{"path": "a'), callEnd);
    await serving([bad, streams(...hello, stop)], async (server, model) => {
      const host = recordingHost();
      expect(await runTurn(turnOf(model, host))).toMatchObject({ status: "done", text: "Hello" });
      expect(typesOf(host.events)).not.toContain("tool-started");
      const [, assistant, result] = server.requests[1]?.messages ?? [];
      expect(assistant?.tool_calls?.[0]?.function.arguments).toBe("{}");
      expect(result?.content).toContain("not valid JSON");
    });
  });

  it("that repeats a call id in a later step has both calls answered", async () => {
    const call = (n: number): Answer => streams(...streamedCall(0, "call_0", "Echo", `{"n":${n}}`), callEnd);
    await serving([call(1), call(2), streams(...hello, stop)], async (server, model) => {
      await runTurn(turnOf(model, recordingHost()));
      const messages = server.requests[2]?.messages ?? [];
      const called = messages.flatMap(({ tool_calls }) => tool_calls?.map(({ id }) => id) ?? []);
      const answered = messages.flatMap(({ tool_call_id }) => tool_call_id ?? []);
      expect(called).toEqual(answered);
      expect(new Set(called).size).toBe(2);
      expect(messages.filter(({ role }) => role === "tool").map(({ content }) => content)).toEqual([
        '{"n":1}',
        '{"n":2}',
      ]);
    });
  });

  it("keeps reasoning, and sends it back", async () => {
    const thinking = streams(delta({ reasoning_content: "hm" }), ...streamedCall(0, "call_a", "Echo", "{}"), callEnd);
    await serving([thinking, streams(...hello, stop)], async (server, model) => {
      const host = recordingHost();
      await runTurn(turnOf(model, host));
      expect(ofType(host.events, "step-started")[0]?.content[0]).toMatchObject({ type: "reasoning", text: "hm" });
      expect(server.requests[1]?.messages[1]).toMatchObject({ reasoning_content: "hm" });
    });
  });

  it("that reports an error in the middle fails the turn, with what was said on record", async () => {
    const failing = streams(
      ...hello,
      event({ error: { message: "the server is on fire", type: "server_error", code: 500 } }),
    );
    await serving([failing], async (_, model) => {
      const host = recordingHost();
      const outcome = await runTurn(turnOf(model, host));
      expect(outcome).toMatchObject({ status: "failed", error: { code: "model.stream_failed" } });
      expect(outcome.status === "failed" && outcome.error.message).toContain("on fire");
      expect(ofType(host.events, "step-started")).toMatchObject([
        { content: [{ type: "text", text: "Hello" }], finish: "error" },
      ]);
      expect(typesOf(host.events)).toEqual(["step-started", "step-done"]);
    });
  });

  it("that sends a line which is no JSON fails the turn", async () => {
    await serving([streams(...hello, "data: {oops\n\n")], async (_, model) => {
      expect(await runTurn(turnOf(model, recordingHost()))).toMatchObject({ error: { code: "model.stream_failed" } });
    });
  });

  it("whose connection is cut after text fails the turn", async () => {
    await serving([cuts(...hello)], async (server, model) => {
      const outcome = await runTurn(turnOf(model, recordingHost()));
      expect(outcome).toMatchObject({ status: "failed", error: { code: "model.stream_cut", retryable: true } });
      expect(server.requests).toHaveLength(1);
    });
  });

  it("whose connection is cut before any text is called again", async () => {
    const timer = new ManualTimer();
    await serving([cuts(), streams(...hello, stop)], async (_, model) => {
      const turn = runTurn(turnOf(model, recordingHost(), [echo], { timer }));
      await timer.waitsFor(1_000);
      timer.advance(1_000);
      expect(await turn).toMatchObject({ status: "done", text: "Hello" });
    });
  });

  it("whose stream ends without a reason fails the turn", async () => {
    await serving([streams(...hello)], async (_, model) => {
      expect(await runTurn(turnOf(model, recordingHost()))).toMatchObject({ status: "failed" });
    });
  });

  it("that is asked too often is called again after the time it names", async () => {
    const timer = new ManualTimer();
    const busy = refuses(429, "slow down", { "retry-after": "2" });
    await serving([busy, streams(...hello, stop)], async (server, model) => {
      const turn = runTurn(turnOf(model, recordingHost(), [echo], { timer }));
      await timer.waitsFor(2_000);
      timer.advance(2_000);
      expect(await turn).toMatchObject({ status: "done", text: "Hello" });
      expect(server.requests).toHaveLength(2);
    });
  });

  it("that refuses the key is called once", async () => {
    await serving([refuses(401, "no such key sk-0123456789abcdef")], async (server, model) => {
      const outcome = await runTurn(turnOf(model, recordingHost()));
      expect(outcome).toMatchObject({ error: { code: "model.call_failed", details: { status: 401 } } });
      expect(outcome.status === "failed" && outcome.error.message).toContain('"no such key [masked]"');
      expect(server.requests).toHaveLength(1);
    });
  });

  it("that nobody listens to any more is given up, and its connection closed", async () => {
    const timer = new ManualTimer();
    const shown = deferred();
    await serving([stalls(...hello)], async (server, model) => {
      const host = recordingHost();
      const live: typeof host.live = Object.assign(
        (part: Parameters<typeof host.live>[0]) => {
          host.live(part);
          if (part.text === "lo") shown.resolve();
        },
        { parts: host.live.parts },
      );
      const turn = runTurn(turnOf(model, { ...host, live }, [echo], { timer, idleMs: 30_000 }));
      await shown.promise;
      timer.advance(30_000);
      expect(await turn).toMatchObject({
        status: "failed",
        error: { code: "model.stalled", details: { idleMs: 30_000 } },
      });
      await server.clientGone;
    });
  });

  it("is interrupted in the middle of its answer, and its connection closed", async () => {
    const controller = new AbortController();
    await serving([stalls(...hello)], async (server, model) => {
      const host = recordingHost();
      const turn = runTurn(
        turnOf(
          model,
          {
            ...host,
            live: (part) => {
              if (part.text === "lo") controller.abort("enough");
            },
          },
          [echo],
          { signal: controller.signal },
        ),
      );
      expect(await turn).toMatchObject({ status: "interrupted", reason: "enough" });
      expect(ofType(host.events, "step-started")).toMatchObject([
        { content: [{ type: "text", text: "Hello" }], finish: "interrupted" },
      ]);
      await server.clientGone;
    });
  });

  it("is told to answer without tools when the turn has come to its limit", async () => {
    const again = streams(...streamedCall(0, "call_a", "Echo", "{}"), callEnd);
    await serving([again, streams(...hello, stop)], async (server, model) => {
      const turn = turnOf(model, recordingHost());
      const outcome = await runTurn({ ...turn, loop: { ...turn.loop, limits: { steps: 1, toolCalls: 5 } } });
      expect(outcome).toMatchObject({ status: "done", text: "Hello", limit: "steps", steps: 2 });
      expect(server.requests[1]?.tool_choice).toBe("none");
      expect(server.requests[1]?.messages.at(-1)).toMatchObject({ role: "user" });
    });
  });

  it("goes on with a conversation that was folded from a journal", async () => {
    await serving(
      [streams(...streamedCall(0, "c", "Lines", "{}"), callEnd), streams(...hello, stop), streams(...hello, stop)],
      async (server, model) => {
        const host = recordingHost();
        const turn = turnOf(model, host, [fakeTool("Lines", () => "61 lines")]);
        await runTurn(turn);
        const { loopId } = turn;
        const resumed = withEvents(
          withEvents(turn.conversation, host.events, loopId),
          [{ type: "turn-started", loopId, number: 2, order: 2, input: "and now?", kind: "prompt" }],
          loopId,
        );
        await runTurn({ ...turn, conversation: resumed });
        expect(server.requests[2]?.messages.map(({ role, content }) => [role, content])).toEqual([
          ["user", "do it"],
          ["assistant", null],
          ["tool", "61 lines"],
          ["assistant", "Hello"],
          ["user", "and now?"],
        ]);
      },
    );
  });
});
