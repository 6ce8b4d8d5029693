/**
 * Leases within one process. Without a time to live they last until they are released, as local ones do. With one they
 * expire by the given clock and are never renewed: the stand-in for a remote leaser whose renewals do not get through.
 *
 * Invariant: a lease whose time is up is told so (`lost`) before anybody else is given its name.
 */
import type { Lease, LeaseInfo, Leaser, StorageKey } from "./contracts.js";
import { describeHolder } from "./holder.js";
import { checkKey, checkPrefix } from "./limits.js";
import type { MemoryGuard } from "./memory.js";
import { leaseHeld, leaseLost } from "./refusals.js";

export interface MemoryLeaserOptions {
  readonly leaseTtlMs: number | undefined;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

interface Held {
  readonly info: LeaseInfo;
  readonly expiresAt: number;
  readonly lost: AbortController;
  timer: NodeJS.Timeout | undefined;
}

export interface MemoryLeaser extends Leaser {
  /** Ends every lease; their holders see them as lost. */
  close(): void;
}

export function createMemoryLeaser(guard: MemoryGuard, options: MemoryLeaserOptions): MemoryLeaser {
  const { clock } = options;
  const ttlMs = options.leaseTtlMs;
  const held = new Map<StorageKey, Held>();
  const epochs = new Map<StorageKey, number>();

  const end = (name: StorageKey, entry: Held): void => {
    clearTimeout(entry.timer);
    if (held.get(name) === entry) held.delete(name);
  };

  /** The entry of a name, if its time is not up. */
  const live = (name: StorageKey): Held | undefined => {
    const entry = held.get(name);
    if (entry === undefined || clock() < entry.expiresAt) return entry;
    end(name, entry);
    entry.lost.abort(leaseLost(name, "it expired"));
    return undefined;
  };

  /** Somebody may only listen to `lost` and never ask; the clock has the word, the timer only asks it. */
  const watch = (name: StorageKey, entry: Held): void => {
    if (ttlMs === undefined) return;
    entry.timer = setTimeout(
      () => {
        if (live(name) === entry) watch(name, entry);
      },
      Math.max(1, Math.min(ttlMs, entry.expiresAt - clock())),
    );
    entry.timer.unref();
  };

  const makeLease = (name: StorageKey, entry: Held): Lease => {
    let released = false;
    const release = async (): Promise<void> => {
      released = true;
      end(name, entry);
    };
    return {
      name,
      epoch: entry.info.holder.epoch,
      lost: entry.lost.signal,
      assertHeld() {
        if (released) throw leaseLost(name, "it was released");
        live(name);
        if (entry.lost.signal.aborted) throw entry.lost.signal.reason;
      },
      release,
      [Symbol.asyncDispose]: () => release().catch(() => undefined),
    };
  };

  return {
    async acquire(name, claim, abortable) {
      checkKey(name);
      guard("leaser.acquire", abortable?.signal);
      const other = live(name);
      if (other !== undefined) throw leaseHeld(name, other.info.holder);
      const epoch = (epochs.get(name) ?? 0) + 1;
      epochs.set(name, epoch);
      const entry: Held = {
        info: { name, holder: describeHolder(claim, epoch, new Date(clock())), subject: claim.subject },
        expiresAt: ttlMs === undefined ? Infinity : clock() + ttlMs,
        lost: new AbortController(),
        timer: undefined,
      };
      held.set(name, entry);
      watch(name, entry);
      return makeLease(name, entry);
    },

    async inspect(name, abortable) {
      checkKey(name);
      guard("leaser.inspect", abortable?.signal);
      return live(name)?.info;
    },

    async list(prefix, abortable) {
      checkPrefix(prefix);
      guard("leaser.list", abortable?.signal);
      return [...held.keys()]
        .filter((name) => name.startsWith(prefix))
        .sort()
        .map((name) => live(name)?.info)
        .filter((info) => info !== undefined);
    },

    close() {
      for (const [name, entry] of [...held]) {
        end(name, entry);
        entry.lost.abort(leaseLost(name, "its storage was closed"));
      }
    },
  };
}
