/** Which models the compiler lets in, without any of our types naming an AI SDK package. */
import { createOpenAICompatible as createV3 } from "openai-compatible-v3";
import { createOpenAICompatible as createV4 } from "openai-compatible-v4";
import type { LanguageModel } from "./model.js";

const options = { name: "x", baseURL: "http://localhost" };
export const accepted: readonly LanguageModel[] = [createV3(options)("m"), createV4(options)("m")];

declare const ofSdk5: {
  specificationVersion: "v2";
  provider: string;
  modelId: string;
  doStream: LanguageModel["doStream"];
};
// @ts-expect-error models of AI SDK 5 are refused at compile time
export const refused: LanguageModel = ofSdk5;
// @ts-expect-error as is the name of a model
export const named: LanguageModel = "openai/gpt";
