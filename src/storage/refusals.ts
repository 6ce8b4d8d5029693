/**
 * The errors every backend answers with, made in one place so that code, details and wording are the same whatever stands
 * below. Functions return the error; the caller throws it.
 */
import { StorageError } from "../core/index.js";
import type { LeaseHolder } from "../core/index.js";
import type { StorageKey } from "./contracts.js";

/** `storage.closed`: what every call answers after `close`. */
export const storageClosed = (operation: string): StorageError =>
  new StorageError("storage.closed", `Cannot do ${operation}: the storage was closed; open it again`, { operation });

/** `ledger.conflict`: the head is not the expected one. */
export const ledgerConflict = (ledger: StorageKey, expected: number, head: number): StorageError =>
  new StorageError(
    "ledger.conflict",
    `Cannot append to ledger "${ledger}": its head is ${head}, wanted ${expected}; read what was added first`,
    { ledger, expected, head },
  );

/** `ledger.fenced`: a holder with a higher epoch was here. */
export const ledgerFenced = (ledger: StorageKey, epoch: number, current: number): StorageError =>
  new StorageError(
    "ledger.fenced",
    `Cannot write to ledger "${ledger}" with epoch ${epoch}: a holder with epoch ${current} took it over; stop, and acquire the lease anew`,
    { ledger, epoch, current },
  );

/** `ledger.damaged`: a record that fails its checksum. */
export const ledgerDamaged = (ledger: StorageKey, seq: number, cause?: unknown): StorageError =>
  new StorageError(
    "ledger.damaged",
    `Cannot read record ${seq} of ledger "${ledger}": it does not match its checksum; what stands before it is good`,
    { ledger, seq },
    { cause },
  );

/** `kv.conflict`: the revision is not the one given. */
export const kvConflict = (key: StorageKey, expected: number, actual: number): StorageError =>
  new StorageError(
    "kv.conflict",
    `Cannot change "${key}": its revision is ${actual}, wanted ${expected}; read it and decide again`,
    { key, expected, actual },
  );

/** `blob.missing`: a blob that is not there was read. */
export const blobMissing = (key: StorageKey): StorageError =>
  new StorageError("blob.missing", `Cannot read blob "${key}": there is none`, { key });

/** `lease.held`, which is retryable: another holder has it; undefined where it cannot be told who. */
export const leaseHeld = (name: StorageKey, holder: LeaseHolder | undefined): StorageError => {
  const who =
    holder === undefined
      ? "another process"
      : `${JSON.stringify(holder.command)} (pid ${holder.pid} on ${holder.host}) since ${holder.since.toISOString()}`;
  return new StorageError(
    "lease.held",
    `Cannot take lease "${name}": ${who} holds it; wait for that, or end it`,
    { name, holder },
    { retryable: true },
  );
};

/** `lease.lost`: the lease is no longer surely ours. */
export const leaseLost = (name: StorageKey, reason: string): StorageError =>
  new StorageError("lease.lost", `Cannot go on under lease "${name}": ${reason}; write nothing more under it`, {
    name,
  });
