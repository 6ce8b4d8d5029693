/**
 * Questions a turn waits for (T5). A gate is durable before anybody is asked, and its answer before the call runs, so an
 * open one survives a restart: the turn that goes on asks under the same id, or finds the answer that was given.
 */
import { LooprigError, mintGateId } from "../core/index.js";
import type { CallId, GateId, SessionId } from "../core/index.js";
import type { Approval, GatedCall } from "../loop/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import type { GateAnswer } from "./contracts.js";
import { isTurnEnd } from "./turn-end.js";

interface OpenGate {
  readonly callId: CallId;
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

  /** Waits for the answer to the call's question, which is journaled unless it stands there already. */
  async ask(call: GatedCall, of: Pick<NewEvent, "turnId" | "loopId">): Promise<Approval> {
    const known = this.#answered.get(call.callId);
    if (known !== undefined) return known;
    const standing = [...this.#open].find(([, gate]) => gate.callId === call.callId)?.[0];
    const gateId = standing ?? mintGateId();
    const gate: OpenGate = { callId: call.callId };
    const answered = new Promise<Approval>((resolve) => {
      gate.answer = resolve;
    });
    this.#open.set(gateId, gate);
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

  /** Throws `session.unknown_gate`. */
  async respond(given: string, { approve, reason }: GateAnswer): Promise<void> {
    const gateId = given as GateId;
    if (!this.#open.has(gateId)) {
      throw new LooprigError(
        "session.unknown_gate",
        `Cannot answer the question ${JSON.stringify(given)}: it was answered, or its turn has ended`,
        { sessionId: this.#sessionId, gateId: given },
      );
    }
    await this.#append({
      type: "gate-resolved",
      gateId,
      approved: approve,
      ...(reason === undefined ? {} : { reason }),
    });
    this.#settle(gateId, toApproval(approve, reason));
  }

  /** The turn has ended: nobody waits any more. */
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
