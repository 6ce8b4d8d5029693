/** Options as plain JavaScript gives them: what the compiler would refuse is refused here, with the name of the option. */
import { RigDefinitionError } from "../core/index.js";

export type Members = Readonly<Record<string, unknown>>;

/**
 * The known members of `given`, each read once: what happens to the object later changes nothing. A member that is not
 * known is refused, since a misspelt `allowBroadRoot` or `primers` would otherwise be silently not there.
 */
export function membersOf(given: unknown, field: string, known: readonly string[]): Members {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw invalid(field, given, "an object");
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownOption(within(field, unknown.slice(0, 64)), known);
  const members = given as Members;
  return Object.fromEntries(known.map((name) => [name, members[name]]));
}

/** A member of the options, as it is written: `exclusiveWorkspace.root`. */
export const within = (field: string, member: string): string => (field === "" ? member : `${field}.${member}`);

export function flagOf(given: unknown, field: string): boolean {
  if (given === undefined) return false;
  if (typeof given !== "boolean") throw invalid(field, given, "true or false");
  return given;
}

/** Options that cannot be read: a getter that throws, a proxy that cannot be asked. */
export const unreadable = (cause: unknown): RigDefinitionError =>
  new RigDefinitionError(
    "rig_definition.invalid",
    "Cannot define the rig: a member of what was given cannot be read, wanted plain objects; `cause` says what stands in the way",
    { field: "", wanted: "options that can be read" },
    { cause },
  );

export const invalid = (field: string, given: unknown, wanted: string): RigDefinitionError =>
  new RigDefinitionError(
    "rig_definition.invalid",
    `Cannot define the rig: ${field === "" ? "what was given" : quoted(field)} is ${shown(given)}, wanted ${wanted}`,
    { field, wanted },
  );

function unknownOption(field: string, known: readonly string[]): RigDefinitionError {
  const wanted = `one of ${known.join(", ")}`;
  return new RigDefinitionError(
    "rig_definition.invalid",
    `Cannot define the rig: there is no option ${quoted(field)}, wanted ${wanted}`,
    { field, wanted },
  );
}

const quoted = (field: string): string => JSON.stringify(field);

/** A value in a message: short, on one line, never its content where it is large. */
export function shown(given: unknown): string {
  switch (typeof given) {
    case "string":
      return JSON.stringify(given.slice(0, 64));
    case "number":
    case "boolean":
      return String(given);
    case "undefined":
      return "absent";
    case "object":
      return given === null ? "null" : Array.isArray(given) ? "a list" : "an object";
    default:
      return `a ${typeof given}`;
  }
}
