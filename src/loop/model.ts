/**
 * The model we drive, described structurally: the published types name no AI SDK package, so a project on AI SDK 6
 * (specification v3) and one on 7 (v4) both compile, and nothing of theirs is a dependency of ours.
 */
import { ModelError } from "../core/index.js";
import { memberOf, textMember } from "./foreign.js";
import { shortened } from "./plain-text.js";

/**
 * A language model of the AI SDK, specification v3 (AI SDK 6) or v4 (AI SDK 7), as far as we use it. A loop calls `doStream` once per step,
 * and again, at most three times, when it fails before anything was shown and the failure can pass.
 */
export interface LanguageModel {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  /** Called with the options of its own specification, which `model-stream.ts` builds. */
  doStream(options: never): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** How a model is named in journals and messages: `provider/model`. */
export const modelName = (model: LanguageModel): string =>
  [textMember(model, "provider"), textMember(model, "modelId")]
    .map((name) => shortened(name ?? "unnamed", nameCharsMax))
    .join("/");

const nameCharsMax = 200;

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

const specificationOf = (given: unknown): unknown => memberOf(given, "specificationVersion");

const isComplete = (given: unknown): boolean =>
  textMember(given, "provider") !== undefined &&
  textMember(given, "modelId") !== undefined &&
  typeof memberOf(given, "doStream") === "function";

function describe(given: unknown, version: unknown): string {
  if (typeof given === "string") return "a text";
  if (given === null || (typeof given !== "object" && typeof given !== "function")) return `of type ${typeof given}`;
  if (typeof version !== "string") return "an object without a specification version";
  if (version === "v3" || version === "v4") return "a model without provider, modelId or doStream";
  return `of specification ${JSON.stringify(version.slice(0, 20))}`;
}
