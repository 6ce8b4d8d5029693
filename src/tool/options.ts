/** Options as plain JavaScript gives them: what the compiler would refuse is refused here. */
import { LooprigError } from "../core/index.js";
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

/**
 * What `read` makes of options. A getter that throws, or a proxy that cannot be asked, is a wrong option like any other, and
 * its error the cause. Throws `tool_definition.invalid`.
 */
export function reading<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw isOurs(error) ? error : invalid(at, "options", "readable: `cause` says what stands in the way", error);
  }
}

/** Whether a definition was refused already; what was thrown may be anything, a proxy too. */
export function isOurs(error: unknown): error is LooprigError {
  try {
    return error instanceof LooprigError;
  } catch {
    return false;
  }
}

const nameForm = /^[A-Za-z0-9_-]{1,64}$/;

/** A name in the only form that every model provider takes. */
export function nameOf(given: unknown, tool: string, field: string): string {
  if (typeof given !== "string" || !nameForm.test(given)) {
    throw invalid(tool, field, "a name of 1 to 64 letters, digits, `_` and `-`");
  }
  return given;
}
