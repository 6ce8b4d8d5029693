import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { bindTools } from "./bind.js";
import type { BoundTool } from "./bind.js";
import { defineTool } from "./definition.js";
import { jsonSchema } from "./json-schema.js";
import type { ToolSchema } from "./schema.js";
import { refusalOf, scene, wrong } from "./testing/scenes.js";

async function bound(inputSchema: ToolSchema): Promise<BoundTool> {
  const definition = defineTool({ name: "Probe", description: "Probes", inputSchema, execute: () => "" });
  const [probe] = (await bindTools(definition, scene())).values();
  if (probe === undefined) throw new Error("nothing was built");
  return probe;
}

const refused = (
  inputSchema: unknown,
): Promise<{ readonly details: unknown; readonly message: string; readonly cause?: unknown }> =>
  refusalOf("tool_definition.invalid", () =>
    defineTool({ name: "Probe", description: "Probes", inputSchema: wrong(inputSchema), execute: () => "" }),
  );

const limits = { type: "integer", minimum: 1 };
const libraries: readonly (readonly [string, ToolSchema])[] = [
  ["Zod", z.object({ path: z.string(), limit: z.int().min(1).optional() })],
  ["ArkType", type({ path: "string", "limit?": "number.integer >= 1" })],
  [
    "Valibot",
    toStandardJsonSchema(
      v.object({ path: v.string(), limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))) }),
    ),
  ],
  [
    "jsonSchema",
    jsonSchema({ type: "object", properties: { path: { type: "string" }, limit: limits }, required: ["path"] }),
  ],
];

describe.each(libraries)("T4 a schema of %s", (_library, schema) => {
  test("states itself to the model, in draft 2020-12", async () => {
    const { inputSchema } = await bound(schema);
    expect(inputSchema).toMatchObject({
      type: "object",
      properties: { path: { type: "string" }, limit: { type: "integer", minimum: 1 } },
      required: ["path"],
    });
    expect(inputSchema).not.toHaveProperty("$schema");
  });

  test("lets through what fits", async () => {
    const { validate } = await bound(schema);
    expect(await validate({ path: "a" })).toEqual({ value: { path: "a" } });
    expect(await validate({ path: "a", limit: 1 })).toEqual({ value: { path: "a", limit: 1 } });
  });

  test("says what does not fit, and where", async () => {
    const { validate } = await bound(schema);
    const { issues } = await validate({ limit: 0 });
    const text = issues?.join("\n") ?? "";
    expect(text).toMatch(/path/);
    for (const input of [undefined, null, "path", 7, [], { path: 1 }, { path: "a", limit: 1.5 }]) {
      const { issues: found = [] } = await validate(input);
      expect(found.length).toBeGreaterThan(0);
      for (const line of found) expect(line).toMatch(/^[\w.[\]" ]+: \S/);
    }
  });
});

describe("T4 a tool's schema", () => {
  test("gives `execute` the output side, and the model the input side", async () => {
    const { inputSchema, validate } = await bound(
      z.object({ limit: z.number().default(10), day: z.string().transform(Number) }),
    );
    expect(inputSchema).toMatchObject({ required: ["day"], properties: { day: { type: "string" } } });
    expect(await validate({ day: "3" })).toEqual({ value: { limit: 10, day: 3 } });
  });

  test("is told to the model as it was when the tool was defined", async () => {
    const given = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    const { inputSchema, validate } = await bound(jsonSchema(given));
    given.required.length = 0;
    given.type = "array";
    expect(inputSchema).toEqual({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });
    expect(await validate({})).toEqual({ issues: ["path: is required"] });
    const frozen = [inputSchema, inputSchema["properties"], inputSchema["required"]];
    for (const each of frozen) expect(Object.isFrozen(each)).toBe(true);
  });

  test("may take its time, until the wait is aborted", async () => {
    const forever = new Promise<boolean>(() => undefined);
    const verdicts = new Map([
      ["free", Promise.resolve(true)],
      ["taken", Promise.resolve(false)],
    ]);
    const name = z.string().refine((text) => verdicts.get(text) ?? forever, "is taken");
    const { validate } = await bound(z.object({ name }));
    expect(await validate({ name: "free" })).toEqual({ value: { name: "free" } });
    expect(await validate({ name: "taken" })).toEqual({ issues: ["name: is taken"] });
    const abort = new AbortController();
    const waiting = validate({ name: "unknown" }, { signal: abort.signal });
    const reason = new Error("interrupted");
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(validate({ name: "free" }, { signal: abort.signal })).rejects.toBe(reason);
  });

  test("that fails itself refuses the input, in words", async () => {
    const failing = jsonSchema({ type: "object" })["~standard"];
    for (const validate of [
      () => Promise.reject(new Error("no network")),
      () => {
        throw new Error("no network");
      },
    ]) {
      const schema: ToolSchema = { "~standard": { ...failing, validate } };
      expect(await (await bound(schema)).validate({})).toEqual({
        issues: ["the input could not be checked: no network"],
      });
    }
  });

  test.each<readonly [string, unknown]>([
    ["a Standard Schema", undefined],
    ["a Standard Schema", null],
    ["a Standard Schema", { type: "object" }],
    ["a Standard Schema", { "~standard": { version: 2, validate: () => undefined } }],
    ["state itself as JSON Schema", v.object({ path: v.string() })],
    ["expressible as JSON Schema", z.object({ at: z.date() })],
    ["a schema of one object", z.string()],
    ["a schema of one object", z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    ["a schema of one object", jsonSchema({})],
  ])("is refused unless it is %s", async (wanted, schema) => {
    const { details, message } = await refused(schema);
    expect(details).toMatchObject({ tool: "Probe", field: "inputSchema" });
    expect(message).toContain(wanted);
  });

  test("that cannot state itself says why in the cause", async () => {
    expect((await refused(z.object({ at: z.date() }))).cause).toBeInstanceOf(Error);
  });
});
