/** Rigs for tests of their definition: real loops and tools, and in place of sessions a record of what they were asked. */
import { defineLoop } from "../../loop/index.js";
import type { LanguageModel } from "../../loop/index.js";
import type { ResumeOptions, Session, SessionDefinition, StartOptions } from "../../session/index.js";
import { defineTool, jsonSchema } from "../../tool/index.js";
import type { Capability, ToolDefinition } from "../../tool/index.js";
import { assembleRig } from "../define-rig.js";
import type { RigWorld } from "../define-rig.js";
import type { Rig, SessionRuntime } from "../rig.js";

/** A model that is named and never called. */
export const namedModel = (modelId = "one", provider = "maker"): LanguageModel => ({
  ...{ specificationVersion: "v3", provider, modelId },
  doStream: () => Promise.reject(new Error("nobody calls this model")),
});

export const namedLoop = <const Name extends string>(name: Name, tools: readonly ToolDefinition[] = []) =>
  defineLoop({ name, model: namedModel(), tools });

export const toolThatNeeds = (...requires: readonly Capability[]): ToolDefinition =>
  defineTool({
    name: requires.length === 0 ? "free" : requires.join("-"),
    description: "Does nothing",
    inputSchema: jsonSchema({ type: "object" }),
    requires,
    execute: () => "",
  });

/** Starts no session, and remembers what was asked for. */
export class RecordingRuntime implements SessionRuntime {
  readonly started: { readonly definition: SessionDefinition; readonly options: StartOptions }[] = [];
  readonly resumed: { readonly id: string; readonly options: ResumeOptions }[] = [];
  readonly session = { note: "the session itself" } as unknown as Session;

  async startSession(definition: SessionDefinition, options: StartOptions): Promise<Session> {
    this.started.push({ definition, options });
    return this.session;
  }
  async resumeSession(_definition: SessionDefinition, id: string, options: ResumeOptions): Promise<Session> {
    this.resumed.push({ id, options });
    return this.session;
  }
}

/** Defines a rig as plain JavaScript would: nothing of `options` is known to the compiler. */
export const defineUntyped = (options: unknown, world: RigWorld = {}): Rig =>
  assembleRig(options, { sessions: new RecordingRuntime(), ...world });

/** What sessions of the rig are made from. */
export async function definitionOf(options: unknown, world: RigWorld = {}): Promise<SessionDefinition> {
  const runtime = new RecordingRuntime();
  await defineUntyped(options, { ...world, sessions: runtime }).startSession();
  const [first] = runtime.started;
  if (first === undefined) throw new Error("the rig started no session");
  return first.definition;
}
