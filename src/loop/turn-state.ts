/**
 * The turn, decided: what has happened so far as data in, what to do next as data out. Pure, so that every turn of every
 * model can be checked to end; `turn.ts` does what is decided here.
 *
 * 1. A model call, then its batch of tool calls, then the next model call; a message without calls is the reply.
 * 2. At most `limits.steps` model calls may call tools, and at most `limits.toolCalls` calls are let run. A turn that comes
 *    to a limit gets one more model call, the closing one, without tools: its message is the reply.
 * 3. Calls in the closing message are refused, so a turn makes at most `limits.steps + 1` model calls whatever the model does.
 */
import type { TokenUsage, ToolCallPart, TurnLimit } from "../session-store/index.js";
import type { TurnLimits } from "./definition.js";

export interface TurnState {
  readonly limits: TurnLimits;
  /** Model calls that were answered. */
  readonly steps: number;
  /** Calls that were let run. */
  readonly toolCalls: number;
  readonly usage: TokenUsage;
  /** Why the next model call is the closing one. */
  readonly limit: TurnLimit | undefined;
  readonly phase: Phase;
}

type Phase =
  | { readonly name: "calling-model" }
  | { readonly name: "running-calls"; readonly calls: readonly AdmittedCall[]; readonly text: string }
  | { readonly name: "replied"; readonly text: string };

export interface AdmittedCall {
  readonly call: ToolCallPart;
  /** Undefined: it may run. Otherwise why it may not. */
  readonly refused: string | undefined;
}

export type Decision =
  | { readonly do: "call-model"; readonly step: number; readonly closing: string | undefined }
  | { readonly do: "run-calls"; readonly calls: readonly AdmittedCall[] }
  | { readonly do: "reply"; readonly text: string };

export const beginTurn = (limits: TurnLimits): TurnState => ({
  limits,
  steps: 0,
  toolCalls: 0,
  usage: {},
  limit: undefined,
  phase: { name: "calling-model" },
});

export function decide(state: TurnState): Decision {
  const { phase, steps } = state;
  switch (phase.name) {
    case "calling-model":
      return { do: "call-model", step: steps + 1, closing: closingText(state) };
    case "running-calls":
      return { do: "run-calls", calls: phase.calls };
    case "replied":
      return { do: "reply", text: phase.text };
    default:
      return phase satisfies never;
  }
}

export interface Answer {
  readonly text: string;
  readonly calls: readonly ToolCallPart[];
  readonly usage: TokenUsage;
}

/** The model has answered. */
export function answered(state: TurnState, { text, calls, usage }: Answer): TurnState {
  const next = { ...state, steps: state.steps + 1, usage: addUsage(state.usage, usage) };
  if (calls.length === 0) return { ...next, phase: { name: "replied", text: text === "" ? limitText(state) : text } };
  const admitted = admit(state, calls);
  return {
    ...next,
    toolCalls: state.toolCalls + admitted.filter(({ refused }) => refused === undefined).length,
    phase: { name: "running-calls", calls: admitted, text },
  };
}

/** Every call of the batch has its result. */
export function batchDone(state: TurnState): TurnState {
  const { phase, limits, steps } = state;
  if (phase.name !== "running-calls") return state;
  // The closing message had calls all the same.
  if (state.limit !== undefined) {
    return { ...state, phase: { name: "replied", text: phase.text === "" ? limitText(state) : phase.text } };
  }
  const limit = phase.calls.some(({ refused }) => refused !== undefined)
    ? ("toolCalls" as const)
    : steps >= limits.steps
      ? ("steps" as const)
      : undefined;
  return { ...state, limit, phase: { name: "calling-model" } };
}

function admit(state: TurnState, calls: readonly ToolCallPart[]): readonly AdmittedCall[] {
  const { limits, limit, toolCalls } = state;
  return calls.map((call, index) => {
    if (limit !== undefined) return { call, refused: "This call did not run: the turn has come to its limit." };
    const over = toolCalls + index >= limits.toolCalls;
    return {
      call,
      refused: over
        ? `This call did not run: the limit of ${limits.toolCalls} tool calls in one turn has been reached.`
        : undefined,
    };
  });
}

const limitName = ({ limits, limit }: TurnState): string =>
  limit === "toolCalls" ? `${limits.toolCalls} tool calls` : `${limits.steps} steps`;

/** Said to the model with the closing call; not part of the conversation. */
const closingText = (state: TurnState): string | undefined =>
  state.limit === undefined
    ? undefined
    : `[This turn has come to its limit of ${limitName(state)}. Answer now, without calling tools: say what is done, what is not, and how to go on.]`;

/** The last message of a turn that came to its limit when the model has none. */
const limitText = (state: TurnState): string =>
  state.limit === undefined
    ? ""
    : `Stopped at the limit of ${limitName(state)} in one turn. Submit again to go on, or raise the loop's limits.`;

export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  const names = ["inputTokens", "outputTokens", "cachedInputTokens", "reasoningTokens"] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const sum = (a[name] ?? 0) + (b[name] ?? 0);
      // A number that was never stated stays unsaid, and no sum of hostile numbers leaves what JSON keeps exact.
      return a[name] === undefined && b[name] === undefined ? [] : [[name, Math.min(sum, Number.MAX_SAFE_INTEGER)]];
    }),
  );
}
