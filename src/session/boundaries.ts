/**
 * The boundaries at which the policy has the tree captured (K1–K3, K5). An event that ends something passes through here on
 * its way into the journal, and the capture it causes comes with it.
 *
 * Ordering rules:
 * 1. Required: permit → event → capture → checkpoint with `cause` → permit released → acknowledged. One after the other,
 *    none left out. What fails or takes too long is journaled, and `session-faulted` after it.
 * 2. Best effort: permit, waited for at most 10 ms → event → acknowledged → capture → checkpoint → permit released. Without
 *    the permit the event is followed by `checkpoint-failed`.
 * 3. The event is durable whatever becomes of its capture; a ref is on record only after its bytes are.
 */
import { isLooprigError } from "../core/index.js";
import type { Timer } from "../loop/index.js";
import type { CheckpointTrigger, Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import type { OwnedRoot, WorkspacePermit } from "../workspace/index.js";
import type { ProgressFeed } from "./capture-progress.js";
import type { SnapshotPolicy } from "./contracts.js";

export type BoundaryPoint = "idle" | "turn-done" | "step-done";

/** The event is durable, and so is its required capture; what a best-effort one still has to do goes on. */
export interface Passed {
  readonly events: readonly SessionEvent[];
  /** Resolves when the capture is on record, or why there is none. Rejects when that could not be journaled. */
  readonly captured: Promise<void>;
}

export interface BoundaryParts {
  readonly journal: Journal;
  readonly timer: Timer;
  /** Both absent where the rig has no placement. */
  readonly owned?: OwnedRoot | undefined;
  readonly policy?: SnapshotPolicy | undefined;
  readonly progress: ProgressFeed;
  /** Whether the session has a checkpoint already. */
  readonly captured: boolean;
}

const permitWaitMs = 10;
const nothing = Promise.resolve();

export class Boundaries {
  readonly #parts: BoundaryParts;
  readonly #closing = new AbortController();
  #captured: boolean;

  constructor(parts: BoundaryParts) {
    this.#parts = parts;
    this.#captured = parts.captured;
  }

  heard(event: SessionEvent): void {
    if (event.type === "workspace-checkpointed") this.#captured = true;
  }

  /** Best-effort captures end, those under way and those to come; required ones go on (K6). */
  cancelBestEffort(): void {
    this.#closing.abort();
  }

  /** Appends the events, of which the last is the boundary, with the capture that the policy asks for there. */
  async pass(point: BoundaryPoint, events: readonly NewEvent[], trigger: CheckpointTrigger = point): Promise<Passed> {
    const { journal, owned, policy } = this.#parts;
    if (owned === undefined || policy?.trigger !== point) {
      return { events: await journal.append(events), captured: nothing };
    }
    // Our own captures that hold the tree are no reason to do without one: they end by themselves.
    await owned.recorder.windowsClosed();
    return policy.priority === "required"
      ? this.#required(owned, policy.timeoutMs, events, trigger)
      : this.#bestEffort(owned, policy.timeoutMs, events, trigger);
  }

  async #required(
    owned: OwnedRoot,
    timeoutMs: number,
    events: readonly NewEvent[],
    trigger: CheckpointTrigger,
  ): Promise<Passed> {
    const { journal, timer } = this.#parts;
    using limit = new TimeLimit(timer, timeoutMs);
    using permit = await acquired(owned, limit.signal);
    const appended = await journal.append(events);
    const boundary = { owned, permit, trigger, cause: appended.at(-1), limit };
    const failure = permit === undefined ? await this.#fail(boundary, timedOut) : await this.#capture(boundary);
    if (failure !== undefined) await journal.append([{ type: "session-faulted", code: failure }]);
    return { events: appended, captured: nothing };
  }

  async #bestEffort(
    owned: OwnedRoot,
    timeoutMs: number,
    events: readonly NewEvent[],
    trigger: CheckpointTrigger,
  ): Promise<Passed> {
    const { journal, timer } = this.#parts;
    using wait = new TimeLimit(timer, permitWaitMs);
    const permit = await acquired(owned, wait.signal);
    const captured = async (cause: SessionEvent | undefined): Promise<void> => {
      using _permit = permit;
      using limit = new TimeLimit(timer, timeoutMs);
      const boundary = { owned, permit, trigger, cause, limit };
      if (permit === undefined) await this.#fail(boundary, treeBusy);
      else await this.#capture(boundary, this.#closing.signal);
    };
    try {
      const appended = await journal.append(events);
      const capture = captured(appended.at(-1));
      // Whoever passes waits for it; a failure that comes before they do is not nobody's.
      capture.catch(() => undefined);
      return { events: appended, captured: capture };
    } catch (error) {
      permit?.release();
      throw error;
    }
  }

  /** Captures and journals; returns why that was not possible. Rejects when it could not be journaled. */
  async #capture(boundary: Boundary, canceled?: AbortSignal): Promise<string | undefined> {
    const { owned, permit, trigger, cause, limit } = boundary;
    const signals = [limit.signal, permit?.revoked, canceled].filter((signal) => signal !== undefined);
    // The first capture reads everything, so it may take as long as it gets on (K5).
    const alive = this.#captured ? undefined : () => limit.extend();
    let taken;
    try {
      taken = await this.#parts.progress.during(
        () => owned.takeAlways({ trigger, cause: cause?.id, signal: AbortSignal.any(signals) }),
        alive,
      );
    } catch (error) {
      if (!isLooprigError(error)) throw error;
      if (error.code !== "capture.canceled") return error.code;
      permit?.assertHeld();
      return this.#fail(boundary, limit.signal.aborted ? timedOut : error.code);
    }
    permit?.assertHeld();
    await owned.append(taken.event);
    return undefined;
  }

  async #fail({ owned, trigger, cause }: Boundary, code: string): Promise<string> {
    await owned.append({
      ...{ type: "checkpoint-failed", trigger, code },
      ...(cause === undefined ? {} : { cause: cause.id }),
    });
    return code;
  }
}

interface Boundary {
  readonly owned: OwnedRoot;
  readonly permit: WorkspacePermit | undefined;
  readonly trigger: CheckpointTrigger;
  readonly cause: SessionEvent | undefined;
  readonly limit: TimeLimit;
}

const timedOut = "checkpoint.timed_out";
const treeBusy = "checkpoint.tree_busy";

/** The permit for captures, or undefined when it was not to be had in time. */
async function acquired(owned: OwnedRoot, signal: AbortSignal): Promise<WorkspacePermit | undefined> {
  try {
    return await owned.coordinator.acquire({ operation: "checkpoint" }, { signal });
  } catch (error) {
    if (isLooprigError(error, "coordinator.acquire_canceled")) return undefined;
    throw error;
  }
}

/** Aborts after a time, unless it is disposed before; `extend` begins the time anew. */
class TimeLimit implements Disposable {
  readonly #timer: Timer;
  readonly #ms: number;
  readonly #over = new AbortController();
  #stop: () => void;

  constructor(timer: Timer, ms: number) {
    this.#timer = timer;
    this.#ms = ms;
    this.#stop = this.#start();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  extend(): void {
    this.#stop();
    this.#stop = this.#start();
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #start(): () => void {
    return this.#timer.after(this.#ms, () => this.#over.abort());
  }
}
