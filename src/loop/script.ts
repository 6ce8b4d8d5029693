/** Scripts for the scripted model: what a file of them must look like, checked once. */
import { ModelError } from "../core/index.js";
import type { Json } from "../core/index.js";

/** What a scripted model answers to one call: a text, tool calls, or both. */
export interface ScriptStep {
  /** What the model says in this step. */
  readonly text?: string | undefined;
  /** Which tools it calls, side by side, after what it says. */
  readonly calls?: readonly ScriptCall[] | undefined;
}

/** One tool call of a script. `input` may be anything JSON can say, also what the tool will refuse. */
export interface ScriptCall {
  readonly tool: string;
  readonly input: Json;
}

/** Reads the JSON text of a script: an array of one step or more. Throws `model.script_invalid`, which names the place. */
export function parseScript(json: string): readonly ScriptStep[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw invalid("the script", "JSON", cause);
  }
  const steps = checkScript(value);
  if (steps.length === 0) throw invalid("the script", "at least one step { text?, calls? }");
  return steps;
}

/** A copy of the steps, frozen. Throws `model.script_invalid`. */
export function checkScript(value: unknown): readonly ScriptStep[] {
  if (!Array.isArray(value)) throw invalid("the script", "an array of steps { text?, calls? }");
  return Object.freeze(value.map((step: unknown, index) => stepOf(step, `step ${index + 1}`)));
}

function stepOf(value: unknown, at: string): ScriptStep {
  const { text, calls } = membersOf(value, ["text", "calls"], at);
  if (text === undefined && calls === undefined) throw invalid(at, "a text, calls, or both");
  if (text !== undefined && typeof text !== "string") throw invalid(`${at}, "text"`, "a text");
  if (calls !== undefined && !Array.isArray(calls)) throw invalid(`${at}, "calls"`, "an array of { tool, input }");
  return Object.freeze({
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined
      ? {}
      : { calls: Object.freeze(calls.map((call: unknown, index) => callOf(call, `${at}, call ${index + 1}`))) }),
  });
}

function callOf(value: unknown, at: string): ScriptCall {
  const { tool, input } = membersOf(value, ["tool", "input"], at);
  if (typeof tool !== "string" || tool === "") throw invalid(`${at}, "tool"`, "the name of a tool");
  if (input === undefined) throw invalid(`${at}, "input"`, "the tool's input");
  let copy: Json;
  try {
    copy = JSON.parse(JSON.stringify(input)) as Json;
  } catch (cause) {
    throw invalid(`${at}, "input"`, "a value that JSON can say", cause);
  }
  return Object.freeze({ tool, input: copy });
}

function membersOf(value: unknown, known: readonly string[], at: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(at, "an object");
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw invalid(`${at}, ${JSON.stringify(unknown.slice(0, 64))}`, `one of ${known.join(", ")}`);
  return value as Readonly<Record<string, unknown>>;
}

const invalid = (field: string, wanted: string, cause?: unknown): ModelError =>
  new ModelError(
    "model.script_invalid",
    `Cannot read the script: ${field} is wrong, wanted ${wanted}`,
    { field, wanted },
    { cause },
  );
