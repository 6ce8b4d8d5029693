/** What was said and done in a session, folded from its events. Pure. */
import type { CallId, GateId, Json, LoopId, TurnId } from "../core/index.js";
import { emptyConversation, withEvents } from "../loop/index.js";
import type { Message } from "../loop/index.js";
import type { EventOf, SessionEvent, SessionSummary, TokenUsage } from "../session-store/index.js";
import { Fault } from "./session-journal.js";

/** A session as its journal tells it. */
export interface SessionHistory {
  /** "live": somebody has it open now. "interrupted": nobody has, and it was not closed. */
  readonly state: SessionSummary["state"];
  /** In the order in which they were started; empty for a workspace without an agent. */
  readonly loops: readonly LoopHistory[];
  readonly turns: readonly TurnHistory[];
  /** Questions that wait for an answer. */
  readonly openGates: readonly OpenGate[];
  /** The code of the required checkpoint that failed, until one was taken by hand (K1). */
  readonly faulted?: string;
}

/** One loop and all that was said in it. */
export interface LoopHistory {
  readonly name: string;
  readonly loopId: LoopId;
  readonly messages: readonly Message[];
}

/** One turn, from its input to how it ended. */
export interface TurnHistory {
  /** `t<number>`. */
  readonly number: number;
  readonly turnId: TurnId;
  /** The loop it ran in; absent for a command. */
  readonly loop?: string;
  readonly input: string;
  readonly kind: "prompt" | "command";
  readonly startedAt: Date;
  readonly endedAt?: Date;
  /** "unsettled": its session died in the middle, and nobody went on with it yet. */
  readonly state: "running" | "done" | "failed" | "interrupted" | "unsettled";
  /** The reply. */
  readonly text?: string;
  /** Why it failed or was interrupted. */
  readonly reason?: string;
  /** Model calls. */
  readonly steps?: number;
  readonly usage?: TokenUsage;
}

/** A call that waits for a yes or no (T5). */
export interface OpenGate {
  readonly gateId: GateId;
  readonly callId: CallId;
  readonly tool: string;
  readonly input: Json;
  readonly at: Date;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export function foldSession(events: readonly SessionEvent[], state: SessionSummary["state"]): SessionHistory {
  const names = new Map<LoopId, string>();
  const turns = new Map<TurnId, Mutable<TurnHistory>>();
  const gates = new Map<GateId, OpenGate>();
  const fault = new Fault();
  for (const event of events) {
    fault.heard(event);
    const turn = event.turnId === undefined ? undefined : turns.get(event.turnId);
    switch (event.type) {
      case "loop-started":
        if (event.loopId !== undefined) names.set(event.loopId, event.name);
        break;
      case "turn-started":
        if (event.turnId !== undefined) turns.set(event.turnId, begun(event, event.turnId, state, names));
        break;
      case "turn-done":
      case "turn-failed":
      case "turn-interrupted":
        gates.clear();
        if (turn !== undefined) end(turn, event);
        break;
      case "gate-opened": {
        const { gateId, callId, tool, input, at } = event;
        gates.set(gateId, { gateId, callId, tool, input, at });
        break;
      }
      case "gate-resolved":
        gates.delete(event.gateId);
        break;
      default:
        break;
    }
  }
  return {
    state,
    loops: [...names].map(([loopId, name]) => ({
      name,
      loopId,
      messages: withEvents(emptyConversation, events, loopId).messages,
    })),
    turns: [...turns.values()],
    openGates: [...gates.values()],
    ...(fault.code === undefined ? {} : { faulted: fault.code }),
  };
}

function begun(
  { number, input, kind, at, loopId }: EventOf<"turn-started">,
  turnId: TurnId,
  state: SessionSummary["state"],
  names: ReadonlyMap<LoopId, string>,
): Mutable<TurnHistory> {
  const loop = loopId === undefined ? undefined : names.get(loopId);
  return {
    ...{ number, turnId, input, kind, startedAt: at, state: state === "live" ? "running" : "unsettled" },
    ...(loop === undefined ? {} : { loop }),
  };
}

function end(turn: Mutable<TurnHistory>, event: EventOf<"turn-done" | "turn-failed" | "turn-interrupted">): void {
  turn.endedAt = event.at;
  switch (event.type) {
    case "turn-done":
      turn.state = "done";
      if (event.text !== undefined) turn.text = event.text;
      if (event.steps !== undefined) turn.steps = event.steps;
      if (event.usage !== undefined) turn.usage = event.usage;
      return;
    case "turn-failed":
      turn.state = "failed";
      turn.reason = event.message;
      return;
    case "turn-interrupted":
      turn.state = "interrupted";
      turn.reason = event.reason;
      return;
    default:
      event satisfies never;
  }
}
