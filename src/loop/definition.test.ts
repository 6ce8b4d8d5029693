import { describe, expect, it } from "vitest";
import { isLooprigError } from "../core/index.js";
import { defineTool, jsonSchema } from "../tool/index.js";
import { defineLoop } from "./definition.js";
import { scriptedModel } from "./scripted-model.js";

const model = scriptedModel([]);
const toolNamed = (name: string) =>
  defineTool({ name, description: "A tool", inputSchema: jsonSchema({ type: "object" }), execute: () => "" });

/** Plain JavaScript gives whatever it likes. */
const define = (options: unknown) => defineLoop(options as Parameters<typeof defineLoop>[0]);

const codeOf = (options: unknown): string => {
  try {
    define(options);
  } catch (error) {
    return isLooprigError(error) ? error.code : String(error);
  }
  return "defined";
};

describe("defineLoop", () => {
  it("has limits of 50 steps and 500 tool calls unless told otherwise", () => {
    expect(defineLoop({ name: "operator", model }).limits).toEqual({ steps: 50, toolCalls: 500 });
    expect(defineLoop({ name: "operator", model, limits: { steps: 3 } }).limits).toEqual({ steps: 3, toolCalls: 500 });
  });

  it("returns a frozen value that no later change of the options reaches", () => {
    const tools = [toolNamed("Read")];
    const limits = { steps: 2, toolCalls: 0 };
    const loop = defineLoop({ name: "operator", model, system: "be brief", tools, limits });
    tools.push(toolNamed("Write"));
    limits.steps = 9;
    expect(loop).toMatchObject({ name: "operator", system: "be brief", limits: { steps: 2, toolCalls: 0 } });
    expect(loop.tools.map(({ name }) => name)).toEqual(["Read"]);
    expect([loop, loop.tools, loop.limits].every(Object.isFrozen)).toBe(true);
  });

  it("defines a definition again as an equal one", () => {
    const loop = defineLoop({ name: "operator", model, tools: [toolNamed("Read")], limits: { steps: 1 } });
    expect(defineLoop(loop)).toEqual(loop);
  });

  it.each([
    ["no options", undefined],
    ["no name", { model }],
    ["an empty name", { name: "", model }],
    ["a name that starts with a digit", { name: "1st", model }],
    ["a name with a slash", { name: "a/b", model }],
    ["a name of 65 letters", { name: "a".repeat(65), model }],
    ["a system that is no text", { name: "a", model, system: 1 }],
    ["tools that are no list", { name: "a", model, tools: toolNamed("Read") }],
    ["a tool that is none", { name: "a", model, tools: [{ name: "Read" }] }],
    ["a misspelt option", { name: "a", model, tool: [] }],
    ["a misspelt limit", { name: "a", model, limits: { step: 1 } }],
    ["no steps", { name: "a", model, limits: { steps: 0 } }],
    ["half a step", { name: "a", model, limits: { steps: 1.5 } }],
    ["negative tool calls", { name: "a", model, limits: { toolCalls: -1 } }],
    ["steps that are not finite", { name: "a", model, limits: { steps: Infinity } }],
  ])("refuses %s", (_, options) => {
    expect(codeOf(options)).toBe("loop_definition.invalid");
  });

  it("refuses two tools of one name", () => {
    expect(codeOf({ name: "a", model, tools: [toolNamed("Read"), toolNamed("Read")] })).toBe(
      "loop_definition.repeated_tool",
    );
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["a gateway's name", "openai/gpt"],
    ["a model of AI SDK 5", { ...model, specificationVersion: "v2" }],
    ["an unknown specification", { ...model, specificationVersion: "v5" }],
    ["no doStream", { ...model, doStream: undefined }],
    ["no provider", { ...model, provider: undefined }],
  ])("refuses %s as a model", (_, given) => {
    expect(codeOf({ name: "a", model: given })).toBe("model.unsupported_specification");
  });
});
