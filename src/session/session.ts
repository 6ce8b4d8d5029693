/**
 * The session at work: who is admitted, one turn after the other, and what becomes of those that wait.
 *
 * Ordering rules:
 * 1. Everything is journaled through one journal; the hub hears it when it is durable, never before.
 * 2. One turn runs at a time; inputs wait in the order they came. While a turn runs the workspace's own verbs are refused,
 *    and a turn waits for one of them that is under way.
 * 3. When nothing waits behind a turn, or after an interrupt, `session-idle` follows its end, and the turn is acknowledged
 *    after that (K6). Until then nothing else is begun.
 * 4. A fault or the loss of a lease ends what waits unrun, and nothing new is admitted; `close` always is.
 */
import { LooprigError, WorkspaceUnavailableError, mintTurnId, onAbort, raceAbort } from "../core/index.js";
import type { Abortable, LoopId, SessionId } from "../core/index.js";
import { withEvents } from "../loop/index.js";
import type { Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import type { Workspace } from "../workspace/index.js";
import type { Boundaries } from "./boundaries.js";
import type { ProgressFeed } from "./capture-progress.js";
import type { GateAnswer, Session, Turn } from "./contracts.js";
import type { EventHub } from "./event-hub.js";
import type { ForeignRestores } from "./foreign-restores.js";
import type { Gates } from "./gates.js";
import { LiveTurn } from "./live-turn.js";
import type { LoopActor, SessionTree } from "./parts.js";
import type { Fault } from "./session-journal.js";
import { faulted, interruptedResult, isLeaseLoss } from "./turn-runner.js";
import type { FinishedTurn, ResumedTurn, Submission, TurnRunner } from "./turn-runner.js";
import { wrongInput } from "./wrong-input.js";

export interface SessionParts {
  readonly fingerprint: string;
  readonly journal: Journal;
  readonly hub: EventHub;
  readonly gates: Gates;
  readonly tree: SessionTree | undefined;
  readonly loops: ReadonlyMap<string, LoopActor>;
  readonly active: string;
  readonly fault: Fault;
  readonly boundaries: Boundaries;
  readonly progress: ProgressFeed;
  readonly runner: TurnRunner;
  readonly restores: ForeignRestores | undefined;
  /** Ends the bindings of the tools. */
  readonly ended: AbortController;
  readonly read: (from: number) => AsyncIterable<SessionEvent>;
}

export class RunningSession implements Session {
  readonly id: SessionId;
  readonly fingerprint: string;
  readonly #parts: SessionParts;
  readonly #queue: Submission[] = [];
  #active: string;
  #activating: Promise<unknown> = Promise.resolve();
  #current: { readonly abort: AbortController; readonly turn: LiveTurn } | undefined;
  #working: Promise<void> | undefined;
  #interrupted = false;
  readonly #waitingForRest: (() => void)[] = [];
  /** Why nothing can be recorded any more. */
  #broken: Error | undefined;
  #closed: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.id = parts.journal.sessionId;
    this.fingerprint = parts.fingerprint;
    this.#active = parts.active;
    parts.hub.listen((events) => {
      for (const event of events) this.#heard(event);
    });
    parts.progress.showOn(({ filesSeen, bytesRead }) =>
      this.#current?.turn.live({ type: "capture-progress", filesSeen, bytesRead }),
    );
    const leases = [parts.journal.lease, parts.tree?.owned.rootLease];
    for (const lease of leases) {
      if (lease === undefined) continue;
      const lost = (): void => this.#break(lease.lost.reason as Error);
      if (lease.lost.aborted) lost();
      else onAbort(lease.lost, lost);
    }
    parts.tree?.workspace.ownedBy(() => this.close());
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
    this.#assertOpen();
    const refusal = this.#refusal();
    if (refusal !== undefined) throw refusal;
    if (typeof input !== "string" || input.trim() === "") {
      throw wrongInput("submit a turn", "input", input, "a text that is not blank");
    }
    const submission: Submission = { turn: new LiveTurn(mintTurnId()), input, signal };
    if (signal !== undefined) this.#leaveOnAbort(submission, signal);
    return this.#enqueue(submission);
  }

  /** Whether a question of before a restart still waits for its answer. */
  get waitsForAnswer(): boolean {
    return this.#parts.gates.anyOpen;
  }

  /** Goes on with a turn that a restart left open. */
  continueTurn(resumed: ResumedTurn): Turn {
    const turn = new LiveTurn(resumed.open.turnId);
    turn.begin(resumed.number);
    return this.#enqueue({ turn, input: resumed.input, signal: undefined, resumed });
  }

  /** Puts on record which loop input goes to, where that is not what the record says. */
  async recordActiveLoop(): Promise<void> {
    const loopId = this.#parts.loops.get(this.#active)?.loopId;
    if (loopId !== undefined) {
      await this.#parts.journal.append([{ type: "active-loop-changed", name: this.#active, loopId }]);
    }
  }

  events({ from = 1, signal }: Abortable & { readonly from?: number | undefined } = {}): AsyncIterable<SessionEvent> {
    return this.#parts.hub.read(from, this.#parts.read, { signal });
  }

  async idle({ signal }: Abortable = {}): Promise<void> {
    while (this.#working !== undefined) await raceAbort(this.#working, signal);
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
        `Cannot make ${JSON.stringify(name)} the active loop: input goes to a primer, and this session's are ${known.join(", ")}; name it in \`primers\` of the rig`,
        { loop: name, known },
      );
    }
    this.#assertOpen();
    // In the order of the calls: each compares with what the one before it left.
    const activate = async (): Promise<void> => {
      if (name === this.#active) return;
      await this.#parts.journal.append([{ type: "active-loop-changed", name, loopId: actor.loopId }]);
      this.#active = name;
    };
    const activated = this.#activating.then(activate);
    this.#activating = activated.catch(() => undefined);
    await activated;
    return actor.loopId;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** K6: what is required is drained, best effort is cancelled, then the root's lease goes and last the session's. */
  async #close(): Promise<void> {
    const { boundaries, ended, tree, journal, hub } = this.#parts;
    this.#endQueue(({ turn }) => turn.end(interruptedResult(turn.id, "the session was closed")));
    boundaries.cancelBestEffort();
    this.#current?.abort.abort(new Error("the session was closed"));
    await this.#working;
    ended.abort();
    try {
      if (tree !== undefined) await tree.workspace.release();
      else {
        try {
          await journal.append([{ type: "session-closed" }]);
        } catch (error) {
          // A session that lost its lease has nothing left to say.
          if (!isLeaseLoss(error)) throw error;
        } finally {
          await journal.close();
        }
      }
    } finally {
      hub.end();
    }
  }

  #enqueue(submission: Submission): Turn {
    this.#queue.push(submission);
    this.#pump();
    return submission.turn;
  }

  /** An input whose signal aborts while it waits ends there, and is never begun. */
  #leaveOnAbort(submission: Submission, signal: AbortSignal): void {
    const forget = onAbort(signal, () => {
      const at = this.#queue.indexOf(submission);
      if (at === -1) return;
      this.#queue.splice(at, 1);
      submission.turn.end(interruptedResult(submission.turn.id, "aborted before it began"));
    });
    void submission.turn.done.then(forget);
  }

  #endQueue(end: (submission: Submission) => void): void {
    for (const submission of this.#queue.splice(0)) end(submission);
  }

  #pump(): void {
    if (this.#working !== undefined || this.#queue.length === 0) return;
    this.#working = this.#work().finally(() => {
      this.#working = undefined;
      this.#pump();
    });
  }

  /** Never rejects: whatever fails in it ends its turn, which is where failures are told. */
  async #work(): Promise<void> {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const { turn } = next;
      const abort = new AbortController();
      this.#current = { abort, turn };
      const signal = next.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, next.signal]);
      const { tree } = this.#parts;
      try {
        const work = (): Promise<FinishedTurn> => this.#serve(next, signal);
        const finished = tree === undefined ? await work() : await tree.workspace.during("a turn", work);
        this.#acknowledge(() => turn.end(finished.result));
        await finished.captured;
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        // What was begun and could not be ended on record leaves a journal that only a resume can put in order.
        if (turn.hasEvents || next.resumed !== undefined || isLeaseLoss(error)) this.#break(failure);
        this.#acknowledge(() => turn.end(this.#lost(turn, failure)));
      }
    }
  }

  async #serve(submission: Submission, signal: AbortSignal): Promise<FinishedTurn> {
    const { turn, resumed } = submission;
    const { runner, loops, fault } = this.#parts;
    if (signal.aborted) return { result: interruptedResult(turn.id, "aborted before it began"), captured: nothing };
    const refusal = this.#refusal();
    if (refusal !== undefined) throw refusal;
    if (resumed === undefined) await this.#learnOfRestores();
    // Bound here: input goes to the loop that is active when its turn begins.
    const actor = loops.get(resumed?.loop ?? this.#active) as LoopActor;
    const finished = await runner.run(submission, actor, () => this.#learnOfRestores(), signal);
    if (fault.code !== undefined) this.#endQueue(({ turn: each }) => each.end(this.#lost(each, this.#refusal())));
    if (!this.#interrupted && this.#queue.length > 0) {
      // An interrupt that comes from here on is for none of the two turns.
      this.#current = undefined;
      return finished;
    }
    const rested = await this.#parts.boundaries.pass(
      "idle",
      [{ type: "session-idle" }],
      this.#interrupted ? "interrupt" : "idle",
    );
    return { ...finished, captured: Promise.all([finished.captured, rested.captured]).then(() => undefined) };
  }

  /** The turn has ended for everybody, and so has what interrupted it. */
  #acknowledge(end: () => void): void {
    this.#current = undefined;
    this.#interrupted = false;
    this.#parts.gates.clear();
    end();
    for (const resolve of this.#waitingForRest.splice(0)) resolve();
  }

  /** In a shared root other sessions undo and restore beside this one: its loops hear of it before they go on (U8). */
  async #learnOfRestores(): Promise<readonly NewEvent[]> {
    const { restores, tree, journal } = this.#parts;
    if (restores === undefined || tree?.owned.shared !== true) return [];
    const { records, events } = await restores.look();
    for (const { written, deleted } of records) this.#forget([...written, ...deleted]);
    await journal.append(events);
    return events;
  }

  #forget(paths: readonly string[]): void {
    for (const { observations } of this.#parts.loops.values()) observations?.forget(paths);
  }

  /** What is said in this session, whoever journaled it. */
  #heard(event: SessionEvent): void {
    const { loops, boundaries, restores } = this.#parts;
    for (const actor of loops.values()) {
      actor.conversation = withEvents(actor.conversation, [event], actor.loopId);
    }
    boundaries.heard(event);
    restores?.heard(event);
    if (event.type === "workspace-restored") this.#forget([...event.written, ...event.deleted]);
    this.#current?.turn.heard(event);
  }

  /** C5: nothing new is admitted, what waits ends unrun, and the loop is interrupted. */
  #break(error: Error): void {
    if (this.#broken !== undefined) return;
    this.#broken = error;
    this.#endQueue(({ turn }) => turn.end(this.#lost(turn, error)));
    const why = isLeaseLoss(error) ? "the session lost its lease" : "the session could not go on";
    this.#current?.abort.abort(new Error(why));
  }

  #lost(turn: LiveTurn, error: Error | undefined): Parameters<LiveTurn["end"]>[0] {
    if (isLeaseLoss(error)) return interruptedResult(turn.id, "the session lost its lease");
    return { status: "failed", turnId: turn.id, error: error ?? new Error("the session could not go on") };
  }

  #assertOpen(): void {
    if (this.#closed === undefined) return;
    throw new LooprigError("session.closed", `Cannot use session ${this.id}: it was closed; resume it`, {
      sessionId: this.id,
    });
  }

  /** Why no work is admitted. */
  #refusal(): Error | undefined {
    const { code } = this.#parts.fault;
    return this.#broken ?? (code === undefined ? undefined : faulted(this.id, code));
  }
}

const nothing = Promise.resolve();
