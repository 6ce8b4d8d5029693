/**
 * Plain JavaScript callers get the errors of definitions that TypeScript ones would never see: whatever they pass, the answer is
 * one of ours, names what is wrong, and holds the caller's own error as its cause where there is one.
 */
import { describe, expect, it } from "vitest";
import { bash } from "../../src/builtin-tools/index.js";
import { LooprigError } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { createMemoryStorage } from "../../src/storage/index.js";
import { defineReadTools, defineTool, defineTools, jsonSchema, tool } from "../../src/tool/index.js";
import { defineRig } from "./hostile-scene.js";

const inputSchema = jsonSchema({ type: "object" });
const one = { description: "Does", inputSchema, execute: () => "" };
const family = { name: "files", produces: ["Read"], build: () => ({ Read: tool(one) }) };
const loop = { name: "operator", model: scriptedModel([]) };

/** Each function with options it takes. */
const definers: Readonly<Record<string, readonly [(options: never) => unknown, object]>> = {
  defineTool: [defineTool, { name: "Do", requires: [], needsApproval: false, ...one }],
  defineTools: [defineTools, { requires: [], ...family }],
  defineReadTools: [defineReadTools, { requires: ["workspace-read"], ...family }],
  tool: [tool, { needsApproval: true, ...one }],
  jsonSchema: [jsonSchema, { type: "object" }],
  defineLoop: [
    defineLoop,
    { ...loop, system: "be brief", tools: [defineTool({ name: "Do", ...one })], limits: { steps: 1 } },
  ],
  defineRig: [defineRig, { loops: [defineLoop(loop)], storage: createMemoryStorage() }],
};
const areas: Readonly<Record<string, RegExp>> = {
  defineLoop: /^(?:loop_definition|model)\./,
  defineRig: /^(?:rig_definition|loop_definition|workspace_placement|snapshot_policy)\./,
};

const trapped = new Error("a trap");
const fail = (): never => {
  throw trapped;
};
/** A proxy that answers nothing. */
const sphinx = new Proxy(
  {},
  { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail },
);
const noDate = new Date(NaN);
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

/** The refusal; what is no error of ours, or none, fails the test. */
function refusalOf(name: string, options: unknown): LooprigError {
  const define = definers[name]?.[0] as (options: unknown) => unknown;
  try {
    define(options);
  } catch (error) {
    if (!(error instanceof LooprigError)) throw error;
    expect(error.code).toMatch(areas[name] ?? /^tool_definition\./);
    expect(error.message).toMatch(/^Cannot /);
    expect(error.message.length).toBeLessThan(600);
    return error as LooprigError;
  }
  throw new Error(`${name} took it`);
}

describe.each(Object.keys(definers))("T3: %s", (name) => {
  const [define, good] = definers[name] as readonly [(options: never) => unknown, object];
  const members = Object.keys(good);

  it("takes what it should, also frozen, of a class, or without a prototype", () => {
    for (const options of [good, Object.freeze({ ...good }), Object.assign(Object.create(null) as object, good)]) {
      expect(define(options as never)).toBeTypeOf("object");
    }
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a number", 7],
    ["a text", "options"],
    ["a list", [good]],
    ["a symbol", Symbol("options")],
    ["a bigint", 7n],
    ["a proxy that answers nothing", sphinx],
    ["a revoked proxy", revoked()],
    // For a schema these say nothing, which is a schema of anything.
    ...(name === "jsonSchema"
      ? []
      : ([
          ["a map", new Map(Object.entries(good))],
          ["a promise", Promise.resolve(good)],
        ] satisfies [string, unknown][])),
  ])("refuses %s", (_, options) => {
    refusalOf(name, options);
  });

  it.each(members)("refuses a `%s` that throws when it is read, with the error as the cause", (member) => {
    const options = Object.defineProperty({ ...good }, member, { enumerable: true, get: fail });
    expect(refusalOf(name, options).cause).toBe(trapped);
  });

  it.each(members)("refuses a `%s` of every wrong type", (member) => {
    for (const value of [null, 7, "", " ", [null], [7], Symbol("x"), 7n, sphinx, revoked(), noDate]) {
      if (member === "system" && typeof value === "string") continue;
      // An object that sets no limit.
      if (member === "limits" && value === noDate) continue;
      refusalOf(name, { ...good, [member]: value });
    }
  });

  it("refuses a member that it does not know", () => {
    if (name === "jsonSchema") return;
    expect(refusalOf(name, { ...good, needApproval: true }).message).toContain("needApproval");
    expect(refusalOf(name, JSON.parse(`{"__proto__":{}}`)).code).toBeDefined();
  });

  it("shows no more than is good of what it was given", () => {
    const text = refusalOf(name, { ...good, [members[0] ?? ""]: "x".repeat(1_000_000) });
    expect(JSON.stringify(text).length).toBeLessThan(3_000);
  });
});

it.each([null, 7, "no", { needsApproval: "no" }, { needsApproval: null }, { needApproval: false }])(
  "T5: bash(%j) is refused, since nobody may think that it asks",
  (options) => {
    expect(() => bash(options as never)).toThrow(expect.objectContaining({ code: "tool_definition.invalid" }));
  },
);
