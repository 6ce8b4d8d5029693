/** The key-value half of memory storage. A deleted key keeps its revision, so that a re-made key never repeats one. */
import type { Kv, KvEntry, StorageKey } from "./contracts.js";
import { checkCount, checkKey, checkPrefix, checkSet } from "./limits.js";
import { copyOf } from "./memory.js";
import type { MemoryGuard } from "./memory.js";
import { kvConflict } from "./refusals.js";

interface Slot {
  revision: number;
  value: Uint8Array | undefined;
}

export function createMemoryKv(guard: MemoryGuard): Kv {
  const slots = new Map<StorageKey, Slot>();

  const entry = (key: StorageKey, slot: Slot | undefined): KvEntry | undefined =>
    slot?.value === undefined ? undefined : { key, revision: slot.revision, value: copyOf(slot.value) };

  const change = (key: StorageKey, expected: number, value: Uint8Array | undefined): number => {
    const slot = slots.get(key) ?? { revision: 0, value: undefined };
    const actual = slot.value === undefined ? 0 : slot.revision;
    if (actual !== expected || (value === undefined && actual === 0)) throw kvConflict(key, expected, actual);
    slot.revision += 1;
    slot.value = value;
    slots.set(key, slot);
    return slot.revision;
  };

  return {
    async get(key, options) {
      checkKey(key);
      guard("kv.get", options?.signal);
      return entry(key, slots.get(key));
    },

    async set(key, value, options) {
      checkSet(key, value, options.revision);
      guard("kv.set", options.signal);
      return change(key, options.revision, copyOf(value));
    },

    async delete(key, options) {
      checkKey(key);
      checkCount(key, "revision", options.revision, 0);
      guard("kv.delete", options.signal);
      change(key, options.revision, undefined);
    },

    async list(prefix, options) {
      checkPrefix(prefix);
      guard("kv.list", options?.signal);
      return [...slots.keys()]
        .filter((key) => key.startsWith(prefix))
        .sort()
        .map((key) => entry(key, slots.get(key)))
        .filter((found) => found !== undefined);
    },
  };
}
