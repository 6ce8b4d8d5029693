/**
 * One turn, from its number to its end on record: baseline, the loop's work, closing capture, boundary.
 *
 * Ordering rules:
 * 1. `turn-started` before anything of the turn; the baseline before its first model call (K4).
 * 2. Every model call and every step begins in the right directory (R7) and, where the policy requires its captures, in a
 *    session without a fault (K1): otherwise the turn ends as failed there.
 * 3. The turn's questions are closed before its end is made ready, so that no answer is journaled behind it (T5).
 * 4. The closing capture's events and the event that ends the turn are one append, and it is the boundary's trigger.
 * 5. Whatever fails ends the turn on record, as long as the journal is ours. After the loss of a lease nothing is recorded:
 *    whoever takes over settles the turn (C5).
 */
import { LooprigError, isLooprigError } from "../core/index.js";
import type { LoopId, TurnId } from "../core/index.js";
import { runTurn, turnEnd } from "../loop/index.js";
import type { LivePart, OpenTurn, Timer, TurnHost, TurnOutcome } from "../loop/index.js";
import type { Journal, NewEvent } from "../session-store/index.js";
import { readGitHead } from "../workspace/index.js";
import type { OwnedRoot } from "../workspace/index.js";
import type { Boundaries, Passed } from "./boundaries.js";
import type { ProgressFeed } from "./capture-progress.js";
import type { TurnResult } from "./contracts.js";
import type { Gates } from "./gates.js";
import type { LiveTurn } from "./live-turn.js";
import type { LoopActor } from "./parts.js";
import type { Fault } from "./session-journal.js";
import { TurnWindow } from "./turn-window.js";

export interface Submission {
  readonly turn: LiveTurn;
  readonly input: string;
  readonly signal: AbortSignal | undefined;
  readonly resumed?: ResumedTurn | undefined;
}

/** A turn of before a restart, which goes on in the window it was begun in. */
export interface ResumedTurn {
  readonly open: OpenTurn;
  readonly loop: string;
  readonly number: number;
  readonly input: string;
  readonly window: TurnWindow | undefined;
}

export interface FinishedTurn extends Pick<Passed, "captured"> {
  readonly result: TurnResult;
}

export interface TurnRunnerParts {
  readonly journal: Journal;
  readonly gates: Gates;
  readonly owned: OwnedRoot | undefined;
  readonly boundaries: Boundaries;
  readonly progress: ProgressFeed;
  readonly fault: Fault;
  readonly timer: Timer;
  /** Turns so far, where no root numbers them. */
  readonly turns: number;
}

type TurnOf = Readonly<{ turnId: TurnId; loopId: LoopId }>;

export class TurnRunner {
  readonly #parts: TurnRunnerParts;
  #turns: number;

  constructor(parts: TurnRunnerParts) {
    this.#parts = parts;
    this.#turns = parts.turns;
  }

  /**
   * Rejects when the turn could not be begun, or its end could not be recorded. `learn` is asked between the steps for what
   * was put on record beneath the turn.
   */
  async run(
    { turn, input, resumed }: Submission,
    actor: LoopActor,
    learn: () => Promise<readonly NewEvent[]>,
    signal: AbortSignal,
  ): Promise<FinishedTurn> {
    const of = { turnId: turn.id, loopId: actor.loopId };
    const window = resumed === undefined ? await this.#begin(turn, input, of) : resumed.window;
    const outcome = await this.#outcome(turn, actor, { window, open: resumed?.open, learn }, signal);
    this.#parts.gates.clear();
    const { captured } = await this.#end(of, outcome, window);
    return { result: toResult(turn.id, outcome), captured };
  }

  async #begin(turn: LiveTurn, input: string, of: TurnOf): Promise<TurnWindow | undefined> {
    const { owned, journal } = this.#parts;
    const { turn: number, order } = await this.#draw(true);
    turn.begin(number);
    await journal.append([
      { type: "session-active", doing: `t${number}` },
      { type: "turn-started", number, order, input, kind: "prompt", ...of, ...this.#head() },
    ]);
    return owned === undefined ? undefined : new TurnWindow(owned, of);
  }

  /** What the loop did, or what kept it from it. */
  async #outcome(
    turn: LiveTurn,
    { definition, loopId, tools, conversation, outputs }: LoopActor,
    {
      window,
      open,
      learn,
    }: {
      readonly window: TurnWindow | undefined;
      readonly open: OpenTurn | undefined;
      readonly learn: () => Promise<readonly NewEvent[]>;
    },
    signal: AbortSignal,
  ): Promise<TurnOutcome> {
    const { progress, timer } = this.#parts;
    const host = this.#host(turn, { turnId: turn.id, loopId }, outputs, learn);
    try {
      if (open === undefined && window !== undefined) {
        this.#parts.owned?.directory();
        // An interrupt ends the capture, and the loop says so: it begins nothing.
        await progress
          .during(() => window.open(signal))
          .catch((error: unknown) => {
            if (!signal.aborted || isLeaseLoss(error)) throw error;
          });
      }
      return await runTurn({
        loop: definition,
        loopId,
        turnId: turn.id,
        tools,
        conversation,
        host,
        signal,
        open,
        timer,
      });
    } catch (error) {
      if (!isLooprigError(error) || isLeaseLoss(error)) throw error;
      return { status: "failed", error, steps: 0, usage: {} };
    }
  }

  async #end(of: TurnOf, outcome: TurnOutcome, window: TurnWindow | undefined): Promise<Passed> {
    const order = async (): Promise<number> => (await this.#draw(false)).order;
    const closed = window === undefined ? { events: [], changed: 0, order: await order() } : await window.close(order);
    const end: NewEvent = {
      ...turnEnd(outcome),
      ...of,
      ...{ order: closed.order, changed: closed.changed, ...this.#head() },
    };
    return this.#parts.boundaries.pass("turn-done", [...closed.events, end]);
  }

  #host(
    turn: LiveTurn,
    of: TurnOf,
    outputs: LoopActor["outputs"],
    learn: () => Promise<readonly NewEvent[]>,
  ): TurnHost {
    const { journal, gates, owned, boundaries } = this.#parts;
    return {
      journal: async (events) => {
        if (events.at(-1)?.type !== "step-done") await journal.append(events);
        else await (await boundaries.pass("step-done", events)).captured;
      },
      live: (part: LivePart) => turn.live({ ...part, turnId: turn.id }),
      keep: (callId, text) => outputs?.keep(callId, text),
      approve: (call, interrupted) => gates.ask(call, of, interrupted),
      beforeModelCall: async (step) => {
        owned?.directory();
        // What there was before the turn was told before its input.
        return step === 1 ? [] : learn();
      },
      afterStep: async () => this.#assertSound(),
      abandoned: ({ callId, settled }) => {
        owned?.coordinator.revoke(callId);
        owned?.disturbUntil(settled);
      },
    };
  }

  #assertSound(): void {
    const { fault, journal } = this.#parts;
    if (fault.code !== undefined) throw faulted(journal.sessionId, fault.code);
  }

  /** git's HEAD, where the root is a repository. */
  #head(): { readonly head?: string } {
    const { owned } = this.#parts;
    const head = owned === undefined ? undefined : readGitHead(owned.reader.fileSystem, owned.reader.root);
    return head === undefined ? {} : { head };
  }

  async #draw(turn: boolean): Promise<{ readonly turn: number; readonly order: number }> {
    const { owned, journal } = this.#parts;
    if (owned !== undefined) return owned.reader.record.draw({ turn }, owned.reader.clock());
    if (turn) this.#turns++;
    return { turn: this.#turns, order: journal.head + 1 };
  }
}

/** Somebody else may write now, or did: nothing of ours is to be recorded any more. */
export const isLeaseLoss = (error: unknown): boolean =>
  isLooprigError(error, "lease.lost", "workspace_root.lease_lost", "ledger.fenced", "ledger.conflict");

/** K1: nothing new is admitted until a checkpoint was taken. */
export const faulted = (sessionId: Journal["sessionId"], code: string): LooprigError<"session.faulted"> =>
  new LooprigError(
    "session.faulted",
    `Cannot go on in session ${sessionId}: a required checkpoint failed (${code}); take one with \`workspace.checkpoint()\` first`,
    { sessionId, code },
  );

function toResult(turnId: TurnId, outcome: TurnOutcome): TurnResult {
  switch (outcome.status) {
    case "done": {
      const { text, steps, usage } = outcome;
      return { status: "done", turnId, text, steps, usage };
    }
    case "failed":
      return { status: "failed", turnId, error: outcome.error };
    case "interrupted":
      return interruptedResult(turnId, outcome.reason);
    default:
      return outcome satisfies never;
  }
}

export const interruptedResult = (turnId: TurnId, reason: string): TurnResult => ({
  status: "interrupted",
  turnId,
  reason,
});
