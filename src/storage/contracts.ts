/**
 * The four storage contracts (G1) and the value that bundles them. Implementations: memory (here), local (SQLite and
 * files), later PostgreSQL and S3. One conformance suite per contract (`looprig/testing`) says in code what is said here in
 * prose; a backend may differ only through what it declares.
 *
 * Common to all: a call that rejects has changed nothing, or exactly what it was asked (a lost answer); the caller can
 * find out by reading. Errors are `StorageError`; `retryable` is set where the same call may succeed later. Every call
 * takes `signal`; an abort rejects with the signal's reason and never leaves half a change.
 */
import type { Abortable, LeaseHolder, SessionId } from "../core/index.js";

/**
 * Keys and names: 1 to 512 bytes of `[A-Za-z0-9._/-]`, no empty, "." or ".." component; upper and lower case differ. A prefix is
 * any text of these characters, "" for all. Values and numbers have limits too. Whatever breaks one is `storage.invalid_key`.
 */
export type StorageKey = string;

// ── Ledger ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A record as it was appended. */
export interface LedgerRecord {
  /** From 1, without gaps. */
  readonly seq: number;
  readonly body: Uint8Array;
}

/** An append-only log: ordered, gap-free, checksummed, fenced by lease epoch. */
export interface Ledger {
  /**
   * Appends `bodies` (1 to 1 000, each 1 byte to 1 MiB) as the records `expectedHead + 1 …`, all or none, durable on return.
   * `ledger.fenced` when a higher epoch has appended or fenced before, else `ledger.conflict` when the head is not `expectedHead`.
   * Returns the new head. A ledger that does not exist has head 0 and is made by its first append.
   */
  append(
    ledger: StorageKey,
    bodies: readonly Uint8Array[],
    options: Abortable & { readonly expectedHead: number; readonly epoch: number },
  ): Promise<number>;
  /**
   * Refuses, from its return on, every append with an epoch below `epoch`. What a new holder calls before it reads.
   * `ledger.fenced` when a higher epoch was here before: the caller is the stale one.
   */
  fence(ledger: StorageKey, epoch: number, options?: Abortable): Promise<void>;
  /**
   * The records from `from` (default 1) to the head as of the first step. A record that fails its checksum ends the
   * iteration with `ledger.damaged { seq }` after everything before it was yielded; it is never skipped.
   * Backends that can be cut in the middle of an append remove such a tail before the first record is yielded.
   * A ledger that is deleted meanwhile may end the iteration early.
   */
  read(ledger: StorageKey, options?: Abortable & { readonly from?: number }): AsyncIterable<LedgerRecord>;
  /** The sequence of the last record, 0 if there is none. */
  head(ledger: StorageKey, options?: Abortable): Promise<number>;
  /** The names of the ledgers that have a record and start with `prefix`, in order. */
  list(prefix: string, options?: Abortable): Promise<readonly StorageKey[]>;
  /** Removes the ledger and its records; absent is fine. Its epoch is forgotten. */
  delete(ledger: StorageKey, options?: Abortable): Promise<void>;
}

// ── Leaser ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the asker says of itself, for people to read. */
export interface LeaseClaim {
  readonly sessionId: SessionId;
  /** At most 1 000 characters are kept. */
  readonly command: string;
  /** What the lease is about, for listings: a root's path, say. */
  readonly subject?: string;
}

/** Exclusive, fenced ownership of a name. Disposing of it releases it and never rejects: a failure of the work is not to be hidden by one of the end. */
export interface Lease extends AsyncDisposable {
  readonly name: StorageKey;
  /** Grows with every acquisition of this name, also across restarts. From 1. */
  readonly epoch: number;
  /** Aborts when the lease is no longer surely ours, also because its storage was closed; its reason is `lease.lost`. Never aborts after `release`. */
  readonly lost: AbortSignal;
  /** Throws `lease.lost` unless the lease is surely still held; looks at the store where that is cheap. */
  assertHeld(): void;
  /** Idempotent. Rejects only when the store fails; the lease then frees itself with the process or by expiry. */
  release(): Promise<void>;
}

/** A lease that is held, and by whom. */
export interface LeaseInfo {
  readonly name: StorageKey;
  readonly holder: LeaseHolder;
  readonly subject: string | undefined;
}

/** Hands out leases. A name is any storage key. */
export interface Leaser {
  /** Takes the lease at once or rejects with `lease.held { holder }`. Never waits for a holder to finish. */
  acquire(name: StorageKey, claim: LeaseClaim, options?: Abortable): Promise<Lease>;
  /** The present holder, or undefined when it is free. Never disturbs a holder and never makes an acquisition fail. */
  inspect(name: StorageKey, options?: Abortable): Promise<LeaseInfo | undefined>;
  /** The held leases whose names start with `prefix`, in order of their names. */
  list(prefix: string, options?: Abortable): Promise<readonly LeaseInfo[]>;
}

// ── KV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A value with the revision it was read at. */
export interface KvEntry {
  readonly key: StorageKey;
  /** From 1, grows with every change of the key, also across a deletion. */
  readonly revision: number;
  readonly value: Uint8Array;
}

/** Small values (at most 256 KiB), changed only by compare-and-set on their revision; durable on return. */
export interface Kv {
  /** Undefined when the key is absent. */
  get(key: StorageKey, options?: Abortable): Promise<KvEntry | undefined>;
  /** `revision`: the one that was read, or 0 for "must not exist". Returns the new one. `kv.conflict` when it is another. */
  set(key: StorageKey, value: Uint8Array, options: Abortable & { readonly revision: number }): Promise<number>;
  /** Removes the key if its revision is the one given. `kv.conflict` otherwise, also when it is absent. */
  delete(key: StorageKey, options: Abortable & { readonly revision: number }): Promise<void>;
  /** The entries whose keys start with `prefix`, in order of their keys. */
  list(prefix: string, options?: Abortable): Promise<readonly KvEntry[]>;
}

// ── Blobs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A blob that is there; `size` in bytes. */
export interface BlobInfo {
  readonly key: StorageKey;
  readonly size: number;
}

/** Bytes by key, immutable once there. At most 64 MiB each. */
export interface Blobs {
  /**
   * Creates the blob from the concatenation of `chunks`, visible only when complete and durable. Returns false, and
   * changes nothing, when the key exists (whatever its bytes: callers name blobs by content or at random).
   * `sparing`: leaves the last of a disk alone, with `storage.reserve`; a storage that has no such thing may ignore it.
   */
  put(
    key: StorageKey,
    chunks: readonly Uint8Array[],
    options?: Abortable & { readonly sparing?: boolean | undefined },
  ): Promise<boolean>;
  /** The bytes from `offset` (default 0), `length` of them (default: the rest). `blob.missing`; a range past the end is cut. */
  get(
    key: StorageKey,
    options?: Abortable & { readonly offset?: number; readonly length?: number },
  ): Promise<Uint8Array>;
  /** Undefined when absent. */
  stat(key: StorageKey, options?: Abortable): Promise<BlobInfo | undefined>;
  /** Blobs whose keys start with `prefix`, in order of their keys. */
  list(prefix: string, options?: Abortable): AsyncIterable<BlobInfo>;
  /** Absent is fine. Need not be durable on return: after a power loss the blob may be there again. */
  delete(key: StorageKey, options?: Abortable): Promise<void>;
}

// ── the bundle ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a storage on a disk of this machine can do besides. */
export interface StorageDisk {
  /** Removes what killed writers left; never a file that a living process may be at. Returns how many. */
  removeStrays(): Promise<number>;
  /** Runs `work`, for which a full disk has room: space set aside is given up to it first, and taken back afterwards. */
  withReserve<T>(work: () => Promise<T>): Promise<T>;
}

/** The four contracts together, as a rig or a workspace is given them. */
export interface Storage extends AsyncDisposable {
  readonly ledger: Ledger;
  readonly leaser: Leaser;
  readonly kv: Kv;
  readonly blobs: Blobs;
  /** "local" storage keeps private files on this machine; "remote" may show them to others (U13). */
  readonly locality: "local" | "remote";
  /** Absolute paths below which this storage writes (B1). None for memory and remote ones. */
  persistencePaths(): readonly string[];
  /** A directory for rebuildable per-machine files (stat indexes), or undefined when there is none. */
  readonly spoolDir: string | undefined;
  /** Absent where the storage has no disk of its own here. */
  readonly disk?: StorageDisk | undefined;
  /** Idempotent. Open leases are released, and lost to their holders. Calls after it reject with `storage.closed`. */
  close(): Promise<void>;
}
