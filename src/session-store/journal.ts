/**
 * The writer of one session. Owns the session lease and the order of appends; what bytes look like is `record.ts`.
 *
 * Ordering rules:
 * 1. Calls run one after another, in the order they were made; an aborted call that still waits leaves nothing behind.
 * 2. Within a call: lease asserted → large records durable → lease asserted → one ledger append → catalog.
 * 3. An event counts once the ledger has it. The catalog may fail without failing the append: listings fold the tail.
 * 4. Before a failure of the ledger is passed on, it is known that nothing was appended; else `journal.outcome_unknown`.
 * 5. After the loss of the lease, a fence, a foreign record or an unknown outcome nothing more is appended, ever.
 */
import { InvariantError, LooprigError, invariant, isLooprigError, mintEventId, raceAbort } from "../core/index.js";
import type { Abortable, SessionId } from "../core/index.js";
import { appendRecordsMax } from "../storage/index.js";
import type { Lease, Storage } from "../storage/index.js";
import type { Catalog } from "./catalog.js";
import type { Journal } from "./contracts.js";
import type { NewEvent, SessionEvent } from "./events.js";
import { outcomeUnknown } from "./failures.js";
import { foldEvent, isLandmark } from "./fold.js";
import type { SessionFold } from "./fold.js";
import { ledgerOf } from "./keys.js";
import { storeRecord } from "./out-of-line.js";
import { sealEvent } from "./record.js";

export interface JournalParts {
  readonly storage: Pick<Storage, "ledger" | "blobs">;
  readonly catalog: Catalog;
  readonly clock: () => Date;
  readonly lease: Lease;
  /** The fold over everything the ledger holds. */
  readonly state: SessionFold;
}

export class StoredJournal implements Journal {
  readonly lease: Lease;
  readonly #storage: Pick<Storage, "ledger" | "blobs">;
  readonly #catalog: Catalog;
  readonly #clock: () => Date;
  #state: SessionFold;
  /** The event the catalog entry is known to cover. */
  #catalogued = 0;
  /** Settles when every call made so far is done (rule 1). */
  #last: Promise<void> = Promise.resolve();
  #dead: Error | undefined;
  #closed: Promise<void> | undefined;

  constructor({ storage, catalog, clock, lease, state }: JournalParts) {
    this.#storage = storage;
    this.#catalog = catalog;
    this.#clock = clock;
    this.lease = lease;
    this.#state = state;
  }

  get sessionId(): SessionId {
    return this.#state.id;
  }

  get head(): number {
    return this.#state.seq;
  }

  async append(events: readonly NewEvent[], options: Abortable = {}): Promise<readonly SessionEvent[]> {
    if (events.length > appendRecordsMax) throw tooMany(events.length);
    if (events.length === 0) return [];
    return this.#inTurn(options, () => this.#append(events, options));
  }

  close(): Promise<void> {
    this.#closed ??= this.#inTurn({}, async () => {
      try {
        await this.#updateCatalog();
      } finally {
        await this.lease.release();
      }
    });
    return this.#closed;
  }

  /** Never rejects, so that the failure of the work is the one that is told: what cannot be released frees itself (C7). */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch(() => undefined);
  }

  async #inTurn<T>(options: Abortable, work: () => Promise<T>): Promise<T> {
    const before = this.#last;
    let done: () => void = () => undefined;
    this.#last = new Promise((resolve) => (done = resolve));
    try {
      await raceAbort(before, options.signal);
      return await work();
    } finally {
      // An aborted waiter gives its turn on only when it would have had it.
      void before.then(done);
    }
  }

  async #append(events: readonly NewEvent[], options: Abortable): Promise<readonly SessionEvent[]> {
    if (this.#dead !== undefined) throw this.#dead;
    options.signal?.throwIfAborted();
    const { seq, id: sessionId } = this.#state;
    invariant(seq > 0 || events[0]?.type === "session-started", 'BUG: a journal starts with "session-started"');
    const sealed = events.map((event, index) =>
      sealEvent(event, { sessionId, seq: seq + 1 + index }, mintEventId(), this.#clock()),
    );
    try {
      this.lease.assertHeld();
      const bodies: Uint8Array[] = [];
      for (const event of sealed) bodies.push(await storeRecord(this.#storage.blobs, event, options));
      this.lease.assertHeld();
      await this.#send(bodies, options);
    } catch (error) {
      if (isFinal(error)) this.#dead = error;
      throw error;
    }
    this.#state = sealed.reduce(foldEvent, this.#state);
    if (sealed.some(isLandmark)) await this.#updateCatalog();
    return sealed;
  }

  /** Appends the bodies, or throws knowing that it did not (rule 4). */
  async #send(bodies: readonly Uint8Array[], options: Abortable): Promise<void> {
    const { seq: expectedHead, id } = this.#state;
    try {
      await this.#storage.ledger.append(ledgerOf(id), bodies, { ...options, expectedHead, epoch: this.lease.epoch });
    } catch (error) {
      // These are given before anything is sent.
      if (isLooprigError(error, "storage.closed", "storage.invalid_key")) throw error;
      if (!(await this.#hasLanded(bodies, error))) throw error;
    }
  }

  /**
   * Whether an append that failed was carried out all the same: its answer was lost, or a retry below met its own first
   * attempt. Bodies hold their events' ids, so equal bytes are ours. Not abortable: somebody has to know.
   */
  async #hasLanded(bodies: readonly Uint8Array[], failure: unknown): Promise<boolean> {
    const { seq, id } = this.#state;
    let found = 0;
    try {
      for await (const record of this.#storage.ledger.read(ledgerOf(id), { from: seq + 1 })) {
        if (Buffer.compare(record.body, bodies[found] as Uint8Array) !== 0) break;
        found += 1;
        if (found === bodies.length) return true;
      }
    } catch (cause) {
      throw outcomeUnknown(id, seq + 1, new AggregateError([failure, cause], "the append failed, and so did looking"));
    }
    invariant(found === 0, "BUG: the ledger holds a part of an append");
    return false;
  }

  async #updateCatalog(): Promise<void> {
    const state = this.#state;
    if (this.#dead !== undefined || this.#catalogued === state.seq) return;
    try {
      await this.#catalog.change(
        state.id,
        (stored) => {
          this.lease.assertHeld();
          return stored?.deleting === true || (stored?.state.seq ?? 0) >= state.seq
            ? undefined
            : { state, deleting: false };
        },
        {},
      );
      this.#catalogued = state.seq;
    } catch (error) {
      // Rule 3: an entry that lags is caught up with by whoever lists, and by the next landmark.
      if (error instanceof InvariantError) throw error;
    }
  }
}

const isFinal = (error: unknown): error is Error =>
  error instanceof InvariantError ||
  isLooprigError(error, "lease.lost", "ledger.fenced", "ledger.conflict", "journal.outcome_unknown");

const tooMany = (given: number): LooprigError =>
  new LooprigError(
    "option.invalid",
    `Cannot append ${given} events at once: wanted at most ${appendRecordsMax}, since they are journaled all or none`,
    { field: "events", given: String(given), wanted: `at most ${appendRecordsMax}` },
  );
