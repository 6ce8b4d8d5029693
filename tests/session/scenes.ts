/** Sessions for tests: tools that stop where a test wants, models that are driven by hand, and a rig around them. */
import fs from "node:fs";
import path from "node:path";
import { z } from "zod";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { LanguageModel, LoopDefinition, ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import type { ResumeSessionOptions, RigWorld, StartSessionOptions } from "../../src/rig/index.js";
import type { Session, SessionDelta, Turn } from "../../src/session/index.js";
import type { EventOf, EventType, SessionEvent } from "../../src/session-store/index.js";
import type { Storage } from "../../src/storage/index.js";
import { defineTool, defineTools, jsonSchema, tool } from "../../src/tool/index.js";
import type { ToolDefinition } from "../../src/tool/index.js";
import type { CaptureSettings } from "../../src/workspace/index.js";
import type { Playground } from "../playground.js";

/** Writes a file under its permit. */
export const put = defineTool({
  name: "Put",
  description: "Writes a file",
  requires: ["workspace"],
  inputSchema: z.object({ path: z.string(), text: z.string() }),
  execute: async ({ path: name, text }, { workspace, signal }) => {
    using permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: [name] }, { signal });
    permit.assertHeld();
    fs.writeFileSync(path.join(workspace.root, name), text);
    return `wrote ${name}`;
  },
});

/** Needs a yes. */
export const careful = defineTool({
  name: "Careful",
  description: "Asks first",
  inputSchema: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `did ${what}`,
});

/** Shows how far it is. */
export const chatty = defineTool({
  name: "Chatty",
  description: "Says what it does",
  inputSchema: z.object({ words: z.array(z.string()) }),
  execute: ({ words }, { progress }) => {
    for (const word of words) progress(word);
    return "said";
  },
});

/** Something that happens once, and that others wait for. */
export class Moment {
  readonly reached: Promise<void>;
  #reach!: () => void;

  constructor() {
    this.reached = new Promise((resolve) => (this.#reach = resolve));
  }

  readonly reach = (): void => this.#reach();
}

/** A tool that waits in the middle of its call until it is let go, or until its call is interrupted. */
export function waiter(name = "Wait"): { readonly tool: ToolDefinition; readonly begun: Moment; readonly go: Moment } {
  const [begun, go] = [new Moment(), new Moment()];
  const definition = defineTool({
    name,
    description: "Waits",
    inputSchema: z.object({}),
    execute: async (_input, { signal }) => {
      begun.reach();
      await Promise.race([
        go.reached,
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
      ]);
      return "waited";
    },
  });
  return { tool: definition, begun, go };
}

/**
 * A tool that takes the whole tree for itself, outside of any call, and keeps it until it is told to let go: as a program
 * would that does not stick to its calls.
 */
export function squatter(): { readonly tool: ToolDefinition; readonly letGo: Moment } {
  const [take, taken, letGo] = [new Moment(), new Moment(), new Moment()];
  const definition = defineTools({
    name: "squatter",
    produces: ["Squat"],
    requires: ["workspace"],
    build: ({ workspace }) => {
      const squat = async (): Promise<void> => {
        await take.reached;
        using _permit = await workspace.coordinator.acquire({ operation: "whole-mutation" });
        taken.reach();
        await letGo.reached;
      };
      squat().catch(() => undefined);
      return {
        Squat: tool({
          description: "Takes the tree",
          inputSchema: jsonSchema({ type: "object" }),
          execute: async () => {
            take.reach();
            await taken.reached;
            return "taken";
          },
        }),
      };
    },
  });
  return { tool: definition, letGo };
}

/** A model that begins to answer when a test lets it, and then says its script. */
export function heldModel(
  steps: readonly ScriptStep[],
): LanguageModel & { readonly called: Moment; readonly go: Moment } {
  const [called, go] = [new Moment(), new Moment()];
  const script = scriptedModel(steps);
  return {
    ...script,
    called,
    go,
    doStream: async (options: { readonly abortSignal?: AbortSignal }) => {
      called.reach();
      const { abortSignal } = options;
      await Promise.race([
        go.reached,
        new Promise((_resolve, reject) =>
          abortSignal?.addEventListener("abort", () => reject(abortSignal.reason as Error)),
        ),
      ]);
      return script.doStream(options as never);
    },
  };
}

export interface Scene {
  readonly storage?: Storage | undefined;
  readonly steps?: readonly ScriptStep[] | undefined;
  readonly model?: LanguageModel | undefined;
  readonly tools?: readonly ToolDefinition[] | undefined;
  readonly loops?: readonly LoopDefinition[] | undefined;
  readonly primers?: readonly string[] | undefined;
  readonly placement?: "exclusive" | "session" | "shared" | undefined;
  readonly snapshots?: object | string | undefined;
  readonly root?: string | undefined;
  readonly world?: RigWorld | undefined;
  readonly strict?: boolean | undefined;
  readonly capture?: CaptureSettings | undefined;
}

/** Capture settings that leave something out. */
export const omitting: CaptureSettings = { maxFileBytes: 10, exclude: ["cache"] };

/** A rig of which the compiler knows neither loops nor whether there is a workspace. */
export interface AnyRig {
  readonly fingerprint: string;
  startSession(options?: StartSessionOptions): Promise<Session>;
  resumeSession(id: string, options?: ResumeSessionOptions): Promise<Session>;
}

/** A rig on the playground's root. What it is made of comes from tests that compute it, so its types are not asked. */
export async function rigOn(place: Pick<Playground, "dir" | "root" | "storage">, scene: Scene = {}): Promise<AnyRig> {
  const { steps = [], model = scriptedModel(steps), tools = [put, careful, chatty], placement = "exclusive" } = scene;
  const { storage = await place.storage(), snapshots = "manual", root = place.root, primers, world = {} } = scene;
  const capture = { strict: scene.strict, ...scene.capture };
  const placements = {
    exclusive: { exclusiveWorkspace: { root, capture } },
    session: { sessionWorkspaces: { baseDir: path.join(place.dir, "sessions"), capture } },
    shared: { sharedWorkspace: { root, capture } },
  };
  return rigDefiner(() => world)({
    ...{ storage, snapshots, loops: scene.loops ?? [defineLoop({ name: "operator", model, tools })] },
    ...(primers === undefined ? {} : { primers }),
    ...placements[placement],
  } as Parameters<ReturnType<typeof rigDefiner>>[0]) as unknown as AnyRig;
}

export const isEvent = (part: SessionEvent | SessionDelta): part is SessionEvent => "seq" in part;

export async function partsOf(turn: Turn): Promise<readonly (SessionEvent | SessionDelta)[]> {
  const parts: (SessionEvent | SessionDelta)[] = [];
  for await (const part of turn) parts.push(part);
  return parts;
}

/** All that is on record of a session, read beside it. */
export async function journalOf(storage: Storage, id: string): Promise<readonly SessionEvent[]> {
  const { createSessionStore } = await import("../../src/session-store/index.js");
  const events: SessionEvent[] = [];
  for await (const event of createSessionStore(storage).read(id as never)) events.push(event);
  return events;
}

export const only = <T extends EventType>(events: readonly SessionEvent[], type: T): readonly EventOf<T>[] =>
  events.filter((event): event is EventOf<T> => event.type === type);

/** Waits until an event of the session is on record. */
export async function until(session: Pick<Session, "events">, type: EventType, from = 1): Promise<SessionEvent> {
  const stop = new AbortController();
  for await (const event of session.events({ from, signal: stop.signal })) if (event.type === type) return event;
  throw new Error(`the session ended without ${type}`);
}

export const wrote = (name: string, text: string): ScriptStep => ({
  calls: [{ tool: "Put", input: { path: name, text } }],
});

/** A model that plays a script and keeps what it was told. */
export function recordingModel(steps: readonly ScriptStep[]): LanguageModel & { readonly prompts: string[] } {
  const script = scriptedModel(steps);
  const prompts: string[] = [];
  return {
    ...script,
    prompts,
    doStream: (options: { readonly prompt: unknown }) => {
      prompts.push(JSON.stringify(options.prompt));
      return script.doStream(options as never);
    },
  };
}
