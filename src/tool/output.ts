/** What a tool answers with, and the one form it has from there on. */
import type { Json } from "../core/index.js";
import { plainJson } from "./schema.js";

/** Text for the model; or text with data for programs, or marked as an error that the model can act on. */
export type ToolOutput =
  | string
  | {
      readonly text: string;
      /** JSON for whoever reads the events; the model does not see it. */
      readonly data?: unknown;
      readonly isError?: boolean | undefined;
    };

/** An answer in its one form. */
export interface ToolResult {
  readonly text: string;
  /** A copy, as JSON has it. */
  readonly data?: Json;
  readonly isError: boolean;
}

/** The result an answer stands for. What is no `ToolOutput` becomes an error result: only the tool's author can mend it. */
export function resultOf(name: string, output: unknown): ToolResult {
  if (typeof output === "string") return { text: output, isError: false };
  if (typeof output !== "object" || output === null || Array.isArray(output))
    return fault(name, `it returned ${kindOf(output)}`);
  const { text, data, isError } = output as Readonly<Record<string, unknown>>;
  if (typeof text !== "string") return fault(name, `it returned an object whose \`text\` is ${kindOf(text)}`);
  if (isError !== undefined && typeof isError !== "boolean") {
    return fault(name, `it returned an object whose \`isError\` is ${kindOf(isError)}`);
  }
  if (data === undefined) return { text, isError: isError ?? false };
  try {
    return { text, data: plainJson(data) as Json, isError: isError ?? false };
  } catch {
    return fault(name, "it returned `data` that is not JSON");
  }
}

const fault = (name: string, what: string): ToolResult => ({
  text: `The tool ${name} ran, and its answer is lost: ${what}. This is a mistake in the tool, not in the call; do not repeat it.`,
  isError: true,
});

const kindOf = (value: unknown): string =>
  value === undefined ? "nothing" : value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
