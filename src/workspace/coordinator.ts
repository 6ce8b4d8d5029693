/**
 * The arbiter of workspace mutation: turns the decisions of `coordinator-state.ts` into promises, signals and errors.
 *
 * Ordering rules, which go on from those of the state (1–3):
 *
 *   4. A permit is in exactly one of these conditions: waiting → held → released | revoked, or waiting → refused. Each step
 *      is taken here, synchronously, and once.
 *   5. The state is brought up to date before anybody is told: promises are settled after it, signals fire last of all, since
 *      their listeners run at once and may call back.
 *   6. An abort, a revocation or the loss of the lease takes a waiter out at once. So no grant can come late: what is granted
 *      was still wanted, and its promise was settled in the same step.
 *   7. Loss of the lease closes admission for good: first all waiters are refused, then the held permits are told. They stay
 *      counted until they are released, because whoever holds one may still be at work.
 */
import { onAbort } from "../core/index.js";
import type { Abortable, CallId, CanonicalRoot, WorkspaceRootLeaseLostError } from "../core/index.js";
import type {
  CallCoordinator,
  MutationScope,
  OwnedCoordinator,
  WorkspaceCoordinator,
  WorkspacePermit,
} from "./coordinator-contract.js";
import { canceled, deadlock, leaseLost, reentry, revoked } from "./coordinator-refusals.js";
import { placesOf } from "./coordinator-scope.js";
import { CoordinatorState, placesConflict } from "./coordinator-state.js";
import type { PermitRequest, Place } from "./coordinator-state.js";

export type { OwnedCoordinator } from "./coordinator-contract.js";

/** What the coordinator asks of the root's lease (C7). A `Lease` is one. */
export interface CoordinatorHealth {
  /** Throws unless the lease is surely still held. */
  assertHeld(): void;
  readonly lost: AbortSignal;
}

export interface CoordinatorOptions {
  readonly root: CanonicalRoot;
  /** Absent where no lease fences the root: then it is never lost. */
  readonly health?: CoordinatorHealth | undefined;
  /** Makes names equal that are one on the root's volume (R1). Default: every name is its own. */
  readonly fold?: ((name: string) => string) | undefined;
}

export function createCoordinator(options: CoordinatorOptions): OwnedCoordinator {
  return new Coordinator(options);
}

class Coordinator implements OwnedCoordinator {
  readonly #root: CanonicalRoot;
  readonly #health: CoordinatorHealth | undefined;
  readonly #fold: ((name: string) => string) | undefined;
  readonly #state = new CoordinatorState<Permit>();
  readonly #calls = new Map<CallId, Call>();
  #lost: WorkspaceRootLeaseLostError | undefined;

  constructor({ root, health, fold }: CoordinatorOptions) {
    this.#root = root;
    this.#health = health;
    this.#fold = fold;
    if (health === undefined) return;
    const { lost } = health;
    if (lost.aborted) this.#lose(lost.reason);
    else lost.addEventListener("abort", () => this.#lose(lost.reason), { once: true });
  }

  acquire(scope: MutationScope, options?: Abortable): Promise<WorkspacePermit> {
    return this.acquireFor(undefined, scope, options);
  }

  assertHealthy(): void {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      this.#health?.assertHeld();
    } catch (error) {
      // Doubt is loss (C7), and loss is final: the probe's word closes admission as the signal does.
      throw this.#lose(error);
    }
  }

  forCall(callId: CallId): CallCoordinator {
    let call = this.#calls.get(callId);
    if (call === undefined) {
      call = new Call(this, callId, () => this.#calls.delete(callId));
      this.#calls.set(callId, call);
    }
    return call;
  }

  revoke(target: WorkspacePermit | CallId): void {
    if (target instanceof Permit) this.leave(target, revoked(target.scope));
    else if (typeof target === "string") this.#calls.get(target)?.end();
  }

  detach(permit: WorkspacePermit): void {
    if (permit instanceof Permit) permit.call?.permits.delete(permit);
  }

  idle(): boolean {
    return this.#state.empty;
  }

  counts(): { readonly held: number; readonly waiting: number } {
    return { held: this.#state.held, waiting: this.#state.waiting };
  }

  // Async for the rejections alone: everything up to the wait happens in the caller's step.
  async acquireFor(call: Call | undefined, scope: MutationScope, options?: Abortable): Promise<WorkspacePermit> {
    const signal = options?.signal;
    const places = placesOf(scope, this.#root, this.#fold);
    if (this.#lost !== undefined) throw this.#lost;
    if (signal?.aborted === true) throw canceled(scope, signal.reason);
    call?.admit(scope, places);
    const permit = new Permit(this, scope, call);
    permit.request = this.#state.enter(places, permit, call);
    call?.permits.add(permit);
    if (permit.request.granted) return permit;
    // Only a call that has something else can keep others from letting it go on.
    const circle = call !== undefined && call.permits.size > 1 ? this.#state.circle(permit.request) : undefined;
    if (circle !== undefined) {
      this.leave(permit, undefined);
      throw deadlock(scope, circle.tag.scope);
    }
    return permit.wait(signal);
  }

  /**
   * Takes a live permit out of the state and tells whom that concerns. A waiting one is refused with `reason`; a held one is
   * revoked with it, or released when there is none. Nothing happens to one that has left before.
   */
  leave(permit: Permit, reason: Error | undefined): void {
    const { request } = permit;
    if (request.claims.length === 0) return;
    const granted = this.#state.leave(request);
    permit.call?.permits.delete(permit);
    for (const next of granted) next.tag.deliver();
    permit.end(reason);
  }

  #lose(cause: unknown): WorkspaceRootLeaseLostError {
    if (this.#lost !== undefined) return this.#lost;
    const error = (this.#lost = leaseLost(this.#root, cause));
    const live = this.#state.live();
    // Youngest first: whoever leaves then frees nobody who waits.
    for (const { granted, tag } of live.toReversed()) if (!granted) this.leave(tag, error);
    for (const { granted, tag } of live) if (granted) tag.tellRevoked(error);
    return error;
  }
}

class Permit implements WorkspacePermit {
  readonly scope: MutationScope;
  readonly call: Call | undefined;
  /** Set right after construction: the state tags its request with this permit. */
  request!: PermitRequest<Permit>;
  readonly #coordinator: Coordinator;
  #waiter: Waiter | undefined;
  // A signal costs more than the rest of a permit, and few look at theirs: made when it is asked for.
  #revoked: AbortController | undefined;
  #reason: Error | undefined;

  constructor(coordinator: Coordinator, scope: MutationScope, call: Call | undefined) {
    this.#coordinator = coordinator;
    this.scope = scope;
    this.call = call;
  }

  get revoked(): AbortSignal {
    if (this.#revoked === undefined) {
      this.#revoked = new AbortController();
      if (this.#reason !== undefined) this.#revoked.abort(this.#reason);
    }
    return this.#revoked.signal;
  }

  release(): void {
    this.#coordinator.leave(this, undefined);
  }

  [Symbol.dispose](): void {
    this.release();
  }

  assertHeld(): void {
    if (this.request.claims.length === 0) throw revoked(this.scope);
    this.#coordinator.assertHealthy();
  }

  wait(signal: AbortSignal | undefined): Promise<WorkspacePermit> {
    return new Promise((resolve, reject) => {
      const cancel = (): void => this.#coordinator.leave(this, canceled(this.scope, signal?.reason));
      this.#waiter = { resolve, reject, forget: signal === undefined ? () => undefined : onAbort(signal, cancel) };
    });
  }

  deliver(): void {
    this.#waiter?.forget();
    this.#waiter?.resolve(this);
    this.#waiter = undefined;
  }

  end(reason: Error | undefined): void {
    if (this.#waiter !== undefined) {
      this.#waiter.forget();
      this.#waiter.reject(reason ?? revoked(this.scope));
      this.#waiter = undefined;
    } else if (reason !== undefined) this.tellRevoked(reason);
  }

  tellRevoked(reason: Error): void {
    this.#reason ??= reason;
    this.#revoked?.abort(this.#reason);
  }
}

interface Waiter {
  readonly resolve: (permit: WorkspacePermit) => void;
  readonly reject: (reason: Error) => void;
  /** Takes its listener off the caller's signal. */
  readonly forget: () => void;
}

class Call implements CallCoordinator {
  readonly callId: CallId;
  /** Held and waiting ones. */
  readonly permits = new Set<Permit>();
  readonly #coordinator: Coordinator;
  readonly #forget: () => void;
  #ended = false;

  constructor(coordinator: Coordinator, callId: CallId, forget: () => void) {
    this.#coordinator = coordinator;
    this.callId = callId;
    this.#forget = forget;
  }

  acquire(scope: MutationScope, options?: Abortable): ReturnType<WorkspaceCoordinator["acquire"]> {
    return this.#coordinator.acquireFor(this, scope, options);
  }

  assertHealthy(): void {
    this.#coordinator.assertHealthy();
  }

  /** Throws when the call was ended, or has a conflicting permit already (C4). */
  admit(scope: MutationScope, places: readonly Place[]): void {
    if (this.#ended) throw revoked(scope);
    for (const permit of this.permits) {
      if (placesConflict(permit.request.places, places)) throw reentry(scope, permit.scope);
    }
  }

  end(): void {
    this.#ended = true;
    // Youngest first, as on loss: none of the call's own waiters is granted on the way out.
    for (const permit of [...this.permits].reverse()) this.#coordinator.leave(permit, revoked(permit.scope));
  }

  [Symbol.dispose](): void {
    this.end();
    this.#forget();
  }
}
