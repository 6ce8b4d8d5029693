/**
 * Questions a turn waits for (T5). A gate is durable before anybody is asked, and its answer before the call runs, so an
 * open one survives a restart: the turn that goes on asks under the same id, or finds the answer that was given.
 *
 * 1. One answer is journaled at a time. Whoever answers meanwhile waits: the gate is answered then, or still open because
 *    that answer could not be journaled.
 * 2. A gate closes with the call that asks, at the latest before the end of its turn is journaled: no answer stands behind it.
 */
import { LooprigError, mintGateId, onAbort } from "../core/index.js";
import type { CallId, GateId, SessionId } from "../core/index.js";
import type { Approval, GatedCall } from "../loop/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import type { GateAnswer } from "./contracts.js";
import { isTurnEnd } from "./turn-end.js";
import { wrongInput } from "./wrong-input.js";

interface OpenGate {
  readonly callId: CallId;
  /** An answer that is being journaled; never rejects. */
  answering?: Promise<void> | undefined;
  /** What the waiting call does with the answer; absent after a restart, until the call asks again. */
  answer?: ((approval: Approval) => void) | undefined;
}

export class Gates {
  readonly #sessionId: SessionId;
  readonly #append: (event: NewEvent) => Promise<unknown>;
  readonly #open = new Map<GateId, OpenGate>();
  readonly #answered = new Map<CallId, Approval>();

  constructor(sessionId: SessionId, append: (event: NewEvent) => Promise<unknown>, before: Iterable<SessionEvent>) {
    this.#sessionId = sessionId;
    this.#append = append;
    for (const event of before) {
      if (event.type === "gate-opened") this.#open.set(event.gateId, { callId: event.callId });
      else if (event.type === "gate-resolved") this.#settle(event.gateId, toApproval(event.approved, event.reason));
      else if (isTurnEnd(event)) this.#open.clear();
    }
  }

  get anyOpen(): boolean {
    return this.#open.size > 0;
  }

  /**
   * Waits for the answer to the call's question, which is journaled unless it stands there already. An abort closes the gate;
   * the wait itself is the caller's to leave.
   */
  async ask(call: GatedCall, of: Pick<NewEvent, "turnId" | "loopId">, signal: AbortSignal): Promise<Approval> {
    signal.throwIfAborted();
    const known = this.#answered.get(call.callId);
    if (known !== undefined) return known;
    const standing = [...this.#open].find(([, each]) => each.callId === call.callId);
    const [gateId, gate]: [GateId, OpenGate] = standing ?? [mintGateId(), { callId: call.callId }];
    this.#open.set(gateId, gate);
    const forget = onAbort(signal, () => this.#open.delete(gateId));
    const answered = new Promise<Approval>((resolve) => {
      gate.answer = (approval) => {
        forget();
        resolve(approval);
      };
    });
    if (standing === undefined) {
      await this.#append({
        type: "gate-opened",
        gateId,
        callId: call.callId,
        tool: call.tool,
        input: call.input,
        ...of,
      });
    }
    return answered;
  }

  /** Resolves when the answer is on record. Throws `session.unknown_gate`, `option.invalid`, and what the journal rejects with. */
  async respond(given: string, answer: GateAnswer): Promise<void> {
    const { approve, reason } = checked(answer);
    const gateId = given as GateId;
    let gate = this.#open.get(gateId);
    while (gate?.answering !== undefined) {
      await gate.answering;
      gate = this.#open.get(gateId);
    }
    if (gate === undefined) {
      throw new LooprigError(
        "session.unknown_gate",
        `Cannot answer the question ${JSON.stringify(given)}: it was answered, or its turn has ended`,
        { sessionId: this.#sessionId, gateId: given },
      );
    }
    const journaled = this.#append({
      type: "gate-resolved",
      gateId,
      approved: approve,
      ...(reason === undefined ? {} : { reason }),
    }).then(() => this.#settle(gateId, toApproval(approve, reason)));
    const free = (): void => {
      gate.answering = undefined;
    };
    gate.answering = journaled.then(free, free);
    await journaled;
  }

  /** The turn is about to end: nobody waits any more. */
  clear(): void {
    this.#open.clear();
  }

  #settle(gateId: GateId, approval: Approval): void {
    const gate = this.#open.get(gateId);
    this.#open.delete(gateId);
    if (gate === undefined) return;
    this.#answered.set(gate.callId, approval);
    gate.answer?.(approval);
  }
}

const toApproval = (approved: boolean, reason: string | undefined): Approval =>
  approved ? { approve: true } : { approve: false, reason };

function checked(answer: unknown): GateAnswer {
  if (typeof answer !== "object" || answer === null)
    throw wrong("answer", answer, "{ approve: true } or { approve: false, reason }");
  const { approve, reason } = answer as Readonly<Record<keyof GateAnswer, unknown>>;
  if (typeof approve !== "boolean") throw wrong("approve", approve, "true or false");
  if (reason !== undefined && typeof reason !== "string") throw wrong("reason", reason, "a text");
  return { approve, reason };
}

const wrong = (field: string, given: unknown, wanted: string): LooprigError =>
  wrongInput("answer the question", field, given, wanted);
