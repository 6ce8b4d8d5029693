/**
 * What a caller without a compiler hands in, refused in words that say what it is. Texts are not quoted: prompts and
 * reasons stay out of logs.
 */
import { LooprigError } from "../core/index.js";

/** `action`: what cannot be done with it, as in "submit". */
export function wrongInput(
  action: string,
  field: string,
  value: unknown,
  wanted: string,
): LooprigError<"option.invalid"> {
  const given = shown(value);
  return new LooprigError("option.invalid", `Cannot ${action} with ${given} as \`${field}\`: wanted ${wanted}`, {
    ...{ field, given, wanted },
  });
}

function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return value.trim() === "" ? "a blank text" : "a text";
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    default:
      return `a ${typeof value}`;
  }
}
