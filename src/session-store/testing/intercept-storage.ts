/** A storage whose calls a test can watch, fail, or hold up: before they happen, after, or instead. */
import type { LedgerRecord } from "../../storage/index.js";
import type { SessionStorage } from "../store.js";

/** `run` does the call. For iterations `around` is called once, when they begin, and `run` does nothing. */
export type AroundCall = (operation: string, run: () => Promise<unknown>) => Promise<unknown>;

const iterations = new Set(["ledger.read", "blobs.list"]);

export function interceptStorage(storage: SessionStorage, around: AroundCall): SessionStorage {
  const area = <T extends object>(name: string, target: T): T =>
    new Proxy(target, {
      get(_, member) {
        const method: unknown = Reflect.get(target, member);
        if (typeof method !== "function") return method;
        const operation = `${name}.${String(member)}`;
        return (...args: unknown[]) => {
          const call = (): unknown => Reflect.apply(method as (...given: unknown[]) => unknown, target, args);
          if (!iterations.has(operation)) return around(operation, () => call() as Promise<unknown>);
          return iterate(
            () => around(operation, async () => undefined),
            () => call() as AsyncIterable<unknown>,
          );
        };
      },
    });
  return {
    ledger: area("ledger", storage.ledger),
    leaser: area("leaser", storage.leaser),
    kv: area("kv", storage.kv),
    blobs: area("blobs", storage.blobs),
  };
}

async function* iterate(begin: () => Promise<unknown>, items: () => AsyncIterable<unknown>): AsyncIterable<unknown> {
  await begin();
  yield* items();
}

/** A storage whose ledgers are read through `change`: what a disk made of them. */
export function readingThrough(
  storage: SessionStorage,
  change: (records: AsyncIterable<LedgerRecord>) => AsyncIterable<LedgerRecord>,
): SessionStorage {
  const { ledger, leaser, kv, blobs } = storage;
  return {
    leaser,
    kv,
    blobs,
    ledger: {
      append: (name, bodies, options) => ledger.append(name, bodies, options),
      fence: (name, epoch, options) => ledger.fence(name, epoch, options),
      read: (name, options) => change(ledger.read(name, options)),
      head: (name, options) => ledger.head(name, options),
      list: (prefix, options) => ledger.list(prefix, options),
      delete: (name, options) => ledger.delete(name, options),
    },
  };
}
