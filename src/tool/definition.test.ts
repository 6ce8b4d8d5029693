import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ErrorCode } from "../core/index.js";
import { bindTools } from "./bind.js";
import { defineReadTools, defineTool, defineTools } from "./definition.js";
import { jsonSchema } from "./json-schema.js";
import { anyObject, call, refusalOf, scene, simply, wrong } from "./testing/scenes.js";
import { tool } from "./tool.js";

const one = { name: "Probe", description: "Probes", inputSchema: anyObject, execute: () => "" };
const family = {
  name: "files",
  produces: ["Read", "Write"],
  build: () => ({ Read: simply(() => ""), Write: simply(() => "") }),
};

/** Binds a family of plain JavaScript that builds `built` for the names `produces`. */
const binding = (produces: readonly string[], built: unknown): Promise<unknown> =>
  bindTools(defineTools(wrong({ name: "files", produces, build: () => built })), scene());

describe("T3 a definition", () => {
  test("says what it produces and requires, and cannot be changed", () => {
    const definition = defineTools({ ...family, requires: ["workspace", "process"] });
    expect(definition).toEqual({ name: "files", produces: ["Read", "Write"], requires: ["workspace", "process"] });
    for (const each of [definition, definition.produces, definition.requires]) expect(Object.isFrozen(each)).toBe(true);
    expect(defineTool(one)).toEqual({ name: "Probe", produces: ["Probe"], requires: [] });
  });

  test("is not changed by what is done to its options afterwards", async () => {
    const options = {
      ...{ name: "Probe", description: "Probes", requires: ["workspace-read"], needsApproval: true },
      inputSchema: jsonSchema({ type: "object", required: ["a"] }),
      execute: (): string => "as defined",
    };
    const definition = defineTool(wrong(options));
    const [first, ...more] = options.requires;
    expect([first, more]).toEqual(["workspace-read", []]);
    options.requires.push("workspace", "process");
    Object.assign(options, {
      ...{ name: "Other", description: "Other", needsApproval: false },
      inputSchema: anyObject,
    });
    options.execute = () => "changed";
    const bound = (await bindTools(definition, scene())).get("Probe");
    expect(bound).toMatchObject({ description: "Probes", inputSchema: { required: ["a"] } });
    expect(definition.requires).toEqual(["workspace-read"]);
    expect(await bound?.needsApproval({})).toBe(true);
    expect(await bound?.execute({ a: 1 }, call())).toEqual({ text: "as defined", isError: false });
    expect(await bound?.validate({})).toEqual({ issues: ["a: is required"] });
  });

  test("keeps its list of names whatever becomes of the one it was given", async () => {
    const produces = ["Read"];
    const definition = defineTools({ name: "files", produces, build: () => ({ Read: simply(() => "") }) });
    produces.push("Write");
    expect(definition.produces).toEqual(["Read"]);
    expect([...(await bindTools(definition, scene())).keys()]).toEqual(["Read"]);
  });

  const notNames = [undefined, null, "", " ", "a b", "Bäsh", "a".repeat(65), "a/b", "a.b", 7];
  test.each<readonly [ErrorCode, Record<string, unknown>, () => unknown]>([
    ...notNames.map(
      (name) =>
        [
          "tool_definition.invalid",
          { tool: "defineTool", field: "name" },
          () => defineTool(wrong({ ...one, name })),
        ] as const,
    ),
    ...notNames.map(
      (name) =>
        [
          "tool_definition.invalid",
          { tool: "defineTools", field: "name" },
          () => defineTools(wrong({ ...family, name })),
        ] as const,
    ),
    ...notNames
      .filter((name) => name !== "")
      .map(
        (name) =>
          [
            "tool_definition.invalid",
            { field: "produces[1]" },
            () => defineTools(wrong({ ...family, produces: ["Read", name] })),
          ] as const,
      ),
    ...[undefined, null, [], 7].map(
      (options) => ["tool_definition.invalid", { field: "options" }, () => defineTool(wrong(options))] as const,
    ),
    ["tool_definition.invalid", { field: "options" }, () => defineTools(wrong(() => family))],
    ["tool_definition.invalid", { field: "options" }, () => tool(wrong("x"))],
    ...[undefined, "", " \n", 7].map(
      (description) =>
        [
          "tool_definition.invalid",
          { tool: "Probe", field: "description" },
          () => defineTool(wrong({ ...one, description })),
        ] as const,
    ),
    ...["yes", 1, null].map(
      (needsApproval) =>
        [
          "tool_definition.invalid",
          { field: "needsApproval" },
          () => defineTool(wrong({ ...one, needsApproval })),
        ] as const,
    ),
    ["tool_definition.invalid", { field: "execute" }, () => defineTool(wrong({ ...one, execute: undefined }))],
    [
      "tool_definition.invalid",
      { tool: "tool", field: "execute" },
      () => tool(wrong({ description: "x", inputSchema: anyObject, execute: "run" })),
    ],
    ["tool_definition.invalid", { field: "inputSchema" }, () => defineTool(wrong({ ...one, inputSchema: undefined }))],
    ["tool_definition.invalid", { field: "needApproval" }, () => defineTool(wrong({ ...one, needApproval: true }))],
    ["tool_definition.invalid", { field: "require" }, () => defineTools(wrong({ ...family, require: ["workspace"] }))],
    [
      "tool_definition.invalid",
      { field: "needApproval" },
      () => tool(wrong({ description: "x", inputSchema: anyObject, execute: () => "", needApproval: true })),
    ],
    ...["workspace", null, {}].map(
      (requires) =>
        [
          "tool_definition.invalid",
          { tool: "Probe", field: "requires" },
          () => defineTool(wrong({ ...one, requires })),
        ] as const,
    ),
    ...["workspace-write", "", null, 7, "toString", Object.create(null) as unknown].map(
      (word) =>
        [
          "tool_definition.invalid_requirement",
          { tool: "Probe", requirement: typeof word === "string" ? word : `<${word === null ? "null" : typeof word}>` },
          () => defineTool(wrong({ ...one, requires: [word] })),
        ] as const,
    ),
    [
      "tool_definition.invalid_requirement",
      { requirement: "process" },
      () => defineTool({ ...one, requires: ["process", "process"] }),
    ],
    ...["Read", null, undefined].map(
      (produces) =>
        [
          "tool_definition.invalid",
          { tool: "files", field: "produces" },
          () => defineTools(wrong({ ...family, produces })),
        ] as const,
    ),
    ["tool_definition.invalid", { tool: "files", field: "build" }, () => defineTools(wrong({ ...family, build: {} }))],
    [
      "tool_definition.produced_names",
      { tool: "files", declared: [], built: [] },
      () => defineTools(wrong({ ...family, produces: [] })),
    ],
    [
      "tool_definition.produced_names",
      { declared: ["Read", ""] },
      () => defineTools(wrong({ ...family, produces: ["Read", ""] })),
    ],
    [
      "tool_definition.produced_names",
      { declared: ["Read", "Read"] },
      () => defineTools(wrong({ ...family, produces: ["Read", "Read"] })),
    ],
    ...["workspace", "delegate", "process"].map(
      (word) =>
        [
          "tool_definition.invalid_requirement",
          { requirement: word },
          () => defineReadTools(wrong({ ...family, requires: ["workspace-read", word] })),
        ] as const,
    ),
    [
      "tool_definition.invalid_requirement",
      { requirement: "" },
      () => defineReadTools(wrong({ ...family, requires: [] })),
    ],
  ])("is refused with %s %j", async (code, details, act) => {
    const error = await refusalOf(code, act);
    expect(error.name).toBe("ToolDefinitionError");
    expect(error.details).toMatchObject(details);
  });

  test("that asks for what is no capability is told which there are", async () => {
    const all = "workspace, workspace-read, delegate, process";
    const told = async (code: "tool_definition.invalid" | "tool_definition.invalid_requirement", requires: unknown) =>
      (await refusalOf(code, () => defineTool(wrong({ ...one, requires })))).message;
    expect(await told("tool_definition.invalid", "workspace")).toContain(`not a list of capabilities (${all})`);
    expect(await told("tool_definition.invalid_requirement", ["files"])).toContain(`which is none of ${all}`);
  });

  test("has names that models take, and no others", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), (name) => {
        expect(defineTool({ ...one, name }).produces).toEqual([name]);
      }),
      { numRuns: 50 },
    );
  });

  test("of read tools requires what it may, said or not", () => {
    expect(defineReadTools(family).requires).toEqual(["workspace-read"]);
    expect(defineReadTools({ ...family, requires: ["workspace-read"] }).requires).toEqual(["workspace-read"]);
  });
});

describe("T3 what is built", () => {
  test.each<readonly [readonly string[], Record<string, unknown>]>([
    [["Read"], {}],
    [["Read", "Write"], { Read: simply(() => "") }],
    [["Read"], { Read: simply(() => ""), Wirte: simply(() => "") }],
    [["Read"], { Write: simply(() => "") }],
    [["toString"], {}],
  ])("has the names that were declared: %j", async (declared, built) => {
    const error = await refusalOf("tool_definition.produced_names", () => binding(declared, built));
    expect(error.details).toEqual({ tool: "files", declared, built: Object.keys(built) });
  });

  test("says which names differ", async () => {
    const { message } = await refusalOf("tool_definition.produced_names", () =>
      binding(["Read", "Write"], { Read: simply(() => ""), Wirte: simply(() => "") }),
    );
    expect(message).toContain("declared and not built: Write; built and not declared: Wirte");
  });

  test.each([undefined, null])("is a tool under every name, not %s", async (nothing) => {
    const error = await refusalOf("tool_definition.missing_tool", () => binding(["Read"], { Read: nothing }));
    expect(error.details).toEqual({ tool: "files", name: "Read" });
  });

  test.each<readonly [string, unknown]>([
    ["build", undefined],
    ["build", "Read"],
    ["build", [simply(() => "")]],
    ["Read", { Read: () => "" }],
    ["Read.description", { Read: {} }],
    ["Read.inputSchema", { Read: { description: "Reads", execute: () => "" } }],
    ["Read.inputSchema", { Read: { description: "Reads", execute: () => "", inputSchema: z.string() } }],
    ["Read.execute", { Read: { description: "Reads", inputSchema: anyObject } }],
    [
      "Read.isReadOnly",
      { Read: { description: "Reads", inputSchema: anyObject, execute: () => "", isReadOnly: true } },
    ],
  ])("is refused by the name of its field: %s", async (field, built) => {
    const error = await refusalOf("tool_definition.invalid", () => binding(["Read"], built));
    expect(error.details).toMatchObject({ tool: "files", field });
  });

  test("may be an object of a class, with members and a `this` of its own", async () => {
    class Counter {
      readonly description = "Counts its calls";
      readonly inputSchema = anyObject;
      calls = 0;
      execute(): string {
        this.calls += 1;
        return String(this.calls);
      }
    }
    const definition = defineTools({ name: "counters", produces: ["Count"], build: () => ({ Count: new Counter() }) });
    const bound = (await bindTools(definition, scene())).get("Count");
    await bound?.execute({}, call());
    expect(await bound?.execute({}, call())).toMatchObject({ text: "2" });
    const anew = (await bindTools(definition, scene())).get("Count");
    expect(await anew?.execute({}, call())).toMatchObject({ text: "1" });
  });

  test("is not built when `build` fails, and the error has what it threw", async () => {
    const cause = new RangeError("no room");
    const failing = (build: () => never): Promise<unknown> =>
      bindTools(defineTools({ name: "files", produces: ["Read"], build }), scene());
    for (const act of [
      () =>
        failing(() => {
          throw cause;
        }),
      () => failing((() => Promise.reject(cause)) as never),
    ]) {
      const error = await refusalOf("tool_definition.build_failed", act);
      expect([error.details, error.cause]).toEqual([{ tool: "files" }, cause]);
    }
    await refusalOf("tool_definition.invalid", () => failing(() => tool(wrong({})) as never));
  });

  test("comes from a definition that was defined, not from one that looks like it", async () => {
    for (const forged of [{ ...defineTool(one) }, Object.create(defineTool(one)), {}, null, undefined, "Probe"]) {
      const error = await refusalOf("tool_definition.invalid", () => bindTools(wrong(forged), scene()));
      expect(error.details.field).toBe("definition");
    }
  });

  test("is given up when the wait is aborted, with the signal's reason", async () => {
    const { promise, resolve } = withResolvers<{ Read: ReturnType<typeof simply> }>();
    const abort = new AbortController();
    const definition = defineTools({ name: "files", produces: ["Read"], build: () => promise });
    const waiting = bindTools(definition, scene(), { signal: abort.signal });
    const reason = new Error("no longer wanted");
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    resolve({ Read: simply(() => "") });
    await expect(bindTools(definition, scene(), { signal: abort.signal })).rejects.toBe(reason);
  });
});

function withResolvers<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
