/**
 * Leases held by the operating system (G4). The lock decides; the record only tells people who.
 *
 * Rules:
 *  1. acquire: lock → epoch and record, durable → the lease is handed out. release: record cleared → lock freed. So every
 *     lease that is held has a record, and a record whose lock is free is that of a holder that died.
 *  2. Locks of other processes are met by trying. A try can fail though nobody holds the lease, against a probe or another
 *     try; so one failure means nothing. `acquire` tries for `patienceMs` before it says "held".
 *  3. Locks of this process are answered from the registry; their files are never opened again while they are held.
 *  4. A lease whose lock file is not the one at its path any more is lost: another process could lock the new one.
 */
import { syncDirectory } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { checkKey, checkPrefix, leaseHeld, leaseLost } from "../storage/index.js";
import type { Lease, LeaseInfo, Leaser, StorageKey } from "../storage/index.js";
import { delay, jitter } from "./delay.js";
import { storageBusy, storageFailure } from "./failures.js";
import type { LeaseLock } from "./lease-lock.js";
import { openLeaseLock, probeLeaseLock } from "./lease-lock.js";
import {
  clearRecord,
  insertRecord,
  lockFileOf,
  recordedEpoch,
  selectRecord,
  selectRecordNames,
  writeRecordFile,
} from "./lease-record.js";
import { leaseRegistry } from "./lease-registry.js";
import type { RegisteredLease } from "./lease-registry.js";
import type { StateDatabase } from "./state-database.js";
import type { StateDirectory } from "./state-directory.js";
import { ensurePrivateFile, identity } from "./state-directory.js";

/** How long a lock that is busy is tried before its holder is believed. Probes and tries last far less than a millisecond. */
const patienceMs = 250;
/** The same where no holder is recorded: somebody is acquiring, or the record is on its way. */
const unknownPatienceMs = 1_000;
/** Busy probes, some milliseconds apart, that make a recorded holder a present one. */
const probesToBelieve = 3;
const watchMs = 5_000;

export interface LocalLeaser extends Leaser {
  /** Ends every lease; their holders see them as lost. */
  close(): Promise<void>;
}

interface Locked {
  readonly lock: LeaseLock;
  readonly key: string;
  readonly entry: RegisteredLease;
}

export function createLocalLeaser(
  fileSystem: FileSystem,
  directory: StateDirectory,
  database: StateDatabase,
): LocalLeaser {
  const { leasesDir } = directory;
  const registry = leaseRegistry();
  const open = new Map<Lease, (reason: string) => void>();

  const onDisk = <T>(operation: string, file: string, call: () => T): T => {
    try {
      directory.assertPresent();
      return call();
    } catch (error) {
      throw storageFailure(error, operation, file, fileSystem);
    }
  };

  const ensureLockFile = (file: string): void => {
    if (identity(fileSystem, leasesDir) === undefined) {
      fileSystem.mkdir(leasesDir, 0o700);
      fileSystem.chmod(leasesDir, 0o700);
      syncDirectory(fileSystem, directory.dir);
    }
    ensurePrivateFile(fileSystem, file, []);
  };

  /** One try. `holder` is who has it, as far as is known at once. */
  const tryLock = (file: string): Locked | "busy" | LeaseInfo => {
    ensureLockFile(file);
    const key = identity(fileSystem, file);
    if (key === undefined) return "busy";
    const present = registry.get(key);
    if (present !== undefined) return present.info ?? "busy";
    const entry: RegisteredLease = { info: undefined };
    registry.set(key, entry);
    let lock: LeaseLock | undefined;
    let locked = false;
    try {
      lock = openLeaseLock(file);
      // A file that took the name between the two looks is another lock than the one that is registered.
      locked = lock.tryLock() && identity(fileSystem, file) === key;
      return locked ? { lock, key, entry } : "busy";
    } finally {
      if (!locked) {
        lock?.close();
        registry.delete(key);
      }
    }
  };

  const lockPatiently = async (name: StorageKey, signal: AbortSignal | undefined): Promise<Locked> => {
    const file = lockFileOf(leasesDir, name);
    const start = performance.now();
    for (;;) {
      database.guard("leaser.acquire", signal);
      const result = onDisk("leaser.acquire", file, () => tryLock(file));
      if (result !== "busy") {
        if ("lock" in result) return result;
        throw leaseHeld(name, result.holder);
      }
      const waited = performance.now() - start;
      if (waited >= patienceMs) {
        const info = await database.read("leaser.acquire", signal, (sql) =>
          selectRecord(sql, name, directory.databaseFile),
        );
        if (info !== undefined || waited >= unknownPatienceMs) throw leaseHeld(name, info?.holder);
      }
      await delay(jitter(2, 15), signal);
    }
  };

  const free = ({ lock, key, entry }: Locked): void => {
    try {
      lock.close();
    } finally {
      if (registry.get(key) === entry) registry.delete(key);
    }
  };

  const makeLease = (name: StorageKey, locked: Locked, info: LeaseInfo): Lease => {
    const file = lockFileOf(leasesDir, name);
    const lost = new AbortController();
    let state: "held" | "released" = "held";

    const lose = (reason: string): void => {
      if (state === "held" && !lost.signal.aborted) lost.abort(leaseLost(name, reason));
    };
    const look = (): void => {
      let present: string | undefined;
      try {
        present = identity(fileSystem, file);
      } catch {
        // What cannot be looked at is not surely ours.
      }
      if (present !== locked.key) lose("its lock file was removed or replaced");
    };
    const watch = setInterval(look, watchMs);
    watch.unref();

    const release = async (): Promise<void> => {
      if (state === "released") return;
      state = "released";
      clearInterval(watch);
      open.delete(lease);
      // Without it the name is probed in vain until somebody acquires it again.
      database.tryWrite((sql) => clearRecord(sql, name, info.holder.epoch));
      onRelease(file, () => free(locked));
    };
    const lease: Lease = {
      name,
      epoch: info.holder.epoch,
      lost: lost.signal,
      assertHeld() {
        if (state === "released") throw leaseLost(name, "it was released");
        look();
        if (lost.signal.aborted) throw lost.signal.reason;
      },
      release,
      [Symbol.asyncDispose]: () => release().catch(() => undefined),
    };
    open.set(lease, lose);
    return lease;
  };

  const onRelease = (file: string, call: () => void): void => {
    try {
      call();
    } catch (error) {
      throw storageFailure(error, "lease.release", file, fileSystem);
    }
  };

  /** The present holder of a name, from several looks (rule 2). */
  const present = async (
    operation: string,
    name: StorageKey,
    signal: AbortSignal | undefined,
  ): Promise<LeaseInfo | undefined> => {
    const file = lockFileOf(leasesDir, name);
    let epoch = 0;
    let busy = 0;
    for (let looks = 0; looks < 40; looks++) {
      const info = await database.read(operation, signal, (sql) => selectRecord(sql, name, directory.databaseFile));
      if (info === undefined) return undefined;
      const answer = onDisk(operation, file, (): LeaseInfo | "busy" | "free" => {
        const key = identity(fileSystem, file);
        if (key === undefined) return "free";
        const own = registry.get(key);
        if (own !== undefined) return own.info ?? "busy";
        return probeLeaseLock(file) ? "busy" : "free";
      });
      if (answer === "free") return undefined;
      if (answer !== "busy") return answer;
      busy = info.holder.epoch === epoch ? busy + 1 : 1;
      epoch = info.holder.epoch;
      if (busy >= probesToBelieve) return info;
      await delay(jitter(2, 10), signal);
    }
    throw storageBusy(operation, file);
  };

  return {
    async acquire(name, claim, options) {
      checkKey(name);
      const signal = options?.signal;
      const locked = await lockPatiently(name, signal);
      try {
        const before = onDisk("leaser.acquire", leasesDir, () => recordedEpoch(fileSystem, leasesDir, name));
        const info = await database.write("leaser.acquire", signal, (sql) => insertRecord(sql, name, claim, before));
        onDisk("leaser.acquire", leasesDir, () => writeRecordFile(fileSystem, leasesDir, info));
        database.guard("leaser.acquire", signal);
        locked.entry.info = info;
        return makeLease(name, locked, info);
      } catch (error) {
        free(locked);
        throw error;
      }
    },

    async inspect(name, options) {
      checkKey(name);
      return present("leaser.inspect", name, options?.signal);
    },

    async list(prefix, options) {
      checkPrefix(prefix);
      const signal = options?.signal;
      const names = await database.read("leaser.list", signal, (sql) => selectRecordNames(sql, prefix));
      const found: LeaseInfo[] = [];
      // A few at a time: each held one takes some milliseconds of waiting, a dead one none.
      for (let at = 0; at < names.length; at += 16) {
        const some = names.slice(at, at + 16).map((name) => present("leaser.list", name, signal));
        found.push(...(await Promise.all(some)).filter((info) => info !== undefined));
      }
      return found;
    },

    async close() {
      for (const [lease, lose] of [...open]) {
        lose("its storage was closed");
        await lease.release();
      }
    },
  };
}
