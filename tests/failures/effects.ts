/**
 * Everything a process of ours does to the disk, as one row of numbered effects: each call that changes something on the file
 * system seam, and, since SQLite does not go through that, each transaction of journal, values and leases. What has no number
 * changes nothing, so dying right before one effect is the same as dying anywhere since the one before it.
 */
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { FileSystem } from "../../src/core/index.js";
import type { Storage } from "../../src/storage/index.js";

export interface Effect {
  /** From 1. */
  readonly number: number;
  /** The method: "rename", "write", …; "ledger.append", "kv.set", … */
  readonly name: string;
  readonly args: readonly unknown[];
}

export interface World {
  readonly fileSystem: FileSystem;
  /** The storage, with its transactions counted. */
  storage(inner: Storage): Storage;
  /** How many effects there were. */
  count(): number;
}

/** Calls `before` ahead of every effect, and `look` ahead of every call of the seam that changes nothing; both may throw. */
export function countEffects(
  before: (effect: Effect) => void,
  look: (name: string) => void = () => undefined,
  base: FileSystem = nodeFileSystem,
): World {
  let number = 0;
  const tick = (name: string, args: readonly unknown[]): void => before({ number: ++number, name, args });
  const fileSystem = interceptFileSystem(base, ({ name, args, effect }) => {
    if (effect) tick(name, args);
    else look(name);
  });
  const transactions = <T extends object>(area: string, inner: T, changing: readonly string[]): T =>
    new Proxy(inner, {
      get(target, key) {
        const method: unknown = Reflect.get(target, key);
        if (typeof method !== "function" || typeof key !== "string") return method;
        return (...args: unknown[]): unknown => {
          if (!changing.includes(key)) {
            look(`${area}.${key}`);
            return (method as (...args: unknown[]) => unknown).apply(target, args);
          }
          // They fail the way their callers expect: by rejecting.
          return new Promise((resolve) => {
            tick(`${area}.${key}`, args);
            resolve((method as (...args: unknown[]) => unknown).apply(target, args));
          });
        };
      },
    });
  return {
    fileSystem,
    count: () => number,
    storage: (inner) => {
      const leaser: Storage["leaser"] = {
        inspect: (...args) => inner.leaser.inspect(...args),
        list: (...args) => inner.leaser.list(...args),
        acquire: async (...args) => {
          tick("leaser.acquire", args);
          const lease = await inner.leaser.acquire(...args);
          return transactions("lease", lease, ["release"]);
        },
      };
      return {
        ...inner,
        leaser,
        ledger: transactions("ledger", inner.ledger, ["append", "fence", "delete"]),
        kv: transactions("kv", inner.kv, ["set", "delete"]),
      };
    },
  };
}
