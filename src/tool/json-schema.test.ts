import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonSchema } from "./json-schema.js";
import { refusalOf, wrong } from "./testing/scenes.js";

const object = (properties: Record<string, unknown>, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  ...{ type: "object", properties },
  ...more,
});

/** The issues as `path: message`, or undefined when the value fits. */
function issuesOf(schema: Record<string, unknown>, value: unknown): readonly string[] | undefined {
  const result = jsonSchema(schema)["~standard"].validate(value);
  if (result instanceof Promise) throw new Error("the check of a JSON Schema does not wait");
  return result.issues?.map(({ path, message }) => `${(path ?? []).map(String).join("/")}: ${message}`);
}

describe("T4 jsonSchema", () => {
  test("checks by draft 2020-12", () => {
    const tuple = object({
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
    });
    expect(issuesOf(tuple, { pair: ["a", 1] })).toBeUndefined();
    expect(issuesOf(tuple, { pair: ["a", 1, 2] })).toEqual(["pair: must NOT have more than 2 items"]);
    const tree = object({ children: { type: "array", items: { $ref: "#" } } }, { unevaluatedProperties: false });
    expect(issuesOf(tree, { children: [{ children: [] }] })).toBeUndefined();
    expect(issuesOf(tree, { children: [{ kids: [] }] })).toEqual(["children/0/kids: is unknown here; known: children"]);
  });

  test("says all that is wrong, in words", () => {
    const schema = object(
      { file: { type: "string" }, limit: { type: "integer", minimum: 1 }, mode: { enum: ["a", "b"] }, v: { const: 1 } },
      { required: ["file"], additionalProperties: false },
    );
    expect(issuesOf(schema, { limit: 0, mode: "c", v: 2, path: "x" })?.toSorted()).toEqual([
      "file: is required",
      "limit: must be >= 1",
      'mode: must be one of "a", "b"',
      "path: is unknown here; known: file, limit, mode, v",
      "v: must be 1",
    ]);
    expect(issuesOf(schema, { file: null })).toEqual(["file: must be string, and is null"]);
    expect(issuesOf(schema, [])).toEqual([": must be object, and is array"]);
  });

  test("says one thing of a huge input, instead of everything", () => {
    const schema = object({ all: { type: "array", items: { type: "string" } } });
    const numbers = (count: number): unknown => ({ all: Array.from({ length: count }, () => 1) });
    expect(issuesOf(schema, numbers(100))).toHaveLength(100);
    expect(issuesOf(schema, numbers(200_000))).toEqual(["all/0: must be string, and is number"]);
  });

  test("takes only members that were sent, not those every object inherits", () => {
    expect(issuesOf(object({}, { required: ["toString"] }), {})).toEqual(["toString: is required"]);
    expect(issuesOf(object({ constructor: { type: "string" } }), {})).toBeUndefined();
    const parsed: unknown = JSON.parse('{"__proto__": {"a": 1}}');
    expect(issuesOf(object({}, { additionalProperties: false }), parsed)).toEqual(["__proto__: is unknown here"]);
  });

  test("changes nothing in the input: defaults are not filled in, types not converted", () => {
    const schema = jsonSchema(object({ a: { type: "number", default: 3 }, b: { type: "string" } }));
    const input = Object.freeze({ b: "x" });
    expect(schema["~standard"].validate(input)).toEqual({ value: input });
    expect(issuesOf(object({ a: { type: "number" } }), { a: "3" })).toEqual(["a: must be number, and is string"]);
  });

  test("takes formats and unknown keywords as notes to the model", () => {
    const schema = object({ at: { type: "string", format: "date" }, "x-note": true }, { example: {}, tags: ["a"] });
    expect(issuesOf(schema, { at: "soon" })).toBeUndefined();
    expect(jsonSchema(schema)["~standard"].jsonSchema.input({ target: "draft-2020-12" })).toEqual(schema);
  });

  test("keeps names of one schema out of every other", () => {
    const named = (type: string): Record<string, unknown> => ({
      $id: "https://example.com/same",
      ...object({ a: { type } }),
    });
    expect(issuesOf(named("string"), { a: 1 })).toEqual(["a: must be string, and is number"]);
    expect(issuesOf(named("number"), { a: 1 })).toBeUndefined();
    expect(issuesOf(named("number"), { a: 1 })).toBeUndefined();
  });

  test("states no other draft than its own", () => {
    const { jsonSchema: converter } = jsonSchema(object({}))["~standard"];
    expect(() => converter.input({ target: "draft-07" })).toThrow("draft-2020-12");
    const stated = converter.output({ target: "draft-2020-12" });
    expect(stated).toEqual({ type: "object", properties: {} });
    expect(() => Object.assign(stated["properties"] as object, { a: true })).toThrow(TypeError);
  });

  test("accepts the draft's own name, and refuses others", async () => {
    const written = (draft: unknown): unknown => jsonSchema({ $schema: draft, type: "object" });
    written("https://json-schema.org/draft/2020-12/schema");
    written("https://json-schema.org/draft/2020-12/schema#");
    for (const draft of [
      "http://json-schema.org/draft-07/schema#",
      "https://json-schema.org/draft/2019-09/schema",
      7,
    ]) {
      const error = await refusalOf("tool_definition.invalid", () => written(draft));
      expect(error.message).toContain(JSON.stringify(draft));
    }
  });

  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic["self"] = cyclic;
  test.each<readonly [string, unknown]>([
    ["an object of JSON Schema", true],
    ["an object of JSON Schema", null],
    ["an object of JSON Schema", "object"],
    ["an object of JSON Schema", []],
    ["JSON", undefined],
    ["JSON", cyclic],
    ["JSON", { type: "object", maxProperties: 3n }],
    ["schema/type must be equal to one of the allowed values", { type: "strnig" }],
    ["schema/required must be array", { type: "object", required: "a" }],
    ["schema/properties/a/maxLength must be integer", object({ a: { maxLength: "long" } })],
    ["schema/properties/a/items must be object,boolean", object({ a: { items: [{ type: "string" }] } })],
    ["#/$defs/absent", object({ a: { $ref: "#/$defs/absent" } })],
    ["https://example.com/other", object({ a: { $ref: "https://example.com/other" } })],
    ["Invalid regular expression", object({ a: { pattern: "(" } })],
    ["of the standard", { $async: true, type: "object" }],
  ])("refuses what is not %s", async (wanted, schema) => {
    const error = await refusalOf("tool_definition.invalid", () => jsonSchema(wrong(schema)));
    expect(error.details).toMatchObject({ tool: "jsonSchema", field: "schema" });
    expect(error.message).toContain(wanted);
  });

  test("answers about any JSON, and the same each time", () => {
    const schema = jsonSchema(object({ a: { type: "string" }, b: { $ref: "#" } }, { required: ["a"] }));
    fc.assert(
      fc.property(fc.jsonValue(), (input) => {
        const answer = schema["~standard"].validate(input);
        expect(schema["~standard"].validate(input)).toEqual(answer);
        const fits = (value: unknown): boolean =>
          typeof value === "object" &&
          value !== null &&
          !Array.isArray(value) &&
          Object.hasOwn(value, "a") &&
          typeof (value as { a: unknown }).a === "string" &&
          (!Object.hasOwn(value, "b") || fits((value as { b: unknown }).b));
        expect(answer).toMatchObject(fits(input) ? { value: input } : { issues: expect.any(Array) as unknown });
      }),
    );
  });
});
