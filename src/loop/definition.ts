/**
 * What a loop is made of: a name, a model, what it is told, which tools it has and how long a turn may get. A definition is
 * data; it acquires nothing and is shared by all sessions of its rig.
 */
import { LoopDefinitionError, LooprigError } from "../core/index.js";
import type { ToolDefinition } from "../tool/index.js";
import { assertLanguageModel } from "./model.js";
import type { LanguageModel } from "./model.js";

/** How long a turn may get. Counted anew for each turn. */
export interface TurnLimits {
  /** Model calls of one turn that may call tools. One more, without tools, ends a turn that comes to the limit. */
  readonly steps: number;
  /** Tool calls of one turn; further ones are refused, and the turn is ended in the same way. */
  readonly toolCalls: number;
}

export const defaultLimits: TurnLimits = Object.freeze({ steps: 50, toolCalls: 500 });

/** A loop as `defineLoop` has checked it: frozen, and shared by all sessions of its rigs. */
export interface LoopDefinition<Name extends string = string> {
  readonly name: Name;
  readonly model: LanguageModel;
  readonly system: string | undefined;
  readonly tools: readonly ToolDefinition[];
  readonly limits: TurnLimits;
}

/** What `defineLoop` is given. */
export interface LoopOptions<Name extends string = string> {
  /** 1 to 64 letters, digits, `-` or `_`, starting with a letter; unique in its rig. */
  readonly name: Name;
  /** An AI SDK language model of specification v3 or v4. */
  readonly model: LanguageModel;
  /** Told to the model before every conversation. */
  readonly system?: string | undefined;
  readonly tools?: readonly ToolDefinition[] | undefined;
  /** Default: 50 steps and 500 tool calls in a turn. */
  readonly limits?: { readonly steps?: number | undefined; readonly toolCalls?: number | undefined } | undefined;
}

/** Defines a loop. Throws `loop_definition.invalid`, `loop_definition.repeated_tool`, `model.unsupported_specification`. */
export function defineLoop<const Name extends string>(options: LoopOptions<Name>): LoopDefinition<Name> {
  try {
    return readLoop<Name>(options);
  } catch (error) {
    if (isOurs(error)) throw error;
    // A getter that throws, or a proxy that cannot be asked, is a wrong option like any other.
    throw invalid("", "options", "an object whose members can be read", error);
  }
}

function readLoop<Name extends string>(given: unknown): LoopDefinition<Name> {
  if (!isRecord(given)) throw invalid("", "options", "an object");
  const name = nameOf(given["name"]);
  refuseUnknown(given, ["name", "model", "system", "tools", "limits"], name, "");
  const { model, system, tools = [], limits = {} } = given;
  assertLanguageModel(model, name);
  if (system !== undefined && typeof system !== "string") throw invalid(name, "system", "a text, or nothing");
  return Object.freeze({
    name: name as Name,
    model,
    system,
    tools: toolsOf(tools, name),
    limits: limitsOf(limits, name),
  });
}

/** What was thrown may be anything, a proxy too. */
function isOurs(error: unknown): boolean {
  try {
    return error instanceof LooprigError;
  } catch {
    return false;
  }
}

function nameOf(given: unknown): string {
  if (typeof given === "string" && /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(given)) return given;
  throw invalid(
    typeof given === "string" ? given.slice(0, 64) : "",
    "name",
    "1 to 64 letters, digits, - or _, starting with a letter",
  );
}

function toolsOf(given: unknown, loop: string): readonly ToolDefinition[] {
  if (!Array.isArray(given)) throw invalid(loop, "tools", "a list of tool definitions");
  const names = new Set<string>();
  const tools = given.map((tool: unknown, index) => {
    if (!isToolDefinition(tool)) {
      throw invalid(loop, `tools[${index}]`, "a definition made by defineTool, defineTools or defineReadTools");
    }
    for (const name of tool.produces) {
      if (names.has(name)) throw repeated(loop, name);
      names.add(name);
    }
    return tool;
  });
  return Object.freeze(tools);
}

/** Whether the definition came from `defineTool` is for whoever binds it to say; here its metadata is what counts. */
const isToolDefinition = (given: unknown): given is ToolDefinition =>
  isRecord(given) &&
  typeof given["name"] === "string" &&
  isTexts(given["produces"]) &&
  given["produces"].length > 0 &&
  isTexts(given["requires"]);

function limitsOf(given: unknown, loop: string): TurnLimits {
  if (!isRecord(given)) throw invalid(loop, "limits", "an object");
  refuseUnknown(given, ["steps", "toolCalls"], loop, "limits.");
  const { steps = defaultLimits.steps, toolCalls = defaultLimits.toolCalls } = given;
  if (!isCount(steps) || steps < 1) throw invalid(loop, "limits.steps", "an integer from 1");
  if (!isCount(toolCalls)) throw invalid(loop, "limits.toolCalls", "an integer from 0");
  return Object.freeze({ steps, toolCalls });
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** A misspelt option would otherwise be a limit or a tool that is silently not there. */
function refuseUnknown(given: object, known: readonly string[], loop: string, prefix: string): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  throw invalid(loop, `${prefix}${unknown.slice(0, 64)}`, `one of ${known.join(", ")}`);
}

const invalid = (loop: string, field: string, wanted: string, cause?: unknown): LoopDefinitionError =>
  new LoopDefinitionError(
    "loop_definition.invalid",
    `Cannot define loop ${JSON.stringify(loop)}: ${JSON.stringify(field)} is wrong, wanted ${wanted}`,
    { loop, field, wanted },
    { cause },
  );

const repeated = (loop: string, tool: string): LoopDefinitionError =>
  new LoopDefinitionError(
    "loop_definition.repeated_tool",
    `Cannot define loop ${JSON.stringify(loop)}: two of its definitions produce a tool ${JSON.stringify(tool)}, wanted each name once; leave one out`,
    { loop, tool },
  );
