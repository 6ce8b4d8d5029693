/**
 * Ajv, behind the two things we ask of it: whether a schema is one, and what is wrong with a value (docs/decisions/0009).
 * Ajv and its meta-schema take longer to load than the rest of looprig, so they are loaded with the first schema that
 * needs them and not with the package.
 */
import { createRequire } from "node:module";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type * as Ajv from "ajv/dist/2020.js";
import type { JsonSchema } from "./schema.js";

/** Returns what is wrong with a value, or undefined. Throws only when it nests deeper than the stack. */
type Check = (value: unknown) => readonly StandardSchemaV1.Issue[] | undefined;

/** Up to this many values in an input, all that is wrong with it is told; of a larger one, the first thing. */
const explainedValuesMax = 10_000;

const options = {
  // Unknown keywords and formats are annotations, as the standard has them.
  ...{ strict: false, validateFormats: false, logger: false },
  // A member that is only inherited, like `toString`, was not sent.
  ownProperties: true,
  verbose: true,
} as const satisfies Ajv.Options;

let loaded: typeof Ajv | undefined;
let meta: Ajv.Ajv2020 | undefined;

/** Compiles a schema that was copied and frozen. Throws an `Error` whose message says what is wrong with it. */
export function compileJsonSchema(schema: JsonSchema): Check {
  loaded ??= createRequire(import.meta.url)("ajv/dist/2020.js") as typeof Ajv;
  const { Ajv2020 } = loaded;
  meta ??= new Ajv2020(options);
  if (meta.validateSchema(schema) !== true) throw new Error(meta.errorsText(meta.errors, { dataVar: "schema" }));
  // One instance per schema: an `$id` names something within its schema and never in another's.
  const compile = (allErrors: boolean): Ajv.ValidateFunction =>
    new Ajv2020({ ...options, allErrors, meta: false, validateSchema: false }).compile(schema);
  const fits = compile(false);
  // Collecting every fault costs an object each, which a hostile input could have millions of.
  let explain: Ajv.ValidateFunction | undefined;
  return (value) => {
    if (fits(value)) return undefined;
    let { errors } = fits;
    if (valuesIn(value, explainedValuesMax) < explainedValuesMax) {
      explain ??= compile(true);
      explain(value);
      errors = explain.errors ?? errors;
    }
    return (errors ?? []).map(issueOf);
  };
}

/** How many values there are, counting no further than `max`. */
function valuesIn(value: unknown, max: number): number {
  let count = 0;
  const rest = [value];
  while (rest.length > 0 && count < max) {
    const next = rest.pop();
    count++;
    if (typeof next !== "object" || next === null) continue;
    for (const key in next) {
      if (rest.length + count >= max) return max;
      rest.push((next as Readonly<Record<string, unknown>>)[key]);
    }
  }
  return count;
}

function issueOf(error: Ajv.ErrorObject): StandardSchemaV1.Issue {
  const path = pathOf(error.instancePath);
  const params = error.params as Readonly<Record<string, unknown>>;
  switch (error.keyword) {
    case "required":
      return { path: [...path, String(params["missingProperty"])], message: "is required" };
    case "additionalProperties":
    case "unevaluatedProperties": {
      const name = String(params["additionalProperty"] ?? params["unevaluatedProperty"]);
      const known = Object.keys((error.parentSchema?.["properties"] ?? {}) as object);
      return {
        path: [...path, name],
        message: `is unknown here${known.length > 0 ? `; known: ${listed(known)}` : ""}`,
      };
    }
    case "type":
      return { path, message: `${error.message ?? "has the wrong type"}, and is ${kindOf(error.data)}` };
    case "enum":
      return { path, message: `must be one of ${listed((params["allowedValues"] as readonly unknown[]).map(quoted))}` };
    case "const":
      return { path, message: `must be ${quoted(params["allowedValue"])}` };
    default:
      return { path, message: error.message ?? `does not satisfy "${error.keyword}"` };
  }
}

/** A JSON pointer as a path. What looks like an index is shown as one. */
const pathOf = (pointer: string): readonly PropertyKey[] =>
  pointer
    .split("/")
    .slice(1)
    .map((part) => (/^\d{1,15}$/.test(part) ? Number(part) : part.replaceAll("~1", "/").replaceAll("~0", "~")));

const quoted = (value: unknown): string => JSON.stringify(value);
const listed = (words: readonly string[]): string =>
  words.length <= 20 ? words.join(", ") : `${words.slice(0, 20).join(", ")} and ${words.length - 20} more`;

const kindOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
