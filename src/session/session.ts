/**
 * The session at work: one turn after the other, each in its own window of the tree, and the boundaries of the policy.
 *
 * Ordering rules:
 * 1. Everything is journaled through one journal; the hub hears it when it is durable, never before.
 * 2. One turn runs at a time; inputs wait in the order they came. While a turn runs the workspace's own verbs are refused,
 *    and a turn waits for one of them that is under way.
 * 3. Baseline before the first model call, closing capture with the event that ends the turn in one append.
 * 4. A boundary's trigger is journaled before its capture, its checkpoint after its bytes (K1, K3); the turn is
 *    acknowledged last. A required boundary that fails latches a fault; a successful manual checkpoint clears it.
 * 5. `session-idle` when nothing runs and nothing waits, or after an interrupt; then the idle boundary.
 */
import { LooprigError, WorkspaceUnavailableError, isLooprigError, mintTurnId } from "../core/index.js";
import type { Abortable, LoopId, SessionId, TurnId } from "../core/index.js";
import { runTurn, turnEnd, withEvents } from "../loop/index.js";
import type {
  Conversation,
  LivePart,
  LoopDefinition,
  OpenTurn,
  TurnHost,
  TurnOutcome,
  TurnTool,
} from "../loop/index.js";
import type { CheckpointTrigger, Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import { readGitHead } from "../workspace/index.js";
import type { OwnedRoot, OwnedWorkspace, Workspace } from "../workspace/index.js";
import type { GateAnswer, Session, SessionDefinition, Turn, TurnResult } from "./contracts.js";
import type { EventHub } from "./event-hub.js";
import type { Gates } from "./gates.js";
import { LiveTurn } from "./live-turn.js";
import { TurnWindow } from "./turn-window.js";

/** A loop of this session: its definition, its tools, and what has been said. */
export interface LoopActor {
  readonly loopId: LoopId;
  readonly definition: LoopDefinition;
  readonly tools: ReadonlyMap<string, TurnTool>;
  conversation: Conversation;
}

/** The tree, where the rig has a placement. */
export interface SessionTree {
  readonly owned: OwnedRoot;
  readonly workspace: OwnedWorkspace;
}

export interface SessionParts {
  readonly definition: SessionDefinition;
  readonly journal: Journal;
  readonly hub: EventHub;
  readonly gates: Gates;
  readonly tree: SessionTree | undefined;
  readonly loops: ReadonlyMap<string, LoopActor>;
  readonly active: string;
  /** Turns so far, where no root numbers them. */
  readonly turns: number;
  /** Ends the bindings of the tools. */
  readonly ended: AbortController;
  readonly read: (from: number) => AsyncIterable<SessionEvent>;
}

interface Submission {
  readonly turn: LiveTurn;
  readonly input: string;
  readonly signal: AbortSignal | undefined;
  readonly resumed?: ResumedTurn | undefined;
}

/** A turn of before a restart, which goes on in the window it was begun in. */
export interface ResumedTurn {
  readonly open: OpenTurn;
  readonly number: number;
  readonly input: string;
  readonly window: TurnWindow | undefined;
}

export class RunningSession implements Session {
  readonly id: SessionId;
  readonly fingerprint: string;
  readonly #parts: SessionParts;
  readonly #queue: Submission[] = [];
  #active: string;
  #current: { readonly abort: AbortController; readonly turn: LiveTurn } | undefined;
  #working: Promise<void> | undefined;
  #interrupted = false;
  readonly #waitingForRest: (() => void)[] = [];
  #fault: string | undefined;
  #turns: number;
  #closed: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.journal.sessionId;
    this.fingerprint = parts.definition.fingerprint;
    this.#active = parts.active;
    this.#turns = parts.turns;
    parts.hub.listen((events) => {
      for (const event of events) this.#heard(event);
    });
  }

  get workspace(): Workspace {
    if (this.#parts.tree !== undefined) return this.#parts.tree.workspace;
    throw new WorkspaceUnavailableError(
      "workspace.unavailable",
      `Cannot use the workspace of session ${this.id}: its rig has no placement; define the rig with one`,
      {},
    );
  }

  async submit(input: string, { signal }: Abortable = {}): Promise<Turn> {
    signal?.throwIfAborted();
    this.#assertAdmits();
    if (typeof input !== "string" || input.trim() === "") {
      throw new LooprigError("option.invalid", "Cannot submit an empty input: wanted a text for the loop", {
        ...{ field: "input", given: typeof input, wanted: "a text that is not blank" },
      });
    }
    const turn = new LiveTurn(mintTurnId());
    this.#queue.push({ turn, input, signal });
    this.#pump();
    return turn;
  }

  /** Whether a question of before a restart still waits for its answer. */
  get waitsForAnswer(): boolean {
    return this.#parts.gates.anyOpen;
  }

  /** Goes on with a turn that a restart left open. */
  continueTurn(resumed: ResumedTurn): Turn {
    const turn = new LiveTurn(resumed.open.turnId);
    turn.begin(resumed.number);
    this.#queue.push({ turn, input: resumed.input, signal: undefined, resumed });
    this.#pump();
    return turn;
  }

  events({ from = 1, signal }: Abortable & { readonly from?: number | undefined } = {}): AsyncIterable<SessionEvent> {
    return this.#parts.hub.read(from, this.#parts.read, { signal });
  }

  async idle({ signal }: Abortable = {}): Promise<void> {
    while (this.#working !== undefined) {
      signal?.throwIfAborted();
      await this.#working;
    }
  }

  async interrupt({ reason = "interrupted" }: { readonly reason?: string | undefined } = {}): Promise<void> {
    if (this.#current === undefined) return;
    this.#interrupted = true;
    const rested = new Promise<void>((resolve) => this.#waitingForRest.push(resolve));
    this.#current.abort.abort(new Error(reason));
    await rested;
  }

  respond(gateId: string, answer: GateAnswer): Promise<void> {
    return this.#parts.gates.respond(gateId, answer);
  }

  async setActiveLoop(name: string): Promise<LoopId> {
    const actor = this.#parts.loops.get(name);
    if (actor === undefined) {
      const known = [...this.#parts.loops.keys()];
      throw new LooprigError(
        "session.unknown_loop",
        `Cannot make ${JSON.stringify(name)} the active loop: this session has ${known.join(", ")}`,
        { loop: name, known },
      );
    }
    this.#assertOpen();
    if (name !== this.#active) {
      await this.#parts.journal.append([{ type: "active-loop-changed", name, loopId: actor.loopId }]);
      this.#active = name;
    }
    return actor.loopId;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    for (const { turn } of this.#queue.splice(0)) turn.end(interruptedResult(turn.id, "the session was closed"));
    this.#current?.abort.abort(new Error("the session was closed"));
    await this.#working;
    this.#parts.ended.abort();
    try {
      if (this.#parts.tree !== undefined) await this.#parts.tree.workspace.close();
      else {
        await this.#parts.journal.append([{ type: "session-closed" }]);
        await this.#parts.journal.close();
      }
    } finally {
      this.#parts.hub.end();
    }
  }

  #pump(): void {
    if (this.#working !== undefined || this.#queue.length === 0) return;
    const working = this.#work().finally(() => {
      this.#working = undefined;
      this.#pump();
    });
    // Nothing awaits it here: whatever fails in it ends its turn, which is where failures are told.
    working.catch(() => undefined);
    this.#working = working;
  }

  async #work(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      await this.#run(next);
      if (this.#interrupted || this.#queue.length === 0) await this.#rest();
    }
  }

  /** Rule 5. */
  async #rest(): Promise<void> {
    const trigger = this.#interrupted ? "interrupt" : "idle";
    this.#interrupted = false;
    try {
      if (this.#closed !== undefined) return;
      const [idle] = await this.#parts.journal.append([{ type: "session-idle" }]);
      await this.#boundary("idle", trigger, idle);
    } finally {
      for (const resolve of this.#waitingForRest.splice(0)) resolve();
    }
  }

  async #run(submission: Submission): Promise<void> {
    const { turn, signal } = submission;
    if (signal?.aborted === true) {
      turn.end(interruptedResult(turn.id, "aborted before it began"));
      return;
    }
    const abort = new AbortController();
    this.#current = { abort, turn };
    const both = signal === undefined ? abort.signal : AbortSignal.any([abort.signal, signal]);
    try {
      const work = (): Promise<TurnResult> => this.#turn(submission, both);
      const { tree } = this.#parts;
      turn.end(tree === undefined ? await work() : await tree.workspace.during("a turn", work));
    } catch (error) {
      // The journal or a lease failed: nothing more can be recorded, so nothing more is begun.
      this.#fault = isLooprigError(error) ? error.code : "unknown";
      turn.end({ status: "failed", turnId: turn.id, error: error instanceof Error ? error : new Error(String(error)) });
    } finally {
      this.#current = undefined;
      this.#parts.gates.clear();
    }
  }

  async #turn({ turn, input, resumed }: Submission, signal: AbortSignal): Promise<TurnResult> {
    const actor = this.#parts.loops.get(this.#active) as LoopActor;
    const of = { turnId: turn.id, loopId: actor.loopId };
    const window = resumed === undefined ? await this.#begin(turn, input, of, signal) : resumed.window;
    const outcome = await runTurn({
      loop: actor.definition,
      loopId: actor.loopId,
      turnId: turn.id,
      tools: actor.tools,
      conversation: actor.conversation,
      host: this.#host(turn, of),
      signal,
      open: resumed?.open,
    });
    const ended = await this.#end(turn.id, of, outcome, window);
    await this.#boundary("turn-done", "turn-done", ended);
    return toResult(turn.id, outcome);
  }

  async #begin(
    turn: LiveTurn,
    input: string,
    of: { readonly turnId: TurnId; readonly loopId: LoopId },
    signal: AbortSignal,
  ): Promise<TurnWindow | undefined> {
    const owned = this.#parts.tree?.owned;
    const { turn: number, order } = await this.#draw(true);
    turn.begin(number);
    const head = owned === undefined ? undefined : readGitHead(owned.reader.fileSystem, owned.reader.root);
    await this.#parts.journal.append([
      { type: "session-active", doing: `t${number}` },
      { type: "turn-started", number, order, input, kind: "prompt", ...of, ...(head === undefined ? {} : { head }) },
    ]);
    const window = owned === undefined ? undefined : new TurnWindow(owned, turn.id, order);
    await window?.open(signal);
    return window;
  }

  async #end(
    turnId: TurnId,
    of: { readonly turnId: TurnId; readonly loopId: LoopId },
    outcome: TurnOutcome,
    window: TurnWindow | undefined,
  ): Promise<SessionEvent | undefined> {
    const order = async (): Promise<number> => (await this.#draw(false)).order;
    const closed = window === undefined ? { events: [], changed: 0, order: await order() } : await window.close(order);
    const owned = this.#parts.tree?.owned;
    const head = owned === undefined ? undefined : readGitHead(owned.reader.fileSystem, owned.reader.root);
    const end: NewEvent = {
      ...turnEnd(outcome),
      ...of,
      ...{ order: closed.order, changed: closed.changed, ...(head === undefined ? {} : { head }) },
    };
    const appended = await this.#parts.journal.append([...closed.events, end]);
    return appended.findLast((event) => event.turnId === turnId);
  }

  #host(turn: LiveTurn, of: { readonly turnId: TurnId; readonly loopId: LoopId }): TurnHost {
    const { journal, gates, tree } = this.#parts;
    return {
      journal: async (events) => {
        await journal.append(events);
      },
      live: (part: LivePart) => turn.live({ ...part, turnId: turn.id }),
      approve: (call) => gates.ask(call, of),
      afterStep: () => this.#boundary("step-done", "step-done", undefined),
      abandoned: ({ callId }) => tree?.owned.coordinator.revoke(callId),
    };
  }

  /** A checkpoint of the policy (K1, K2): its trigger is durable, its permit is waited for, its failure is never silent. */
  async #boundary(
    at: "idle" | "turn-done" | "step-done",
    trigger: CheckpointTrigger,
    cause: SessionEvent | undefined,
  ): Promise<void> {
    const { tree, definition } = this.#parts;
    const policy = definition.snapshots;
    if (tree === undefined || policy?.trigger !== at) return;
    try {
      using _permit = await tree.owned.coordinator.acquire({ operation: "checkpoint" });
      const { event } = await tree.owned.takeAlways({ trigger, signal: AbortSignal.timeout(policy.timeoutMs) });
      await tree.owned.append({ ...event, ...(cause === undefined ? {} : { cause: cause.id }) });
    } catch (error) {
      if (!isLooprigError(error)) throw error;
      if (error.code === "capture.canceled") {
        await tree.owned.append({ type: "checkpoint-failed", trigger, code: error.code });
      }
      if (policy.priority !== "required") return;
      this.#fault = error.code;
      await tree.owned.append({ type: "session-faulted", code: error.code });
    }
  }

  async #draw(turn: boolean): Promise<{ readonly turn: number; readonly order: number }> {
    const owned = this.#parts.tree?.owned;
    if (owned !== undefined) return owned.reader.record.draw({ turn }, owned.reader.clock());
    if (turn) this.#turns++;
    return { turn: this.#turns, order: this.#parts.journal.head + 1 };
  }

  /** What is said in this session, whoever journaled it. */
  #heard(event: SessionEvent): void {
    for (const actor of this.#parts.loops.values()) {
      actor.conversation = withEvents(actor.conversation, [event], actor.loopId);
    }
    if (event.turnId !== undefined && event.turnId === this.#current?.turn.id) this.#current.turn.event(event);
    // An answer is the session's, not the turn's; those who watch the turn want to see it all the same.
    if (event.type === "gate-resolved" && event.turnId === undefined) this.#current?.turn.event(event);
    if (this.#fault === undefined || event.type !== "workspace-checkpointed" || event.trigger !== "manual") return;
    this.#fault = undefined;
    // Told for the record; that it cannot be told is the next append's to find.
    this.#parts.journal.append([{ type: "session-recovered" }]).catch(() => undefined);
  }

  #assertOpen(): void {
    if (this.#closed === undefined) return;
    throw new LooprigError("session.closed", `Cannot use session ${this.id}: it was closed; resume it`, {
      sessionId: this.id,
    });
  }

  #assertAdmits(): void {
    this.#assertOpen();
    if (this.#fault === undefined) return;
    throw new LooprigError(
      "session.faulted",
      `Cannot submit to session ${this.id}: a required checkpoint failed (${this.#fault}); take one with \`workspace.checkpoint()\` first`,
      { sessionId: this.id, code: this.#fault },
    );
  }
}

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

const interruptedResult = (turnId: TurnId, reason: string): TurnResult => ({ status: "interrupted", turnId, reason });
