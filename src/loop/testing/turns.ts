/** What turns are run with in tests: a journal that remembers, tools that do as they are told. */
import { mintLoopId, mintTurnId } from "../../core/index.js";
import type { NewEvent, ToolOutcome } from "../../session-store/index.js";
import type { ToolResult } from "../../tool/index.js";
import { emptyConversation, withEvents } from "../conversation.js";
import { defaultLimits } from "../definition.js";
import type { LoopDefinition } from "../definition.js";
import type { LanguageModel } from "../model.js";
import { fakeModel, finish, says } from "./models.js";
import type { FakeModel } from "./models.js";
import type { LivePart, TurnCallContext, TurnHost, TurnTool } from "../turn-host.js";
import type { TurnOptions } from "../turn.js";

export interface RecordingHost extends TurnHost {
  readonly events: readonly NewEvent[];
  readonly live: ((part: LivePart) => void) & { readonly parts: readonly LivePart[] };
}

export function recordingHost(overrides: Partial<TurnHost> = {}): RecordingHost {
  const events: NewEvent[] = [];
  const parts: LivePart[] = [];
  return {
    approve: async () => ({ approve: true }),
    ...overrides,
    events,
    async journal(given) {
      await overrides.journal?.(given);
      events.push(...given);
    },
    live: Object.assign((part: LivePart) => void parts.push(part), { parts }),
  };
}

/** A tool that takes anything and answers with what `execute` returns. */
export function fakeTool(
  name: string,
  execute: (
    input: unknown,
    context: TurnCallContext,
  ) => Partial<ToolResult> | string | Promise<Partial<ToolResult> | string>,
  overrides: Partial<TurnTool> = {},
): TurnTool {
  return {
    name,
    description: `The tool ${name}`,
    inputSchema: { type: "object" },
    validate: async (value) => ({ value }),
    needsApproval: async () => false,
    execute: async (value, context) => {
      const result = await execute(value, context);
      return typeof result === "string" ? { text: result, isError: false } : { text: "", isError: false, ...result };
    },
    ...overrides,
  };
}

export const echo = fakeTool("Echo", (input) => JSON.stringify(input));

export const loopOf = (model: LanguageModel, overrides: Partial<LoopDefinition> = {}): LoopDefinition => ({
  name: "operator",
  model,
  system: undefined,
  tools: [],
  limits: defaultLimits,
  ...overrides,
});

export function turnOf(
  model: LanguageModel,
  host: TurnHost,
  tools: readonly TurnTool[] = [echo],
  overrides: Partial<TurnOptions> = {},
): TurnOptions {
  const loopId = mintLoopId();
  const turnId = mintTurnId();
  return {
    loop: loopOf(model),
    loopId,
    turnId,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    conversation: withEvents(
      emptyConversation,
      [{ type: "turn-started", loopId, turnId, number: 1, order: 1, input: "do it", kind: "prompt" }],
      loopId,
    ),
    host,
    random: () => 1,
    ...overrides,
  };
}

/** The events of one type. */
export const ofType = <T extends NewEvent["type"]>(events: readonly NewEvent[], type: T): readonly NewEvent<T>[] =>
  events.filter((event): event is NewEvent<T> => event.type === type);

export const typesOf = (events: readonly NewEvent[]): readonly string[] => events.map(({ type }) => type);

/** Something to wait for, settled from outside. */
export function deferred<T = void>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** A model that makes these calls in its first step, and then says that it is done. */
export const callsOnce = (...made: readonly unknown[]): FakeModel =>
  fakeModel((call) => (call === 1 ? [...made, finish("tool-calls")] : [...says("done"), finish()]));

/** What became of the calls, in the order in which they ended. */
export const resultsIn = (
  events: readonly NewEvent[],
): readonly { readonly name: string; readonly outcome: ToolOutcome; readonly text: string }[] =>
  ofType(events, "tool-done").map(({ name, outcome, text }) => ({ name, outcome, text }));
