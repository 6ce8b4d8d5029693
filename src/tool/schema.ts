/** Schemas of tool input: what a tool accepts, said once for the compiler, for the check and for the model (T4). */
import type { StandardJSONSchemaV1, StandardSchemaV1, StandardTypedV1 } from "@standard-schema/spec";
import type { Json } from "../core/index.js";
import { invalid } from "./refusals.js";

/**
 * A Standard Schema that can also state itself as JSON Schema: Zod from 4.2, ArkType from 2.1.28, Valibot through
 * `toStandardJsonSchema`, or `jsonSchema({ … })`.
 */
export interface ToolSchema<Input = unknown, Output = Input> {
  readonly "~standard": StandardSchemaV1.Props<Input, Output> & StandardJSONSchemaV1.Props<Input, Output>;
}

/** What `execute` receives: the output of the schema, with its defaults and conversions applied. */
export type InferInput<S extends StandardTypedV1> = StandardTypedV1.InferOutput<S>;

/** A schema in JSON Schema, draft 2020-12. */
export type JsonSchema = { readonly [key: string]: Json };

/** A schema as it was when its tool was defined: what is done to the object afterwards changes nothing. */
export interface ReadSchema {
  /** Of the input side, without `$schema`, frozen throughout. */
  readonly stated: JsonSchema;
  /** Throws, or rejects, only when the schema itself fails. */
  check(input: unknown): StandardSchemaV1.Result<unknown> | Promise<StandardSchemaV1.Result<unknown>>;
}

const target = "draft-2020-12";
const ways = "Zod from 4.2, ArkType from 2.1.28, Valibot through `toStandardJsonSchema`, or `jsonSchema({ … })`";

/** Reads a schema of whatever caller. Throws `tool_definition.invalid`. */
export function readSchema(schema: unknown, tool: string, field: string): ReadSchema {
  const refuse = (wanted: string, cause?: unknown): Error => invalid(tool, field, wanted, cause);
  const standard = member(schema, "~standard");
  const check = member(standard, "validate");
  if (member(standard, "version") !== 1 || typeof check !== "function") {
    throw refuse(`a Standard Schema; use ${ways}`);
  }
  const converter = member(standard, "jsonSchema");
  const state = member(converter, "input");
  if (typeof state !== "function") {
    throw refuse(`a schema that can state itself as JSON Schema; use ${ways}`);
  }
  let stated: unknown;
  try {
    stated = plainJson(Reflect.apply(state, converter, [{ target }]));
  } catch (error) {
    throw refuse("expressible as JSON Schema, which is what the model is told; `cause` says why", error);
  }
  // Model providers accept nothing else, and would say so only in the middle of a turn.
  if (member(stated, "type") !== "object") {
    throw refuse('a schema of one object ("type": "object"); put other input into a member of one');
  }
  const { $schema: _, ...rest } = stated as JsonSchema;
  return Object.freeze({
    stated: deepFreeze(rest),
    check: (input: unknown) => Reflect.apply(check, standard, [input]) as ReturnType<ReadSchema["check"]>,
  });
}

/** A copy by way of JSON text, which leaves nothing of the original in it. Throws for what JSON cannot say, or `replacer` refuses. */
export function plainJson(value: unknown, replacer?: (name: string, value: unknown) => unknown): unknown {
  // `stringify` is typed as if there were always a text; for a function there is none.
  const text = JSON.stringify(value, replacer) as string | undefined;
  if (text === undefined) throw new TypeError(`Cannot say a ${typeof value} in JSON`);
  return JSON.parse(text);
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const each of Object.values(value)) deepFreeze(each);
    Object.freeze(value);
  }
  return value;
}

/** Schemas may be functions: ArkType's are. */
const member = (of: unknown, name: string): unknown =>
  (typeof of === "object" && of !== null) || typeof of === "function"
    ? (of as Readonly<Record<string, unknown>>)[name]
    : undefined;
