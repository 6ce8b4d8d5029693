/**
 * One turn: the shell around `turn-state.ts`. It owns the order of the turn's events (E2):
 *
 * 1. `step-started` (the whole message) is durable before any of its calls runs.
 * 2. Per call `tool-started` before its tool runs, `tool-done` after (`tool-call.ts`).
 * 3. `step-done` after every call of the step has its `tool-done`; the next model call after that.
 *
 * The turn's own beginning and end (`turn-started`, `turn-done` and its kin) are the session's to journal: they belong to
 * its root's order and its boundaries. `turnEnd` says what the loop has to tell in them.
 */
import { mintCallId, mintStepId } from "../core/index.js";
import type { LooprigError, LoopId, StepId, TurnId } from "../core/index.js";
import type { AssistantPart, NewEvent, TokenUsage, TurnLimit } from "../session-store/index.js";
import { callsOf, unknownOutcome, withEvents } from "./conversation.js";
import type { Conversation } from "./conversation.js";
import type { LoopDefinition } from "./definition.js";
import { interruptReason } from "./interrupt.js";
import { modelName } from "./model.js";
import type { ModelReply } from "./model-stream.js";
import type { OpenStep, OpenTurn } from "./open-turn.js";
import { toPrompt } from "./prompt.js";
import { callModelRetrying, defaultRetryPolicy } from "./retrying-model.js";
import type { RetryPolicy } from "./retrying-model.js";
import { systemTimer } from "./timer.js";
import type { Timer } from "./timer.js";
import { runBatch } from "./tool-batch.js";
import { toolDone } from "./tool-call.js";
import type { TurnHost, TurnTool } from "./turn-host.js";
import { answered, batchDone, beginTurn, decide } from "./turn-state.js";
import type { AdmittedCall, TurnState } from "./turn-state.js";

export interface TurnOptions {
  readonly loop: LoopDefinition;
  readonly loopId: LoopId;
  readonly turnId: TurnId;
  /** By name. What a definition's `bindTools` made, for this loop. */
  readonly tools: ReadonlyMap<string, TurnTool>;
  /** All that was said, this turn's input included. */
  readonly conversation: Conversation;
  readonly host: TurnHost;
  /** Interrupts the turn; its reason is recorded. */
  readonly signal?: AbortSignal | undefined;
  /** A turn that a killed session left open: it goes on where its journal ends. */
  readonly open?: OpenTurn | undefined;
  /** How long a model may say nothing. Default 120 000. */
  readonly idleMs?: number | undefined;
  readonly retry?: RetryPolicy | undefined;
  readonly timer?: Timer | undefined;
  readonly random?: (() => number) | undefined;
}

export type TurnOutcome =
  | {
      readonly status: "done";
      /** The reply. */
      readonly text: string;
      /** Why the reply ends where it does: "stop", or "length" and "content-filter" for one that is not whole. */
      readonly finish: string;
      /** The limit that ended the turn before the model did. */
      readonly limit: TurnLimit | undefined;
      readonly steps: number;
      readonly usage: TokenUsage;
    }
  | { readonly status: "failed"; readonly error: LooprigError; readonly steps: number; readonly usage: TokenUsage }
  | { readonly status: "interrupted"; readonly reason: string; readonly steps: number; readonly usage: TokenUsage };

const defaultIdleMs = 120_000;

/** Runs the turn to its end. Rejects only with what the host rejected with; then nothing runs any more. */
export async function runTurn(options: TurnOptions): Promise<TurnOutcome> {
  const { host, open, signal = new AbortController().signal } = options;
  const run = new TurnRun(options, signal);
  let state: TurnState = open?.state ?? beginTurn(options.loop.limits);
  /** The step whose `step-done` is not on record yet. */
  let step: OpenStep | undefined = open?.step;
  let finish = step?.finish ?? "stop";
  const endStep = async (): Promise<void> => {
    if (step !== undefined) await run.endStep(step, state.steps);
    step = undefined;
  };
  const soFar = (): { readonly steps: number; readonly usage: TokenUsage } => ({
    steps: state.steps,
    usage: state.usage,
  });
  for (;;) {
    const decision = decide(state);
    switch (decision.do) {
      case "call-model": {
        if (signal.aborted) return { status: "interrupted", reason: interruptReason(signal), ...soFar() };
        run.hear((await host.beforeModelCall?.(decision.step)) ?? []);
        const reply = await run.callModel(decision.closing);
        step = newStep(reply);
        finish = step.finish;
        if (reply.status !== "complete") {
          await run.journalCutMessage(reply.content, step);
          return reply.status === "failed"
            ? { status: "failed", error: reply.failure.error, ...soFar() }
            : { status: "interrupted", reason: interruptReason(signal), ...soFar() };
        }
        await run.journal([run.message(reply.content, finish)], step.stepId);
        state = answered(state, { text: textOf(reply.content), calls: callsOf(reply), usage: reply.usage });
        break;
      }
      case "run-calls":
        if (step !== undefined) await run.runCalls(decision.calls, step);
        await endStep();
        state = batchDone(state);
        break;
      case "reply":
        await endStep();
        return { status: "done", text: decision.text, finish, limit: state.limit, ...soFar() };
      default:
        return decision satisfies never;
    }
  }
}

/** What the loop has to tell in the event that ends its turn. */
export function turnEnd(outcome: TurnOutcome):
  | {
      readonly type: "turn-done";
      readonly text: string;
      readonly steps: number;
      readonly usage: TokenUsage;
      readonly limit?: TurnLimit;
    }
  | { readonly type: "turn-failed"; readonly code: string; readonly message: string }
  | { readonly type: "turn-interrupted"; readonly reason: string } {
  switch (outcome.status) {
    case "done": {
      const { text, steps, usage, limit } = outcome;
      return { type: "turn-done", text, steps, usage, ...(limit === undefined ? {} : { limit }) };
    }
    case "failed":
      return { type: "turn-failed", code: outcome.error.code, message: outcome.error.message };
    case "interrupted":
      return { type: "turn-interrupted", reason: outcome.reason };
    default:
      return outcome satisfies never;
  }
}

const newStep = (reply: ModelReply): OpenStep => ({
  stepId: mintStepId(),
  usage: reply.status === "complete" ? reply.usage : {},
  finish: reply.status === "complete" ? reply.finish : reply.status === "failed" ? "error" : "interrupted",
  started: [],
  done: [],
});

const textOf = (content: readonly AssistantPart[]): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");

/** The effects of a turn, each in one place. */
class TurnRun {
  readonly #options: TurnOptions;
  readonly #signal: AbortSignal;
  readonly #model: string;
  readonly #timer: Timer;
  #conversation: Conversation;

  constructor(options: TurnOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#model = modelName(options.loop.model);
    this.#timer = options.timer ?? systemTimer;
    this.#conversation = options.conversation;
  }

  callModel(closing: string | undefined): Promise<ModelReply> {
    const {
      loop,
      tools,
      host,
      idleMs = defaultIdleMs,
      retry = defaultRetryPolicy,
      random = Math.random,
    } = this.#options;
    const { model, system } = loop;
    const { specificationVersion } = model;
    return callModelRetrying(
      model,
      {
        prompt: toPrompt(this.#conversation, { model: this.#model, specificationVersion, system, closing }),
        tools: [...tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
        toolChoice: closing === undefined ? "auto" : "none",
        signal: this.#signal,
        idleMs,
        timer: this.#timer,
        mintCallId,
        onText: (text) => host.live({ type: "text-delta", text }),
      },
      retry,
      random,
    );
  }

  /** Events that are on record already. */
  hear(events: readonly NewEvent[]): void {
    this.#conversation = withEvents(this.#conversation, events, this.#options.loopId);
  }

  message(content: readonly AssistantPart[], finish: string): NewEvent {
    return { type: "step-started", model: this.#model, content, finish };
  }

  /** What was shown of a message that has no end is kept, so that the history says what the user saw. */
  async journalCutMessage(content: readonly AssistantPart[], { stepId, usage, finish }: OpenStep): Promise<void> {
    if (content.length === 0) return;
    await this.journal([this.message(content, finish), { type: "step-done", usage }], stepId);
  }

  async runCalls(calls: readonly AdmittedCall[], { stepId, started, done }: OpenStep): Promise<void> {
    const { tools, host } = this.#options;
    const left = calls.filter(({ call }) => !done.includes(call.callId));
    const journal = (events: readonly NewEvent[]): Promise<void> => this.journal(events, stepId);
    const lost = left.filter(({ call }) => started.includes(call.callId));
    for (const { call } of lost) await journal([toolDone(call, { outcome: "unknown", text: unknownOutcome })]);
    await runBatch(
      left.filter((admitted) => !lost.includes(admitted)),
      { tools, host, journal, signal: this.#signal, timer: this.#timer },
    );
  }

  async endStep({ stepId, usage }: OpenStep, number: number): Promise<void> {
    await this.journal([{ type: "step-done", usage }], stepId);
    await this.#options.host.afterStep?.(number);
  }

  async journal(events: readonly NewEvent[], stepId: StepId): Promise<void> {
    const { loopId, turnId, host } = this.#options;
    const stamped = events.map((event) => ({ ...event, loopId, turnId, stepId }));
    await host.journal(stamped);
    this.hear(stamped);
  }
}
