/** Options as plain JavaScript gives them: what the compiler would refuse is refused here. */
import { invalid } from "./refusals.js";

export type Options = Readonly<Record<string, unknown>>;

/**
 * `given` as an object. A member that is none of `known` is refused where it was written down: a misspelt `needsApproval`
 * would otherwise be an approval that nobody asks for. Objects of a class may have members of their own.
 */
export function optionsOf(given: unknown, known: readonly string[], tool: string, prefix = ""): Options {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid(tool, prefix.replace(/\.$/, "") || "options", "an object");
  }
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) {
    const unknown = Object.keys(given).find((name) => !known.includes(name));
    if (unknown !== undefined) {
      throw invalid(tool, `${prefix}${unknown}`, `known here; the members are ${known.join(", ")}`);
    }
  }
  return given as Options;
}

const nameForm = /^[A-Za-z0-9_-]{1,64}$/;

/** A name in the only form that every model provider takes. */
export function nameOf(given: unknown, tool: string, field: string): string {
  if (typeof given !== "string" || !nameForm.test(given)) {
    throw invalid(tool, field, "a name of 1 to 64 letters, digits, `_` and `-`");
  }
  return given;
}
