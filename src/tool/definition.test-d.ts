/** What the types of definitions promise, and what must not compile (T1, T3, T4, T5). */
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { expectTypeOf } from "vitest";
import { z } from "zod";
import type { CallId, LoopId, SessionId } from "../core/index.js";
import type { WorkspaceCoordinator } from "../workspace/index.js";
import type { ReadWorkspaceBinding, WorkspaceBinding } from "./bindings.js";
import type { BindingsFor, Capability } from "./capabilities.js";
import { defineReadTools, defineTool, defineTools } from "./definition.js";
import type { ToolDefinition } from "./definition.js";
import { jsonSchema } from "./json-schema.js";
import type { ToolSchema } from "./schema.js";
import { tool } from "./tool.js";

// T1: exactly what was asked for
expectTypeOf<keyof BindingsFor<["workspace-read"]>>().toEqualTypeOf<"sessionId" | "loopId" | "readWorkspace">();
expectTypeOf<keyof BindingsFor<["workspace", "process"]>>().toEqualTypeOf<
  "sessionId" | "loopId" | "workspace" | "process"
>();
expectTypeOf<keyof BindingsFor<[]>>().toEqualTypeOf<"sessionId" | "loopId">();
expectTypeOf<BindingsFor<["workspace-read"]>["readWorkspace"]>().toEqualTypeOf<ReadWorkspaceBinding>();
expectTypeOf<BindingsFor<["delegate"]>["sessionId"]>().toEqualTypeOf<SessionId>();
expectTypeOf<BindingsFor<["delegate"]>["loopId"]>().toEqualTypeOf<LoopId>();
// T2: a root and nothing to change it with
expectTypeOf<keyof ReadWorkspaceBinding>().toEqualTypeOf<"root">();
expectTypeOf<keyof WorkspaceBinding>().toEqualTypeOf<
  "root" | "coordinator" | "observations" | "commits" | "records" | "outputs"
>();
// a list that the compiler cannot look into may lack any of them
expectTypeOf<BindingsFor<readonly Capability[]>["workspace"]>().toEqualTypeOf<WorkspaceBinding | undefined>();
expectTypeOf<BindingsFor<readonly ("process" | "workspace")[]>>().not.toExtend<{ process: unknown }>();
declare const either: BindingsFor<["workspace" | "process"]>;
// @ts-expect-error it is one of the two, and nobody knows which
export const guessed: unknown = either.workspace;

declare const [mine, other]: readonly [WorkspaceBinding, WorkspaceBinding];
// @ts-expect-error a binding is not for writing
mine.root = other.root;

// one tool: input from the schema, bindings from `requires`, without a word by the author
export const count = defineTool({
  name: "Count",
  description: "Counts the lines of a file",
  inputSchema: z.object({ path: z.string(), limit: z.number().default(10) }),
  requires: ["workspace-read"],
  needsApproval: ({ limit }) => limit > 100,
  execute: async ({ path, limit }, { readWorkspace, signal, callId }) => {
    expectTypeOf(path).toEqualTypeOf<string>();
    // the output side of the schema: its default was applied
    expectTypeOf(limit).toEqualTypeOf<number>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(callId).toEqualTypeOf<CallId>();
    return `${readWorkspace.root}/${path}:${limit}`;
  },
});
expectTypeOf(count).toEqualTypeOf<ToolDefinition<"Count", readonly ["workspace-read"]>>();

export const now = defineTool({
  name: "Now",
  description: "Tells the time",
  inputSchema: z.object({}),
  execute: (_input, context) => {
    expectTypeOf(context).toEqualTypeOf<{
      readonly sessionId: SessionId;
      readonly loopId: LoopId;
      readonly signal: AbortSignal;
      readonly callId: CallId;
      readonly progress: (text: string) => void;
    }>();
    return { text: "noon", data: { hour: 12 } };
  },
});
export const all: readonly ToolDefinition[] = [count, now];

export const sneaky = defineTool({
  name: "Sneaky",
  description: "Takes more than it asked for",
  inputSchema: z.object({}),
  requires: ["workspace-read"],
  // @ts-expect-error `workspace` was not asked for
  execute: (_input, { workspace }) => String(workspace),
});
export const unheardOf = defineTool({
  name: "X",
  description: "Asks for what there is not",
  inputSchema: z.object({}),
  // @ts-expect-error not a capability
  requires: ["workspace-write"],
  execute: () => "",
});
export const misspelt = defineTool({
  name: "X",
  description: "Would run without being asked for",
  inputSchema: z.object({}),
  // @ts-expect-error no such option
  needApproval: true,
  execute: () => "",
});
export const mute = defineTool({
  name: "X",
  description: "Answers with a number",
  inputSchema: z.object({}),
  // @ts-expect-error a tool answers with text
  execute: () => 12,
});
export const unsure = defineTool({
  name: "X",
  description: "Answers neither yes nor no",
  inputSchema: z.object({}),
  // @ts-expect-error an answer is yes or no
  needsApproval: () => "yes",
  execute: () => "",
});
// @ts-expect-error a definition is made by one of the functions only
export const forged: ToolDefinition = { name: "X", produces: ["X"], requires: [] };

// T4: schemas that state themselves, and those that do not
export const ark = defineTool({
  name: "A",
  description: "A",
  inputSchema: type({ path: "string" }),
  execute: ({ path }) => path.toUpperCase(),
});
export const bare = defineTool({
  name: "V",
  description: "V",
  // @ts-expect-error Valibot needs toStandardJsonSchema(schema)
  inputSchema: v.object({ path: v.string() }),
  execute: () => "",
});
export const stated = defineTool({
  name: "V",
  description: "V",
  inputSchema: toStandardJsonSchema(v.object({ path: v.string() })),
  execute: ({ path }) => path.toUpperCase(),
});
export const byHand = defineTool({
  name: "J",
  description: "J",
  inputSchema: jsonSchema<{ path: string }>({ type: "object" }),
  execute: ({ path }) => path.toUpperCase(),
});
expectTypeOf(byHand).toEqualTypeOf<ToolDefinition<"J", []>>();
export const anySchema: readonly ToolSchema[] = [z.object({}), type({}), jsonSchema({ type: "object" })];

// several tools
const edit = async (coordinator: WorkspaceCoordinator): Promise<string> => {
  using permit = await coordinator.acquire({ operation: "path-mutation", paths: ["a"] });
  permit.assertHeld();
  return "ok";
};
export const family = defineTools({
  name: "files",
  produces: ["Read", "Write"],
  requires: ["workspace"],
  build: ({ workspace }) => ({
    Read: tool({
      description: "Reads",
      inputSchema: z.object({ path: z.string() }),
      needsApproval: ({ path }) => path.startsWith("/"),
      execute: ({ path }) => path,
    }),
    Write: tool({
      description: "Writes",
      inputSchema: z.object({ path: z.string() }),
      execute: () => edit(workspace.coordinator),
    }),
  }),
});
expectTypeOf(family).toEqualTypeOf<ToolDefinition<"Read" | "Write", readonly ["workspace"]>>();
export const later = defineTools({
  name: "files",
  produces: ["Read"],
  build: async ({ sessionId }) => ({
    Read: tool({ description: "Reads", inputSchema: z.object({}), execute: () => sessionId }),
  }),
});
export const unbuilt = defineTools({
  name: "files",
  produces: ["Read", "Write"],
  // @ts-expect-error Write is declared and not built
  build: () => ({ Read: tool({ description: "Reads", inputSchema: z.object({}), execute: () => "" }) }),
});
export const undeclared = defineTools({
  name: "files",
  produces: ["Read"],
  build: () => ({
    Read: tool({ description: "Reads", inputSchema: z.object({}), execute: () => "" }),
    // @ts-expect-error built and not declared
    Wirte: tool({ description: "Writes", inputSchema: z.object({}), execute: () => "" }),
  }),
});

// T3: read tools read
export const evidence = defineReadTools({
  name: "evidence",
  produces: ["Look"],
  build: ({ readWorkspace, ...rest }) => {
    expectTypeOf(rest).toEqualTypeOf<{ sessionId: SessionId; loopId: LoopId }>();
    return { Look: tool({ description: "Looks", inputSchema: z.object({}), execute: () => readWorkspace.root }) };
  },
});
expectTypeOf(evidence).toEqualTypeOf<ToolDefinition<"Look", readonly ["workspace-read"]>>();
export const impostor = defineReadTools({
  name: "evidence",
  produces: ["Look"],
  // @ts-expect-error read tools are given workspace-read only
  requires: ["workspace"],
  build: () => ({ Look: tool({ description: "Looks", inputSchema: z.object({}), execute: () => "" }) }),
});
