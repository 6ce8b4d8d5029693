/** A stored session of an agent: which one is meant, and where it stands. Reading takes no lease. */
import { LooprigError } from "../core/index.js";
import type { Abortable, GateId, SessionId, TurnId } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { EventOf, SessionEvent, SessionSummary } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import { alwaysReason } from "./approvals.js";
import { findSession } from "./session-names.js";
import { shellWord } from "./spelling.js";

export interface StoredAgent {
  readonly id: SessionId;
  readonly shared: boolean;
  /** Sequence of its last event. */
  readonly head: number;
  readonly turns: number;
  /** A turn that was cut short while it waited for an answer: it goes on, and its questions are asked again. */
  readonly waiting: WaitingTurn | undefined;
  /** Tools whose calls the user has allowed for the whole session. */
  readonly always: readonly string[];
}

export interface WaitingTurn {
  readonly turnId: TurnId;
  readonly number: number;
  readonly questions: readonly EventOf<"gate-opened">[];
}

/** Where a session stands, from its events. Pure, one event after the other. */
export class Standing {
  #head = 0;
  #turns = 0;
  #shared = false;
  #agent = false;
  #open: EventOf<"turn-started"> | undefined;
  readonly #always = new Set<string>();
  readonly #questions = new Map<GateId, EventOf<"gate-opened">>();

  add(event: SessionEvent): void {
    this.#head = event.seq;
    switch (event.type) {
      case "session-started":
        this.#shared = event.placement === "shared";
        break;
      case "loop-started":
        this.#agent = true;
        break;
      case "turn-started":
        this.#turns++;
        this.#open = event;
        this.#questions.clear();
        break;
      case "gate-opened":
        this.#questions.set(event.gateId, event);
        break;
      case "gate-resolved":
        this.#answer(event);
        break;
      case "turn-done":
      case "turn-failed":
      case "turn-interrupted":
        this.#open = undefined;
        this.#questions.clear();
        break;
      default:
    }
  }

  #answer({ gateId, approved, reason }: EventOf<"gate-resolved">): void {
    const question = this.#questions.get(gateId);
    this.#questions.delete(gateId);
    if (question !== undefined && approved && reason === alwaysReason) this.#always.add(question.tool);
  }

  /** Whether it has loops. */
  get isAgent(): boolean {
    return this.#agent;
  }

  of(id: SessionId): StoredAgent {
    const { turnId, number } = this.#open ?? {};
    const waiting =
      turnId === undefined || number === undefined || this.#questions.size === 0
        ? undefined
        : { turnId, number, questions: [...this.#questions.values()] };
    const always = [...this.#always];
    return { id, shared: this.#shared, head: this.#head, turns: this.#turns, waiting, always };
  }
}

/** The session of the root that was used last and has loops. Throws `session.unknown`. */
export async function newestAgent(
  storage: Storage,
  root: string,
  sessions: readonly SessionSummary[],
  shownRoot: string,
  { signal }: Abortable,
): Promise<StoredAgent> {
  const here = sessions
    .filter((each) => each.root === root && each.state !== "deleting")
    .sort((a, b) => b.lastAt.getTime() - a.lastAt.getTime());
  for (const { id } of here) {
    const standing = await read(storage, id, { signal });
    if (standing.isAgent) return standing.of(id);
  }
  throw new LooprigError(
    "session.unknown",
    `Cannot continue in ${shownRoot}: no session with an agent was there yet`,
    { given: "--continue" },
    { hint: 'looprig run "…" begins one' },
  );
}

/** The session that `given` names. Throws `session.unknown`, `session.ambiguous`. */
export async function namedAgent(
  given: string,
  storage: Storage,
  root: string,
  sessions: readonly SessionSummary[],
  { signal }: Abortable,
): Promise<StoredAgent> {
  const id = findSession(
    given,
    sessions.map((each) => each.id),
  );
  const found = sessions.find((each) => each.id === id);
  const refuse = (why: string, hint: string): LooprigError =>
    new LooprigError("session.unknown", `Cannot resume session ${id.slice(0, 8)}: ${why}`, { given }, { hint });
  if (found?.root !== undefined && found.root !== root) {
    throw refuse("it belongs to another directory", `--root ${shellWord(found.root)}`);
  }
  const standing = await read(storage, id, { signal });
  if (!standing.isAgent) throw refuse("it has no agent; a command or a person worked in it", "looprig sessions");
  return standing.of(id);
}

/** Where this session stands. */
export const storedAgent = async (storage: Storage, id: SessionId, options: Abortable): Promise<StoredAgent> =>
  (await read(storage, id, options)).of(id);

/** A short journal of a command is read as fast as its beginning. */
async function read(storage: Storage, id: SessionId, { signal }: Abortable): Promise<Standing> {
  const standing = new Standing();
  for await (const event of createSessionStore(storage).read(id, { signal })) standing.add(event);
  return standing;
}
