/** JSON Schema by hand, for those who use no schema library or have the schema from elsewhere (T4). */
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { compileJsonSchema } from "./json-schema-compiler.js";
import { reading } from "./options.js";
import { invalid } from "./refusals.js";
import { deepFreeze, plainJson } from "./schema.js";
import type { JsonSchema, ToolSchema } from "./schema.js";

const written = "https://json-schema.org/draft/2020-12/schema";

/**
 * A tool schema from JSON Schema, draft 2020-12. It is checked and compiled here, once; `T` is the caller's word for what
 * it describes. Unknown keywords and `format` are notes to the model, and so is `default`: nothing is filled in or converted.
 *
 * Throws `tool_definition.invalid` when it is no valid JSON Schema of that draft, or refers to what is not in it.
 */
export function jsonSchema<T = unknown>(schema: Readonly<Record<string, unknown>>): ToolSchema<T> {
  const own = reading("jsonSchema", () => copy(schema));
  const validate = compile(own);
  const state = ({ target }: { readonly target: string }): Record<string, unknown> => {
    if (target !== "draft-2020-12") throw new TypeError(`Cannot state the schema as ${target}: it is draft-2020-12`);
    return { ...own };
  };
  return Object.freeze({
    "~standard": Object.freeze({
      version: 1 as const,
      vendor: "looprig",
      validate: (value: unknown): StandardSchemaV1.Result<T> => {
        const issues = validate(value);
        return issues === undefined ? { value: value as T } : { issues };
      },
      jsonSchema: Object.freeze({ input: state, output: state }),
    }),
  });
}

const refuse = (wanted: string, cause?: unknown): Error => invalid("jsonSchema", "schema", wanted, cause);

function copy(schema: unknown): JsonSchema {
  let own: unknown;
  try {
    own = plainJson(schema, refuseSilence);
  } catch (error) {
    throw refuse("JSON", error);
  }
  if (typeof own !== "object" || own === null || Array.isArray(own)) throw refuse("an object of JSON Schema");
  return deepFreeze(own as JsonSchema);
}

/** JSON leaves these out without a word, and a schema without its `type` takes everything. */
function refuseSilence(name: string, value: unknown): unknown {
  if (typeof value !== "function" && typeof value !== "symbol") return value;
  throw new TypeError(`Cannot say ${JSON.stringify(name.slice(0, 64))} in JSON: it is a ${typeof value}`);
}

function compile(schema: JsonSchema): ReturnType<typeof compileJsonSchema> {
  const { $schema } = schema;
  if ($schema !== undefined && (typeof $schema !== "string" || $schema.replace(/#$/, "") !== written)) {
    throw refuse(`written for draft 2020-12: \`$schema\` says ${JSON.stringify($schema)}; leave it out, or convert it`);
  }
  // It would make the check answer with a promise of another protocol.
  if (schema["$async"] !== undefined) throw refuse("of the standard: `$async` is a keyword of one library");
  try {
    return compileJsonSchema(schema);
  } catch (error) {
    throw refuse(`valid JSON Schema (draft 2020-12): ${error instanceof Error ? error.message : String(error)}`, error);
  }
}
