/**
 * The chosen model, made. Providers are loaded by their packages, on demand, from where this very file is installed: what
 * lies in the workspace is the user's project, or an agent's work, and is never run by looks for a provider.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import type * as OpenAICompatible from "@ai-sdk/openai-compatible";
import { ModelError, errnoOf, isLooprigError } from "../core/index.js";
import type { LanguageModel } from "../loop/index.js";
import { usage } from "./args.js";
import type { Environment } from "./environment.js";
import { installLine } from "./install-line.js";
import type { ModelChoice } from "./model-choice.js";
import { oneLine } from "./spelling.js";
import { readTextFile } from "./text-file.js";

type CompatibleModule = Pick<typeof OpenAICompatible, "createOpenAICompatible">;

const scriptBytesMax = 16 * 1024 * 1024;

/** Throws `model.*`, `usage.invalid`. Asks no server. */
export async function loadModel(choice: ModelChoice, environment: Environment): Promise<LanguageModel> {
  switch (choice.kind) {
    case "script":
      return loadScript(choice.file, environment);
    case "provider":
      return loadProvider(choice.provider, choice.name);
    case "compatible":
      return connect(choice.baseUrl, choice.name, environment.env["LOOPRIG_API_KEY"]);
    default:
      return choice satisfies never;
  }
}

async function loadScript(file: string, { fileSystem, cwd }: Environment): Promise<LanguageModel> {
  const { parseScript, scriptedModel } = await import("../loop/index.js");
  const resolved = path.resolve(cwd, file);
  const json = readGiven(fileSystem, resolved, "--model", scriptBytesMax);
  try {
    return scriptedModel(parseScript(json));
  } catch (error) {
    if (!isLooprigError(error, "model.script_invalid")) throw error;
    const { field, wanted } = error.details;
    // Where it stops being JSON, only the parser says.
    const where = error.cause instanceof SyntaxError ? ` (${oneLine(error.cause.message)})` : "";
    throw new ModelError(
      error.code,
      `Cannot read the script ${JSON.stringify(resolved)}: ${field} is wrong${where}, wanted ${wanted}`,
      error.details,
      { cause: error, hint: "looprig run --help shows steps of a script" },
    );
  }
}

/** A file named on the command line. */
export function readGiven(
  fileSystem: Environment["fileSystem"],
  file: string,
  option: string,
  bytesMax: number,
): string {
  let problem: string;
  try {
    const read = readTextFile(fileSystem, file, bytesMax);
    if ("text" in read) return read.text;
    ({ problem } = read);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined) throw error;
    problem = errno === "ENOENT" ? "there is no such file" : `it cannot be read (${errno})`;
  }
  throw usage(option, `Cannot read ${JSON.stringify(file)} for ${option}: ${problem}`, "a text file");
}

/** The protocol's own package comes with looprig, unless optional dependencies were left out. */
async function connect(baseURL: string, name: string, apiKey: string | undefined): Promise<LanguageModel> {
  const { createOpenAICompatible } = await load<CompatibleModule>("openai-compatible");
  const provider = createOpenAICompatible({
    ...{ name: "openai-compatible", baseURL, includeUsage: true },
    ...(apiKey === undefined || apiKey === "" ? {} : { apiKey }),
  });
  return provider.chatModel(name);
}

async function loadProvider(provider: string, name: string): Promise<LanguageModel> {
  const module = await load<Readonly<Record<string, unknown>>>(provider);
  const names = [camelCase(provider), camelCase(provider.slice(provider.indexOf("-") + 1))];
  const make = names.map((each) => module[each]).find((each) => typeof each === "function");
  if (make === undefined) throw unusable(provider, `it exports no ${names[0] ?? provider}`);
  try {
    // What it is, is checked where the loop is defined.
    return (make as (name: string) => LanguageModel)(name);
  } catch (cause) {
    throw unusable(provider, reasonOf(cause), cause);
  }
}

async function load<M>(provider: string): Promise<M> {
  let url: string;
  try {
    url = import.meta.resolve(packageOf(provider));
  } catch (cause) {
    throw isNotFound(cause) ? missing(provider) : unusable(provider, reasonOf(cause), cause);
  }
  try {
    return (await import(url)) as M;
  } catch (cause) {
    throw unusable(provider, reasonOf(cause), cause);
  }
}

const isNotFound = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";

const packageOf = (provider: string): string => `@ai-sdk/${provider}`;

/** `amazon-bedrock` exports `amazonBedrock`, or `bedrock` alone. */
const camelCase = (name: string): string => name.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

const missing = (provider: string): ModelError =>
  new ModelError(
    "model.provider_missing",
    `Cannot use a model of ${JSON.stringify(provider)}: ${packageOf(provider)} is not installed beside looprig`,
    { provider, package: packageOf(provider) },
    { hint: installLine(fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, ""), packageOf(provider)) },
  );

const unusable = (provider: string, reason: string, cause?: unknown): ModelError =>
  new ModelError(
    "model.provider_unusable",
    `Cannot use a model of ${JSON.stringify(provider)}: ${packageOf(provider)} is installed, and ${reason}; wanted a provider of AI SDK 6 or 7`,
    { provider, package: packageOf(provider), reason },
    { cause },
  );

const reasonOf = (cause: unknown): string =>
  oneLine(cause instanceof Error ? cause.message : String(cause)).slice(0, 300) || "it cannot be loaded";
