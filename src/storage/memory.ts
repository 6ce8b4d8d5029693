/** Storage in the memory of this process: for tests, and for sessions that need not outlive it. */
import type { Storage } from "./contracts.js";
import { createMemoryBlobs } from "./memory-blobs.js";
import { createMemoryKv } from "./memory-kv.js";
import { createMemoryLeaser } from "./memory-leaser.js";
import { createMemoryLedger } from "./memory-ledger.js";
import { storageClosed } from "./refusals.js";

/** Throws `storage.closed`, or the signal's reason. What every method calls before it does anything. */
export type MemoryGuard = (operation: string, signal: AbortSignal | undefined) => void;

/** A copy that shares no memory; `slice` would not do, since that of a `Buffer` is a view. */
export const copyOf = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);

/** How the leases of a storage in memory behave. */
export interface MemoryStorageOptions {
  /** Leases end this long after they were acquired and are not renewed. Default: they do not expire. */
  readonly leaseTtlMs?: number | undefined;
  /** What leases read the time from, in milliseconds since 1970. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/** Makes an empty storage. It owns nothing outside the process; `close` only ends its leases and refuses later calls. */
export function createMemoryStorage(options: MemoryStorageOptions = {}): Storage {
  let closed = false;
  const guard: MemoryGuard = (operation, signal) => {
    if (closed) throw storageClosed(operation);
    signal?.throwIfAborted();
  };
  const leaser = createMemoryLeaser(guard, { leaseTtlMs: options.leaseTtlMs, clock: options.clock ?? Date.now });
  const close = async (): Promise<void> => {
    closed = true;
    leaser.close();
  };
  return {
    ledger: createMemoryLedger(guard),
    leaser,
    kv: createMemoryKv(guard),
    blobs: createMemoryBlobs(guard),
    locality: "local",
    persistencePaths: () => [],
    spoolDir: undefined,
    close,
    [Symbol.asyncDispose]: close,
  };
}
