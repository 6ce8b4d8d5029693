/**
 * One `run`: a session is begun or gone on with, turns are followed to their ends, and it is closed whatever happens. The
 * first signal interrupts the turn and keeps the session; the second ends the process, which frees its leases.
 */
import { isLooprigError, onAbort } from "../core/index.js";
import type { TurnId } from "../core/index.js";
import type { RigSession } from "../rig/index.js";
import type { SessionDelta } from "../session/index.js";
import type { EventOf, SessionEvent, SessionStore } from "../session-store/index.js";
import type { FileDiff } from "../workspace/index.js";
import { Approvals } from "./approvals.js";
import { changeLines } from "./change-lines.js";
import { Context } from "./context.js";
import { Interrupted } from "./interrupt.js";
import { coverageLine } from "./render-exec.js";
import { turnLine } from "./render-run.js";
import type { StoredAgent } from "./stored-agent.js";
import { TurnTalk } from "./turn-talk.js";

export type AgentSession = RigSession<string, true>;
type TurnEnd = EventOf<"turn-done" | "turn-failed" | "turn-interrupted">;

export interface AgentRun {
  readonly open: () => Promise<AgentSession>;
  readonly stored: StoredAgent | undefined;
  readonly store: SessionStore;
  readonly prompt: string | undefined;
  /** Shell commands run without being asked about. */
  readonly allowed: boolean;
  /** The words of `run` that go on with a session like this one. */
  readonly onward: string;
  readonly root: string;
  /** `~/calc  session 3f9a`, for a session of that id. */
  readonly place: (session: AgentSession) => string;
  /** What is to be known before it starts. */
  readonly notes: readonly string[];
}

/** Throws what the last turn failed with, what the output failed with, or the signal's reason. */
export async function runAgent(given: Context, run: AgentRun): Promise<void> {
  const session = await run.open();
  const printing = new AbortController();
  // An output that fails ends the work as an interrupt does.
  const broken = new AbortController();
  const signal = AbortSignal.any([given.signal, broken.signal]);
  const context = new Context(given.environment, given.globals, { ...given.interrupts, signal });
  const printed = !context.globals.json
    ? undefined
    : printEvents(context, run, session, printing.signal).catch((error: unknown) => {
        if (!printing.signal.aborted) broken.abort(error);
      });
  const work = new AgentWork(context, run, session);
  const forget = onAbort(signal, () => void work.interrupt());
  let failure: unknown;
  try {
    await work.all();
  } catch (error) {
    failure = error;
  } finally {
    forget();
    // The first failure is the one to report; leases free themselves with the process.
    await session.close().catch((error: unknown) => {
      failure ??= error;
      // A session that could not be closed tells no end of its events.
      printing.abort();
    });
    await printed;
  }
  if (broken.signal.aborted) failure ??= broken.signal.reason;
  if (failure !== undefined) throw signal.aborted ? signal.reason : failure;
}

/** `--json`: what is journaled from here on, one event per line, without a gap. */
async function printEvents(
  context: Context,
  { stored, root }: AgentRun,
  session: AgentSession,
  signal: AbortSignal,
): Promise<void> {
  for await (const event of session.events({ from: (stored?.head ?? 0) + 1, signal })) {
    await context.print(`${JSON.stringify({ schema: "looprig.run/1", root, ...event })}\n`);
  }
}

class AgentWork {
  readonly #context: Context;
  readonly #run: AgentRun;
  readonly #session: AgentSession;
  readonly #approvals: Approvals;
  readonly #talk: TurnTalk;

  constructor(context: Context, run: AgentRun, session: AgentSession) {
    this.#context = context;
    this.#run = run;
    this.#session = session;
    this.#approvals = new Approvals(context, run.stored?.always ?? []);
    this.#talk = new TurnTalk(context, run.place(session));
  }

  async all(): Promise<void> {
    const { stored, prompt, notes } = this.#run;
    for (const note of notes) await this.#talk.note(note);
    if (stored !== undefined) {
      await this.#sayWhatChanged(stored);
      if (stored.waiting !== undefined) await this.#continue(stored.waiting);
    }
    if (prompt !== undefined) await this.#submit(prompt);
  }

  /** Never rejects: what it fails with, the turn that is followed fails with too. */
  async interrupt(): Promise<void> {
    const { reason } = this.#context.signal as { readonly reason: unknown };
    await this.#talk.interrupting().catch(() => undefined);
    await this.#session.interrupt({ reason: interruptedBy(reason) }).catch(() => undefined);
  }

  /** What a resume journals: what differs from the stored session, and a turn that was cut short. */
  async #sayWhatChanged({ id, head }: StoredAgent): Promise<void> {
    for await (const event of this.#run.store.read(id, { from: head + 1 })) {
      if (event.type === "configuration-adopted") await this.#talk.adopted(event);
      if (event.type === "turn-interrupted")
        await this.#talk.note("the last turn was cut short; it counts as interrupted");
    }
  }

  /** The turn that a killed process left waiting: asked again, then followed to its end. */
  async #continue({ turnId, number, questions }: NonNullable<StoredAgent["waiting"]>): Promise<void> {
    // Listening begins before anything is answered, so no event is missed.
    const stop = new AbortController();
    const events = this.#session.events({ from: (this.#run.stored?.head ?? 0) + 1, signal: stop.signal });
    await this.#recall(turnId);
    if (!this.#context.globals.json) await this.#talk.where();
    if (!this.#run.allowed) for (const question of questions) await this.#answer(question);
    let end: TurnEnd | undefined;
    for await (const event of events) {
      if (event.turnId !== turnId) continue;
      await this.#follow(event);
      if (!isEnd(event)) continue;
      end = event;
      break;
    }
    stop.abort();
    await this.#session.idle();
    await this.#ended(number, end);
    if (end?.type === "turn-failed") throw new Error(end.message);
    if (end?.type === "turn-interrupted") throw new Error(end.reason);
  }

  /** What the turn's calls are was said before the restart. */
  async #recall(turnId: TurnId): Promise<void> {
    const { store, stored } = this.#run;
    if (stored === undefined) return;
    for await (const event of store.read(stored.id)) {
      if (event.seq > stored.head) break;
      if (event.type === "step-started" && event.turnId === turnId) this.#talk.recall(event);
    }
  }

  async #submit(prompt: string): Promise<void> {
    this.#context.signal.throwIfAborted();
    const turn = await this.#session.submit(prompt);
    let end: TurnEnd | undefined;
    for await (const part of turn) {
      await this.#follow(part);
      if (isEnd(part)) end = part;
    }
    const result = await turn.done;
    await this.#session.idle();
    await this.#ended(turn.number, end);
    if (result.status === "failed") throw result.error;
    if (result.status === "interrupted") throw new Error(result.reason);
  }

  async #follow(part: SessionEvent | SessionDelta): Promise<void> {
    if (part.type === "gate-opened") await this.#answer(part);
    else await this.#talk.part(part);
  }

  async #answer({ gateId, callId, tool, input }: EventOf<"gate-opened">): Promise<void> {
    const call = { name: tool, input };
    if (this.#approvals.asks(call)) await this.#talk.asking(callId, call);
    const answer = await this.#approvals.ask(call);
    if (answer === undefined) return;
    try {
      await this.#session.respond(gateId, answer);
    } catch (error) {
      // An interrupt ended the turn meanwhile.
      if (!isLooprigError(error, "session.unknown_gate")) throw error;
    }
  }

  async #ended(number: number, end: TurnEnd | undefined): Promise<void> {
    const { json, quiet } = this.#context.globals;
    if (json) return;
    const { signal, talkStyle } = this.#context;
    if (end === undefined) {
      // An interrupt came before the turn had begun its work.
      if (signal.aborted) await this.#talk.summary([talkStyle.bold(this.#run.onward)]);
      return;
    }
    const { workspace } = this.#session;
    const history = await workspace.history();
    const turn = history.turns.find((each) => each.number === number);
    const changes = turn?.protected === true && turn.from !== turn.to ? await this.#changes(number) : [];
    const checkpoint = history.checkpoints.findLast((each) => each.turn === number && each.trigger !== "baseline");
    const line = turnLine({
      ...{ number, end, calls: this.#talk.calls, protected: turn?.protected ?? false },
      checkpoint: changes.length === 0 ? undefined : checkpoint?.number,
    });
    const more =
      changes.length > listedMax ? [`  … and ${changes.length - listedMax} more; looprig diff --stat lists all`] : [];
    const lines = changes
      .slice(0, listedMax)
      .map(({ path, kind, entry, ...counts }) => ({ path, kind, entry, lines: counts }));
    const next = [
      ...(end.type === "turn-done" && !signal.aborted ? [] : [this.#run.onward]),
      ...(changes.length === 0 ? [] : ["looprig diff", "looprig undo"]),
    ].map((command) => talkStyle.bold(command));
    await this.#talk.summary([
      talkStyle.dim(line),
      ...changeLines(lines, talkStyle),
      ...more,
      ...(next.length === 0 ? [] : [next.join(" · ")]),
    ]);
    if (changes.length > 0 && !quiet && (await workspace.firstChangeNotice())) {
      await this.#context.say(talkStyle.dim(coverageLine(this.#run.root, this.#context.environment.home)));
    }
  }

  async #changes(number: number): Promise<readonly FileDiff[]> {
    const diffs: FileDiff[] = [];
    for await (const diff of this.#session.workspace.diff({ turn: `t${number}` })) diffs.push(diff);
    return diffs;
  }
}

const listedMax = 30;

function interruptedBy(reason: unknown): string {
  if (!(reason instanceof Interrupted)) return "the output failed";
  return reason.signal === "SIGINT" ? "Ctrl-C" : reason.signal;
}

const isEnd = (part: SessionEvent | SessionDelta): part is TurnEnd =>
  part.type === "turn-done" || part.type === "turn-failed" || part.type === "turn-interrupted";
