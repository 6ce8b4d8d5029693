/**
 * The limits of the contracts, checked once here so that every backend refuses the same input with the same error and
 * before any I/O. A backend calls the check of a method first thing in it.
 */
import { StorageError } from "../core/index.js";
import type { StorageKey } from "./contracts.js";

/** Bytes of a storage key: 512. */
export const keyBytesMax = 512;
/** Records of one append: 1 000. */
export const appendRecordsMax = 1_000;
/** Bytes of a record: 1 MiB. */
export const recordBytesMax = 1024 * 1024;
/** Bytes of a value: 256 KiB. */
export const kvValueBytesMax = 256 * 1024;
/** Bytes of a blob: 64 MiB. */
export const blobBytesMax = 64 * 1024 * 1024;
/** How much of a claim's command a holder record keeps. */
export const claimCommandCharsMax = 1_000;

const characters = /^[A-Za-z0-9._/-]*$/;

/** Throws `storage.invalid_key` unless `key` is one the contracts allow. */
export function checkKey(key: StorageKey): void {
  const reason =
    key === ""
      ? "it is empty"
      : (textReason(key) ??
        (key.split("/").some((part) => part === "" || part === "." || part === "..")
          ? 'it has "", "." or ".." as a component'
          : undefined));
  if (reason !== undefined) refuse("a storage key", key, reason);
}

/** Throws `storage.invalid_key` unless some key could start with `prefix`; "" fits every key. */
export function checkPrefix(prefix: string): void {
  const reason = textReason(prefix);
  if (reason !== undefined) refuse("a prefix of storage keys", prefix, reason);
}

/** Checks the arguments of `Ledger.append`. */
export function checkAppend(
  ledger: StorageKey,
  bodies: readonly Uint8Array[],
  options: { readonly expectedHead: number; readonly epoch: number },
): void {
  checkKey(ledger);
  if (bodies.length < 1 || bodies.length > appendRecordsMax) {
    refuse("an append to ledger", ledger, `it has ${bodies.length} records; wanted 1 to ${appendRecordsMax}`);
  }
  for (const body of bodies) {
    if (body.length < 1 || body.length > recordBytesMax) {
      refuse("a record of ledger", ledger, `it has ${body.length} bytes; wanted 1 to ${recordBytesMax}`);
    }
  }
  checkCount(ledger, "expectedHead", options.expectedHead, 0);
  checkCount(ledger, "epoch", options.epoch, 0);
}

/** Checks the arguments of `Kv.set`. */
export function checkSet(key: StorageKey, value: Uint8Array, revision: number): void {
  checkKey(key);
  checkCount(key, "revision", revision, 0);
  if (value.length > kvValueBytesMax) {
    refuse("a value of", key, `it has ${value.length} bytes; wanted at most ${kvValueBytesMax}`);
  }
}

/** Checks the arguments of `Blobs.put`. */
export function checkPut(key: StorageKey, chunks: readonly Uint8Array[]): void {
  checkKey(key);
  const size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  if (size > blobBytesMax) refuse("a blob of", key, `it has ${size} bytes; wanted at most ${blobBytesMax}`);
}

/** Throws `storage.invalid_key` unless `value` is an integer of at least `min` that a double can hold exactly. */
export function checkCount(key: StorageKey, field: string, value: number, min: number): void {
  if (!Number.isSafeInteger(value) || value < min) {
    refuse("an argument for", key, `${field} is ${value}; wanted an integer from ${min}`);
  }
}

function textReason(text: string): string | undefined {
  // One byte each: anything longer than that in UTF-8 fails the second test.
  if (text.length > keyBytesMax) return `it has ${text.length} characters; wanted at most ${keyBytesMax}`;
  if (!characters.test(text)) return "it holds a character that is not one of A-Z a-z 0-9 . _ / -";
  return undefined;
}

function refuse(what: string, key: string, reason: string): never {
  const shown = key.length > 100 ? `${key.slice(0, 100)}…` : key;
  throw new StorageError("storage.invalid_key", `Cannot use ${what} ${JSON.stringify(shown)}: ${reason}`, {
    key: shown,
    reason,
  });
}
