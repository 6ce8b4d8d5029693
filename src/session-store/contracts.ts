/**
 * Sessions as durable journals: one writer each, replayed by anyone, listed by a catalog that can be made again.
 *
 * This feature owns journals, catalog and out-of-line records. It knows nothing of trees; pins belong to the workspace store.
 */
import type { Abortable, SessionId, SnapshotRef } from "../core/index.js";
import type { Lease, LeaseClaim } from "../storage/index.js";
import type { NewEvent, Placement, SessionEvent } from "./events.js";

/** A session opened for writing: it holds the session lease. */
export interface Journal extends AsyncDisposable {
  readonly sessionId: SessionId;
  readonly lease: Lease;
  /** Sequence of the last event. */
  readonly head: number;
  /**
   * Appends the events, all or none, durable on return, and returns them as journaled. Calls are put in order; each checks
   * the lease first. `lease.lost` and `ledger.fenced` mean another writer took over: nothing was appended, nothing will be.
   * `journal.outcome_unknown`: open the session again to find out. After any other rejection nothing was appended, and the
   * journal goes on. At most 1 000 events (`option.invalid`), of at most 256 MiB each (`journal.record_too_large`). An abort
   * is heeded until the events are sent; one that comes later is so only if they did not arrive.
   */
  append(events: readonly NewEvent[], options?: Abortable): Promise<readonly SessionEvent[]>;
  /** Brings the catalog up to date and releases the session lease. Idempotent. Appends nothing. */
  close(): Promise<void>;
}

/** A session in a listing. */
export interface SessionSummary {
  readonly id: SessionId;
  readonly root: string | undefined;
  readonly placement: Placement;
  readonly command: string;
  readonly startedAt: Date;
  readonly lastAt: Date;
  readonly turns: number;
  readonly checkpoints: number;
  /** The newest tree that was captured, but for those that an undo or restore left (U8). */
  readonly lastCheckpoint: { readonly number: number; readonly ref: SnapshotRef } | undefined;
  /** The tree it goes on from: the newest captured one, or what the last undo or restore left. */
  readonly currentWorkspace: SnapshotRef | undefined;
  /** "live": its lease is held now. "interrupted": it is not, and the session was never closed. "deleting": a deletion was cut short. */
  readonly state: "live" | "closed" | "interrupted" | "deleting";
  /**
   * "damaged", "newer": a record could not be read, and the summary tells what stands before it. "whole" promises nothing
   * of records that the catalog covers; reading does.
   */
  readonly history: "whole" | "damaged" | "newer";
}

/** The sessions of a storage. Reading takes no lease. Each call takes a `signal`; an abort rejects with its reason. */
export interface SessionStore {
  /**
   * Starts a journal for a new session: takes its lease; the first append makes it exist, and starts with
   * `session-started`. `lease.held` if it is live, `ledger.conflict` if it exists, `session.deleting`.
   */
  create(id: SessionId, claim: Omit<LeaseClaim, "sessionId">, options?: Abortable): Promise<Journal>;
  /**
   * Opens a stored session for writing: lease, fence, then the whole journal is read once. `session.unknown`, `lease.held`,
   * `journal.damaged`, `journal.newer`, `session.deleting`.
   */
  open(id: SessionId, claim: Omit<LeaseClaim, "sessionId">, options?: Abortable): Promise<Journal>;
  /**
   * The events from `from` (default 1). Takes no lease and writes nothing. A record that cannot be read ends it, with
   * `journal.damaged` or `journal.newer`, after everything before it was yielded. `session.unknown`, also
   * when it is deleted while it is read.
   */
  read(id: SessionId, options?: Abortable & { readonly from?: number | undefined }): AsyncIterable<SessionEvent>;
  /** From the catalog, brought up to date from the journals' tails; newest start first. `root`: only sessions of that canonical root. */
  list(options?: Abortable & { readonly root?: string | undefined }): Promise<readonly SessionSummary[]>;
  /** The one session whose id starts with `prefix` (4 or more characters). `session.unknown`, `session.ambiguous`. */
  find(prefix: string, options?: Abortable): Promise<SessionSummary>;
  /** Makes the catalog again from the journals alone. */
  rebuildCatalog(options?: Abortable): Promise<void>;
  /**
   * Deletes journal, out-of-line records and catalog entry, under the session's lease (`lease.held` when live); absent is fine.
   * The entry is marked "deleting" first; a deletion cut short is finished by calling it again.
   */
  delete(id: SessionId, claim: Omit<LeaseClaim, "sessionId">, options?: Abortable): Promise<void>;
}
