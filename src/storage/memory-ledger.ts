/** The ledger of memory storage: arrays by name. Bodies are copied in and out, so nobody can change a record afterwards. */
import type { Abortable } from "../core/index.js";
import type { Ledger, StorageKey } from "./contracts.js";
import { checkAppend, checkCount, checkKey, checkPrefix } from "./limits.js";
import { copyOf } from "./memory.js";
import type { MemoryGuard } from "./memory.js";
import { ledgerConflict, ledgerFenced } from "./refusals.js";

interface Log {
  epoch: number;
  readonly bodies: Uint8Array[];
}

export function createMemoryLedger(guard: MemoryGuard): Ledger {
  const logs = new Map<StorageKey, Log>();

  const enter = (ledger: StorageKey, epoch: number): Log => {
    const log = logs.get(ledger) ?? { epoch, bodies: [] };
    if (epoch < log.epoch) throw ledgerFenced(ledger, epoch, log.epoch);
    return log;
  };

  return {
    async append(ledger, bodies, options) {
      checkAppend(ledger, bodies, options);
      guard("ledger.append", options.signal);
      const log = enter(ledger, options.epoch);
      if (log.bodies.length !== options.expectedHead) {
        throw ledgerConflict(ledger, options.expectedHead, log.bodies.length);
      }
      log.epoch = options.epoch;
      log.bodies.push(...bodies.map(copyOf));
      logs.set(ledger, log);
      return log.bodies.length;
    },

    async fence(ledger, epoch, options) {
      checkKey(ledger);
      checkCount(ledger, "epoch", epoch, 0);
      guard("ledger.fence", options?.signal);
      const log = enter(ledger, epoch);
      log.epoch = epoch;
      logs.set(ledger, log);
    },

    async *read(ledger, options: Abortable & { readonly from?: number } = {}) {
      const from = options.from ?? 1;
      checkKey(ledger);
      checkCount(ledger, "from", from, 1);
      guard("ledger.read", options.signal);
      // The array of a deleted ledger is dropped, never cut: an iteration that has begun ends as it began.
      const bodies = logs.get(ledger)?.bodies ?? [];
      const head = bodies.length;
      for (let seq = from; seq <= head; seq++) {
        guard("ledger.read", options.signal);
        yield { seq, body: copyOf(bodies[seq - 1] as Uint8Array) };
      }
    },

    async head(ledger, options) {
      checkKey(ledger);
      guard("ledger.head", options?.signal);
      return logs.get(ledger)?.bodies.length ?? 0;
    },

    async list(prefix, options) {
      checkPrefix(prefix);
      guard("ledger.list", options?.signal);
      return [...logs]
        .filter(([name, log]) => name.startsWith(prefix) && log.bodies.length > 0)
        .map(([name]) => name)
        .sort();
    },

    async delete(ledger, options) {
      checkKey(ledger);
      guard("ledger.delete", options?.signal);
      logs.delete(ledger);
    },
  };
}
