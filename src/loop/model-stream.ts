/**
 * One call of a model: options of its specification in, stream out, parsed and put together. Owns the call's end: whatever
 * happens, the provider is told to stop and nobody waits for it. Retrying is `retrying-model.ts`.
 *
 * A model is code of others. It may ignore its signal, answer late, or never; every wait here is raced against the signal
 * and against silence.
 */
import { onAbort, pacer, raceAbort } from "../core/index.js";
import type { CallId } from "../core/index.js";
import type { AssistantPart, TokenUsage } from "../session-store/index.js";
import { memberOf } from "./foreign.js";
import { modelName } from "./model.js";
import type { LanguageModel } from "./model.js";
import { callFailure, cutFailure, invalidResponse, stallFailure, streamFailure } from "./model-failure.js";
import type { ModelFailure } from "./model-failure.js";
import type { Prompt } from "./prompt.js";
import { ReplyAssembly } from "./reply.js";
import { parseStreamPart } from "./stream-part.js";
import type { Timer } from "./timer.js";

/** A tool as the model is told of it. */
export interface AdvertisedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema. */
  readonly inputSchema: unknown;
}

export interface ModelCall {
  readonly prompt: Prompt;
  readonly tools: readonly AdvertisedTool[];
  /** "none": the tools are named, since the conversation speaks of them, and may not be called. */
  readonly toolChoice: "auto" | "none";
  readonly signal: AbortSignal;
  /** How long nothing may come, the time to the first part included. */
  readonly idleMs: number;
  readonly timer: Timer;
  readonly mintCallId: () => CallId;
  /** Text as it comes. Not awaited. */
  readonly onText: (text: string) => void;
}

export type ModelReply =
  | {
      readonly status: "complete";
      readonly content: readonly AssistantPart[];
      readonly finish: string;
      readonly usage: TokenUsage;
    }
  /** `content` is what was said until then: text only, since half a call or unsigned reasoning is of no use to anyone. */
  | { readonly status: "failed"; readonly failure: ModelFailure; readonly content: readonly AssistantPart[] }
  | { readonly status: "interrupted"; readonly content: readonly AssistantPart[] };

/** Never rejects. */
export async function callModel(model: LanguageModel, call: ModelCall): Promise<ModelReply> {
  const { signal, idleMs, timer } = call;
  const reply = new ReplyAssembly(call.mintCallId);
  if (signal.aborted) return { status: "interrupted", content: [] };
  const giveUp = new AbortController();
  const forget = onAbort(signal, () => giveUp.abort(signal.reason));
  const silence = watchSilence(timer, idleMs, () => giveUp.abort(new Error("The model fell silent")));
  const name = modelName(model);
  const failed = (failure: ModelFailure): ModelReply => ({ status: "failed", failure, content: textOnly(reply) });
  try {
    const opened = await open(model, call, giveUp.signal);
    if (!opened.ok) return ended(opened.failure);
    return await read(opened.reader);
  } finally {
    silence.stop();
    forget();
    // Also after success: a provider that goes on sending is told that nobody listens.
    giveUp.abort(new Error("The call has ended"));
  }

  function ended(failure: ModelFailure): ModelReply {
    if (signal.aborted) return { status: "interrupted", content: textOnly(reply) };
    return failed(giveUp.signal.aborted ? stallFailure(name, idleMs) : failure);
  }

  async function read(reader: ReadableStreamDefaultReader<unknown>): Promise<ModelReply> {
    const pace = pacer(undefined);
    try {
      for (;;) {
        // A stream that always has more at once would otherwise keep timers and signals from being heard.
        await pace();
        const next = await raceAbort(Promise.resolve(reader.read()), giveUp.signal);
        silence.heard();
        if (next.done) return ended(cutFailure(name, undefined));
        const part = parseStreamPart(next.value);
        if (part === undefined) return ended(invalidResponse(name, "a part of its stream has a wrong shape"));
        if (part.type === "error") return ended(streamFailure(name, part.error));
        if (part.type === "finish") {
          if (part.reason === "error") return ended(streamFailure(name, undefined));
          return { status: "complete", content: reply.content(), finish: part.reason, usage: part.usage };
        }
        reply.add(part);
        if (part.type === "text-delta" && part.delta !== "") call.onText(part.delta);
        if (reply.overfull) return ended(invalidResponse(name, "it is larger than an answer may be"));
      }
    } catch (error) {
      return ended(cutFailure(name, error));
    } finally {
      stopSource(reader);
    }
  }
}

type Opened =
  | { readonly ok: true; readonly reader: ReadableStreamDefaultReader<unknown> }
  | { readonly ok: false; readonly failure: ModelFailure };

async function open(model: LanguageModel, call: ModelCall, signal: AbortSignal): Promise<Opened> {
  // The published type takes no options at all, so that models of both specifications fit it.
  const anyModel = model as unknown as { doStream(options: object): PromiseLike<unknown> };
  let answer: unknown;
  try {
    // In a callback, so that what it throws at once is a rejection like any other.
    const answering = Promise.resolve().then(() => anyModel.doStream(callOptions(call, signal)));
    answer = await raceAbort(answering, signal, discard);
  } catch (error) {
    return { ok: false, failure: callFailure(modelName(model), error) };
  }
  const reader = readerOf(answer);
  return reader === undefined
    ? { ok: false, failure: invalidResponse(modelName(model), "it holds no readable stream") }
    : { ok: true, reader };
}

/** The same members in both specifications. */
const callOptions = ({ prompt, tools, toolChoice }: ModelCall, abortSignal: AbortSignal): object => ({
  prompt,
  abortSignal,
  ...(tools.length === 0
    ? {}
    : { tools: tools.map((tool) => ({ type: "function", ...tool })), toolChoice: { type: toolChoice } }),
});

/** Undefined for what holds no stream, or one that somebody else reads: `getReader` throws then. */
function readerOf(answer: unknown): ReadableStreamDefaultReader<unknown> | undefined {
  const stream = memberOf(answer, "stream") as ReadableStream<unknown> | undefined;
  try {
    return stream?.getReader();
  } catch {
    return undefined;
  }
}

/** An answer that came after the call was given up. */
function discard(answer: unknown): void {
  const reader = readerOf(answer);
  if (reader !== undefined) stopSource(reader);
}

/** Not awaited: a source may take for ever to stop. Its failure to do so is nobody's concern any more. */
function stopSource(reader: ReadableStreamDefaultReader<unknown>): void {
  Promise.resolve()
    .then(() => reader.cancel())
    .catch(() => undefined);
}

function watchSilence(timer: Timer, ms: number, onSilence: () => void): { heard(): void; stop(): void } {
  let stop = timer.after(ms, onSilence);
  return {
    heard() {
      stop();
      stop = timer.after(ms, onSilence);
    },
    stop: () => stop(),
  };
}

const textOnly = (reply: ReplyAssembly): readonly AssistantPart[] =>
  reply
    .content()
    .flatMap((part) => (part.type === "text" && part.text !== "" ? [{ type: "text", text: part.text }] : []));
