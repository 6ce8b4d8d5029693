/** Models that do what a test wants, in the stream's own words. */
import type { LanguageModel } from "../model.js";

export interface CallOptions {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly { readonly type: string; readonly name: string; readonly inputSchema: unknown }[];
  readonly toolChoice?: { readonly type: string };
  readonly abortSignal: AbortSignal;
}

export interface FakeModel extends LanguageModel {
  readonly calls: readonly CallOptions[];
}

/** `answer` is called once per call of the model and gives the parts of its stream, or a stream. */
export function fakeModel(
  answer: (
    call: number,
    options: CallOptions,
  ) => readonly unknown[] | ReadableStream<unknown> | Promise<readonly unknown[]>,
): FakeModel {
  const calls: CallOptions[] = [];
  return {
    specificationVersion: "v4",
    provider: "fake",
    modelId: "model",
    calls,
    async doStream(options: CallOptions) {
      calls.push(options);
      const parts = await answer(calls.length, options);
      return { stream: parts instanceof ReadableStream ? parts : streamOf(parts) };
    },
  };
}

export const streamOf = (parts: readonly unknown[]): ReadableStream<unknown> =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });

/** A stream of these parts that then says nothing more. */
export const hangingStream = (
  parts: readonly unknown[],
  onCancel: () => void = () => undefined,
): ReadableStream<unknown> =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
    },
    cancel: onCancel,
  });

export const says = (text: string): readonly unknown[] => [
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: text },
  { type: "text-end", id: "0" },
];

export const calls = (toolName: string, input: unknown, toolCallId = "call-0"): unknown => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: typeof input === "string" ? input : JSON.stringify(input),
});

export const finish = (
  unified = "stop",
  usage: { readonly input?: number; readonly output?: number } = {},
): unknown => ({
  type: "finish",
  finishReason: { unified, raw: unified },
  usage: { inputTokens: { total: usage.input }, outputTokens: { total: usage.output } },
});
