/** The same suites of all contracts, in memory (G1); and what only leases that expire can show. */
import { describe, expect, test, vi } from "vitest";
import type { Storage } from "./contracts.js";
import { createMemoryStorage } from "./memory.js";
import { claimOf } from "./testing/conformance.js";
import { leaserConformance, storageConformance } from "./testing/index.js";

storageConformance("memory", { open: () => createMemoryStorage() });

const clocks = new WeakMap<Storage, { now: number }>();
leaserConformance("expiring memory", {
  open: () => {
    const clock = { now: 1_000_000 };
    const storage = createMemoryStorage({ leaseTtlMs: 10_000, clock: () => clock.now });
    clocks.set(storage, clock);
    return storage;
  },
  expireLeases: (storage) => {
    const clock = clocks.get(storage);
    if (clock) clock.now += 10_000;
  },
});

describe("memory leases with a time to live", () => {
  test("one that nobody asks about is lost when its time is up, not before", async () => {
    vi.useFakeTimers();
    try {
      const { leaser } = createMemoryStorage({ leaseTtlMs: 10_000 });
      const lease = await leaser.acquire("l", claimOf("one"));
      vi.advanceTimersByTime(9_999);
      expect(lease.lost.aborted).toBe(false);
      vi.advanceTimersByTime(1);
      expect(lease.lost.aborted).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  test("one that is held when it expires keeps its epoch from the next", async () => {
    let now = 0;
    const { leaser } = createMemoryStorage({ leaseTtlMs: 100, clock: () => now });
    const first = await leaser.acquire("l", claimOf("one"));
    now = 99;
    first.assertHeld();
    now = 100;
    expect((await leaser.acquire("l", claimOf("two"))).epoch).toBe(first.epoch + 1);
  });
});
