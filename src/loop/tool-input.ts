/** The input of a call as the model wrote it, read. Pure; whether it suits the tool is the tool's schema to say. */
import type { Json } from "../core/index.js";
import type { ToolCallPart } from "../session-store/index.js";
import { isShallow } from "./json-depth.js";
import { shortened } from "./plain-text.js";
import { inputCharsMax } from "./reply.js";

export type ParsedInput =
  { readonly ok: true; readonly input: Json } | { readonly ok: false; readonly problem: string };

const shownCharsMax = 200;

/** Numbers like 1e999 are JSON, and become what JSON cannot say again. */
const hasFiniteNumbers = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isFinite(value)
    : typeof value !== "object" || value === null || Object.values(value).every(hasFiniteNumbers);

export function parseInput({ input, cut }: ToolCallPart): ParsedInput {
  if (cut === true && input.length >= inputCharsMax) {
    return {
      ok: false,
      problem: `the input has more than ${inputCharsMax} characters. Call again, in smaller pieces`,
    };
  }
  if (cut === true) {
    return {
      ok: false,
      problem: "your message ended before the input did. Call again, in smaller pieces if it is long",
    };
  }
  // Models write nothing at all for tools that take nothing.
  if (input.trim() === "") return { ok: true, input: {} };
  let value: Json;
  try {
    value = JSON.parse(input) as Json;
  } catch (error) {
    const reason = error instanceof Error ? shortened(error.message, shownCharsMax) : "it cannot be read";
    return {
      ok: false,
      problem: `the input is not valid JSON (${reason}). It began with ${JSON.stringify(shortened(input, shownCharsMax))}`,
    };
  }
  if (!isShallow(value)) return { ok: false, problem: "the input is nested too deeply" };
  if (!hasFiniteNumbers(value)) return { ok: false, problem: "a number in the input is larger than any that is kept" };
  return { ok: true, input: value };
}
