/**
 * The leases of this process, by the identity of their lock files. It answers for them without touching the files, which
 * would free their locks. It hangs on `globalThis`, so that duplicate installs of looprig and several storages on one
 * state directory agree; its shape is therefore kept from release to release.
 */
import type { LeaseInfo } from "../storage/index.js";

export interface RegisteredLease {
  /** Undefined while it is being acquired. */
  info: LeaseInfo | undefined;
}

const shared = Symbol.for("looprig.local-leases");

/** Keys are `dev:ino` of the lock file. */
export function leaseRegistry(): Map<string, RegisteredLease> {
  const registry = globalThis as Record<symbol, Map<string, RegisteredLease> | undefined>;
  return (registry[shared] ??= new Map<string, RegisteredLease>());
}
