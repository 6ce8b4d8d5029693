/** The input of a call as the model wrote it, read. Pure; whether it suits the tool is the tool's schema to say. */
import type { Json } from "../core/index.js";
import type { ToolCallPart } from "../session-store/index.js";
import { isShallow } from "./json-depth.js";
import { shortened } from "./plain-text.js";

export type ParsedInput =
  { readonly ok: true; readonly input: Json } | { readonly ok: false; readonly problem: string };

const shownCharsMax = 200;

export function parseInput({ input, cut }: ToolCallPart): ParsedInput {
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
  return { ok: true, input: value };
}
