/**
 * The model we drive, described structurally: the published types name no AI SDK package, so a project on AI SDK 6
 * (specification v3) and one on 7 (v4) both compile, and nothing of theirs is a dependency of ours.
 */
import { ModelError } from "../core/index.js";

export interface LanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  /** Called with the options of its own specification, which `model-stream.ts` builds. */
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** How a model is named in journals and messages: `provider/model`. */
export const modelName = (model: LanguageModel): string => `${model.provider}/${model.modelId}`;

/** Throws `model.unsupported_specification` unless `given` is a model we can drive. */
export function assertLanguageModel(given: unknown, loop: string): asserts given is LanguageModel {
  const version = specificationOf(given);
  if ((version === "v3" || version === "v4") && isComplete(given)) return;
  throw new ModelError(
    "model.unsupported_specification",
    `Cannot use the model of loop ${JSON.stringify(loop)}: it is ${describe(given, version)}, wanted an AI SDK language model of specification "v3" or "v4"; call a provider of AI SDK 6 or 7, as in anthropic("…")`,
    { given: describe(given, version) },
  );
}

const specificationOf = (given: unknown): unknown =>
  typeof given === "object" || typeof given === "function"
    ? (given as { readonly specificationVersion?: unknown } | null)?.specificationVersion
    : undefined;

const isComplete = (given: unknown): boolean => {
  const { provider, modelId, doStream } = given as Partial<Record<keyof LanguageModel, unknown>>;
  return typeof provider === "string" && typeof modelId === "string" && typeof doStream === "function";
};

function describe(given: unknown, version: unknown): string {
  if (typeof given === "string") return "a text";
  if (given === null || (typeof given !== "object" && typeof given !== "function")) return `of type ${typeof given}`;
  if (typeof version !== "string") return "an object without a specification version";
  if (version === "v3" || version === "v4") return "a model without provider, modelId or doStream";
  return `of specification ${JSON.stringify(version.slice(0, 20))}`;
}
