/**
 * A turn that a killed session left open, read from its events: where it stands and what of its last step is on record.
 * Pure. Whether to go on with it is the session's to decide; an open gate is a reason to.
 */
import { mintStepId } from "../core/index.js";
import type { CallId, LoopId, StepId, TurnId } from "../core/index.js";
import type { EventOf, SessionEvent, TokenUsage } from "../session-store/index.js";
import type { TurnLimits } from "./definition.js";
import { callsOf } from "./conversation.js";
import { addUsage, answered, batchDone, beginTurn } from "./turn-state.js";
import type { TurnState } from "./turn-state.js";

export interface OpenTurn {
  readonly turnId: TurnId;
  readonly state: TurnState;
  /** The last step, unless the turn has none or it has ended. */
  readonly step: OpenStep | undefined;
}

/** A step under way: its id, and what of it is on record already. */
export interface OpenStep {
  readonly stepId: StepId;
  readonly usage: TokenUsage;
  readonly finish: string;
  /** Calls with a `tool-started` from before the restart. */
  readonly started: readonly CallId[];
  /** Calls with a `tool-done` from before the restart. */
  readonly done: readonly CallId[];
}

/**
 * The open turn of loop `loopId`; undefined when there is none, or when its last message was cut short: the model would be
 * made to go on in the middle of a sentence.
 */
export function openTurn(events: Iterable<SessionEvent>, loopId: LoopId, limits: TurnLimits): OpenTurn | undefined {
  let turn: OpenTurn | undefined;
  for (const event of events) {
    if (event.loopId !== loopId) continue;
    if (event.type === "turn-started") {
      turn =
        event.turnId === undefined ? undefined : { turnId: event.turnId, state: beginTurn(limits), step: undefined };
    } else if (turn !== undefined && event.turnId === turn.turnId) {
      turn = advance(turn, event);
    }
  }
  return turn;
}

function advance(turn: OpenTurn, event: SessionEvent): OpenTurn | undefined {
  const { state, step } = turn;
  switch (event.type) {
    case "step-started":
      return event.finish === "error" || event.finish === "interrupted" ? undefined : stepStarted(turn, event);
    case "tool-started":
      return step === undefined ? turn : { ...turn, step: { ...step, started: [...step.started, event.callId] } };
    case "tool-done":
      return step === undefined ? turn : { ...turn, step: { ...step, done: [...step.done, event.callId] } };
    case "step-done":
      return { ...turn, step: undefined, state: batchDone({ ...state, usage: addUsage(state.usage, event.usage) }) };
    case "turn-done":
    case "turn-failed":
    case "turn-interrupted":
      return undefined;
    default:
      return turn;
  }
}

function stepStarted(turn: OpenTurn, event: EventOf<"step-started">): OpenTurn {
  const text = event.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const state = answered(turn.state, { text, calls: callsOf(event), usage: {} });
  const step: OpenStep = {
    stepId: event.stepId ?? mintStepId(),
    usage: {},
    finish: event.finish ?? "other",
    started: [],
    done: [],
  };
  return { ...turn, state, step };
}
