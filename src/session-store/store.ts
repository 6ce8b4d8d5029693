/**
 * The session store over the four storage contracts: who may write (the session lease), and which file does what. Holds
 * no state of its own and owns nothing that needs closing.
 */
import { LooprigError } from "../core/index.js";
import type { Abortable, SessionId } from "../core/index.js";
import { ledgerConflict } from "../storage/index.js";
import type { Lease, LeaseClaim, Storage } from "../storage/index.js";
import { Catalog } from "./catalog.js";
import type { Journal, SessionStore, SessionSummary } from "./contracts.js";
import { deleteSession } from "./deletion.js";
import type { SessionEvent } from "./events.js";
import { sessionDeleting, sessionUnknown } from "./failures.js";
import { emptyFold } from "./fold.js";
import { StoredJournal } from "./journal.js";
import { leaseOf, ledgerOf } from "./keys.js";
import { listSessions } from "./listing.js";
import { rebuildCatalog } from "./rebuild.js";
import { foldWhole, replay } from "./replay.js";

/** What of a storage the sessions are kept in. */
export type SessionStorage = Pick<Storage, "ledger" | "leaser" | "kv" | "blobs">;

/** What `createSessionStore` may be given. */
export interface SessionStoreOptions {
  /** What events are dated by. Default: the system clock. */
  readonly clock?: (() => Date) | undefined;
}

type Claim = Omit<LeaseClaim, "sessionId">;

/** Makes the store of the sessions in `storage`. Any number of stores, in any number of processes, may share one. */
export function createSessionStore(storage: SessionStorage, options: SessionStoreOptions = {}): SessionStore {
  return new StoredSessions(storage, options.clock ?? (() => new Date()));
}

class StoredSessions implements SessionStore {
  readonly #storage: SessionStorage;
  readonly #catalog: Catalog;
  readonly #clock: () => Date;

  constructor(storage: SessionStorage, clock: () => Date) {
    this.#storage = storage;
    this.#catalog = new Catalog(storage.kv);
    this.#clock = clock;
  }

  async create(id: SessionId, claim: Claim, options: Abortable = {}): Promise<Journal> {
    return this.#leased(id, claim, options, async (lease) => {
      if ((await this.#catalog.get(id, options))?.deleting === true) throw sessionDeleting(id);
      // No fence: it would leave a trace of sessions that never begin. Two creators of one id meet at record 1.
      const head = await this.#storage.ledger.head(ledgerOf(id), options);
      if (head > 0) throw ledgerConflict(ledgerOf(id), 0, head);
      return this.#journal(lease, emptyFold(id));
    });
  }

  async open(id: SessionId, claim: Claim, options: Abortable = {}): Promise<Journal> {
    await this.#assertStored(id, options);
    return this.#leased(id, claim, options, async (lease) => {
      if ((await this.#catalog.get(id, options))?.deleting === true) throw sessionDeleting(id);
      await this.#storage.ledger.fence(ledgerOf(id), lease.epoch, options);
      const state = await foldWhole(this.#storage, id, options);
      // Deleted between the first look and the lease.
      if (state.seq === 0) throw sessionUnknown(id);
      return this.#journal(lease, state);
    });
  }

  async *read(
    id: SessionId,
    options: Abortable & { readonly from?: number | undefined } = {},
  ): AsyncGenerator<SessionEvent, void, undefined> {
    const { from = 1, signal } = options;
    if (!Number.isSafeInteger(from) || from < 1) throw invalid("from", String(from), "a record number from 1");
    await this.#assertStored(id, { signal });
    yield* replay(this.#storage, id, from, { signal });
  }

  async list(options: Abortable & { readonly root?: string | undefined } = {}): Promise<readonly SessionSummary[]> {
    const { root, signal } = options;
    return listSessions(this.#storage, this.#catalog, { idPrefix: "", root }, { signal });
  }

  async find(prefix: string, options: Abortable = {}): Promise<SessionSummary> {
    const idPrefix = prefix.toLowerCase();
    if (!/^[0-9a-f-]{4,36}$/.test(idPrefix)) {
      throw new LooprigError(
        "session.unknown",
        `Cannot find session ${JSON.stringify(prefix)}: wanted at least the first four characters of an id; \`looprig sessions\` lists them`,
        { given: prefix },
      );
    }
    const [found, ...others] = await listSessions(this.#storage, this.#catalog, { idPrefix, root: undefined }, options);
    if (found === undefined) throw sessionUnknown(prefix);
    if (others.length === 0) return found;
    const candidates = [found, ...others].map(({ id }) => id);
    throw new LooprigError(
      "session.ambiguous",
      `Cannot tell which session ${JSON.stringify(prefix)} is: ${candidates.length} start with it (${candidates.slice(0, 5).join(", ")}); write more of it`,
      { given: prefix, candidates },
    );
  }

  async rebuildCatalog(options: Abortable = {}): Promise<void> {
    await rebuildCatalog(this.#storage, this.#catalog, options);
  }

  async delete(id: SessionId, claim: Claim, options: Abortable = {}): Promise<void> {
    const lease = await this.#leased(id, claim, options, async (held) => {
      await deleteSession(this.#storage, this.#catalog, id, options);
      return held;
    });
    await lease.release();
  }

  #journal(lease: Lease, state: ReturnType<typeof emptyFold>): Journal {
    return new StoredJournal({ storage: this.#storage, catalog: this.#catalog, clock: this.#clock, lease, state });
  }

  async #assertStored(id: SessionId, options: Abortable): Promise<void> {
    if ((await this.#storage.ledger.head(ledgerOf(id), options)) === 0) throw sessionUnknown(id);
  }

  /** Takes the session's lease for `work`, which hands it on in its result; released when `work` fails. */
  async #leased<T>(id: SessionId, claim: Claim, options: Abortable, work: (lease: Lease) => Promise<T>): Promise<T> {
    const lease = await this.#storage.leaser.acquire(leaseOf(id), { ...claim, sessionId: id }, options);
    try {
      return await work(lease);
    } catch (error) {
      // The first failure is the one to tell; a lease that cannot be released frees itself (Lease.release).
      await lease.release().catch(() => undefined);
      throw error;
    }
  }
}

const invalid = (field: string, given: string, wanted: string): LooprigError =>
  new LooprigError("option.invalid", `Cannot use ${given} as option "${field}": wanted ${wanted}`, {
    field,
    given,
    wanted,
  });
