/**
 * A model that plays a script: for tests, demonstrations and trying out tools without a key. It is a model like any other,
 * of the form the AI SDK's models have, and says the same thing in every run.
 */
import { ModelError } from "../core/index.js";
import type { LanguageModel } from "./model.js";
import { checkScript } from "./script.js";
import type { ScriptStep } from "./script.js";

/** How a scripted model presents itself. */
export interface ScriptedModelOptions {
  /** The specification it answers by. Default "v4". */
  readonly specificationVersion?: LanguageModel["specificationVersion"] | undefined;
}

/**
 * Each call plays the next step, whoever calls: a model shared by two loops plays one script to both. One without steps is a
 * model that is never to be called. Throws
 * `model.script_invalid`; a call beyond the last step fails with `model.script_exhausted`. It states no token use.
 */
export function scriptedModel(
  steps: readonly ScriptStep[],
  { specificationVersion = "v4" }: ScriptedModelOptions = {},
): LanguageModel {
  const script = checkScript(steps);
  let played = 0;
  return Object.freeze({
    specificationVersion,
    provider: "script",
    modelId: "scripted",
    async doStream(options: { readonly abortSignal?: AbortSignal | undefined }) {
      options.abortSignal?.throwIfAborted();
      const step = script[played];
      if (step === undefined) throw exhausted(script.length);
      played += 1;
      return { stream: streamOf(partsOf(step, played)) };
    },
  });
}

/** The text in words, as a model's comes, then the calls, then the end. */
function partsOf({ text = "", calls = [] }: ScriptStep, number: number): readonly object[] {
  const words = text.match(/\s*\S+\s*$|\s*\S+|\s+$/g) ?? [];
  const id = "text";
  const spoken =
    words.length === 0
      ? []
      : [
          { type: "text-start", id },
          ...words.map((delta) => ({ type: "text-delta", id, delta })),
          { type: "text-end", id },
        ];
  const called = calls.map(({ tool, input }, index) => ({
    type: "tool-call",
    toolCallId: `step-${number}-call-${index + 1}`,
    toolName: tool,
    input: JSON.stringify(input),
  }));
  const unified = calls.length > 0 ? "tool-calls" : "stop";
  const nothing = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const usage = { inputTokens: nothing, outputTokens: { total: undefined, text: undefined, reasoning: undefined } };
  return [
    { type: "stream-start", warnings: [] },
    ...spoken,
    ...called,
    { type: "finish", finishReason: { unified, raw: unified }, usage },
  ];
}

function streamOf(parts: readonly object[]): ReadableStream<unknown> {
  const left = parts.values();
  return new ReadableStream<unknown>({
    pull(controller) {
      const next = left.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
  });
}

const exhausted = (steps: number): ModelError =>
  new ModelError(
    "model.script_exhausted",
    `Cannot play the script: its ${steps === 1 ? "one step is" : `${steps} steps are`} played and the model was called again, wanted a further step; end the script with a step that has text and no calls`,
    { steps },
  );
