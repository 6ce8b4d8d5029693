import os from "node:os";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../../core/index.js";
import type { Lease } from "../contracts.js";
import { claimCommandCharsMax } from "../limits.js";
import { abortedEarly, badKeys, bench, claimOf, refused } from "./conformance.js";
import type { ConformanceOptions } from "./conformance.js";

/** What the contract says of `Leaser` and `Lease`, as tests. */
export function leaserConformance(name: string, options: ConformanceOptions): void {
  describe(`${name} leaser`, () => {
    const { open, offered } = bench(options);
    const held = (lease: Lease): boolean => {
      try {
        lease.assertHeld();
        return true;
      } catch (error) {
        if (isLooprigError(error, "lease.lost")) return false;
        throw error;
      }
    };

    test("a lease is its holder's alone, and the refusal says who that is", async () => {
      const { leaser } = await open();
      const claim = claimOf("the first");
      const lease = await leaser.acquire("roots/a", claim);
      expect(lease.name).toBe("roots/a");
      expect(lease.epoch).toBeGreaterThanOrEqual(1);
      expect(lease.lost.aborted).toBe(false);
      expect(held(lease)).toBe(true);
      const refusal: unknown = await leaser.acquire("roots/a", claimOf("the second")).catch((error: unknown) => error);
      if (!isLooprigError(refusal, "lease.held")) throw new Error("wanted lease.held", { cause: refusal });
      expect(refusal.details.holder).toMatchObject({
        sessionId: claim.sessionId,
        command: "the first",
        host: os.hostname(),
        pid: process.pid,
        epoch: lease.epoch,
      });
      expect(refusal.details.holder?.since).toBeInstanceOf(Date);
      expect(held(lease)).toBe(true);
    });

    test("a released lease is free, and its epoch is never given again", async () => {
      const { leaser } = await open();
      const epochs: number[] = [];
      for (let i = 0; i < 5; i++) {
        const lease = await leaser.acquire("l", claimOf(`${i}`));
        epochs.push(lease.epoch);
        await lease.release();
      }
      expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    });

    test("release is idempotent, is no loss, and ends the right to write", async () => {
      const { leaser } = await open();
      const lease = await leaser.acquire("l", claimOf("one"));
      await Promise.all([lease.release(), lease.release()]);
      await lease.release();
      expect(lease.lost.aborted).toBe(false);
      expect(held(lease)).toBe(false);
      const next = await leaser.acquire("l", claimOf("two"));
      await lease.release();
      expect(held(next)).toBe(true);
      await refused(leaser.acquire("l", claimOf("three")), "lease.held");
    });

    test("disposing a lease releases it", async () => {
      const { leaser } = await open();
      const lease = await leaser.acquire("l", claimOf("one"));
      await lease[Symbol.asyncDispose]();
      expect(await leaser.inspect("l")).toBeUndefined();
    });

    test("of those who ask at the same moment exactly one gets it", async () => {
      const { leaser } = await open();
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, i) => leaser.acquire("l", claimOf(`${i}`))),
      );
      const refusals = results.filter((result) => result.status === "rejected").map(({ reason }) => reason as unknown);
      expect(refusals).toHaveLength(9);
      expect(refusals.every((reason) => isLooprigError(reason, "lease.held"))).toBe(true);
    });

    test("leases of different names do not meet", async () => {
      const { leaser } = await open();
      const a = await leaser.acquire("a", claimOf("a"));
      const b = await leaser.acquire("a/b", claimOf("b"));
      await a.release();
      expect(held(b)).toBe(true);
      await refused(leaser.acquire("a/b", claimOf("c")), "lease.held");
    });

    test("inspect and list tell of held leases and of nothing else", async () => {
      const { leaser } = await open();
      expect(await leaser.inspect("roots/a")).toBeUndefined();
      expect(await leaser.list("")).toEqual([]);
      const claim = claimOf("one", "/the/root");
      const a = await leaser.acquire("roots/a", claim);
      await leaser.acquire("roots/b", claimOf("two"));
      await leaser.acquire("sessions/c", claimOf("three"));
      expect(await leaser.inspect("roots/a")).toMatchObject({
        name: "roots/a",
        subject: "/the/root",
        holder: { sessionId: claim.sessionId, command: "one", epoch: a.epoch },
      });
      expect((await leaser.inspect("roots/b"))?.subject).toBeUndefined();
      expect((await leaser.list("roots/")).map((info) => info.name)).toEqual(["roots/a", "roots/b"]);
      await a.release();
      expect(await leaser.inspect("roots/a")).toBeUndefined();
      expect((await leaser.list("")).map((info) => info.name)).toEqual(["roots/b", "sessions/c"]);
      expect(held(a)).toBe(false);
    });

    test("a long command is kept up to its limit", async () => {
      const { leaser } = await open();
      await leaser.acquire("l", claimOf("x".repeat(5_000)));
      expect((await leaser.inspect("l"))?.holder.command).toBe("x".repeat(claimCommandCharsMax));
    });

    test("an aborted acquisition leaves the lease free", async () => {
      const { leaser } = await open();
      await abortedEarly((signal) => leaser.acquire("l", claimOf("one"), { signal }));
      await abortedEarly((signal) => leaser.inspect("l", { signal }));
      await abortedEarly((signal) => leaser.list("", { signal }));
      const controller = new AbortController();
      const acquiring = leaser.acquire("late", claimOf("two"), { signal: controller.signal });
      controller.abort(new Error("the test's reason"));
      // It may have been granted before it saw the abort; then it is ours to give back.
      await acquiring.then(
        (lease) => lease.release(),
        (error: unknown) => expect(error).toBe(controller.signal.reason),
      );
      for (const name of ["l", "late"]) expect(held(await leaser.acquire(name, claimOf("three")))).toBe(true);
    });

    test("names that break the limits are refused", async () => {
      const { leaser } = await open();
      for (const key of badKeys) {
        await refused(leaser.acquire(key, claimOf("one")), "storage.invalid_key");
        await refused(leaser.inspect(key), "storage.invalid_key");
      }
    });

    test("closing the storage ends its leases, and their holders are told", async () => {
      const storage = await open();
      const lease = await storage.leaser.acquire("l", claimOf("one"));
      const released = await storage.leaser.acquire("released", claimOf("two"));
      await released.release();
      await storage.close();
      expect(lease.lost.aborted).toBe(true);
      expect(isLooprigError(lease.lost.reason, "lease.lost")).toBe(true);
      expect(held(lease)).toBe(false);
      expect(released.lost.aborted).toBe(false);
      await lease.release();
    });

    offered("reopen", "a lease excludes, and is seen, from another opening of the data", async (reopen) => {
      const first = await open();
      const second = await reopen(first);
      const lease = await first.leaser.acquire("l", claimOf("one"));
      await refused(second.leaser.acquire("l", claimOf("two")), "lease.held");
      expect((await second.leaser.inspect("l"))?.holder.command).toBe("one");
      expect(held(lease)).toBe(true);
      await lease.release();
      const next = await second.leaser.acquire("l", claimOf("two"));
      expect(next.epoch).toBeGreaterThan(lease.epoch);
    });

    offered("reopen", "closing a storage frees its leases, and epochs go on from where they were", async (reopen) => {
      const first = await open();
      const lease = await first.leaser.acquire("l", claimOf("one"));
      await first.close();
      const { leaser } = await reopen(first);
      expect(await leaser.list("")).toEqual([]);
      expect((await leaser.acquire("l", claimOf("two"))).epoch).toBeGreaterThan(lease.epoch);
    });

    offered("expireLeases", "an expired lease is lost before it is given to another", async (expire) => {
      const storage = await open();
      const lease = await storage.leaser.acquire("l", claimOf("one"));
      await expire(storage);
      expect(held(lease)).toBe(false);
      expect(lease.lost.aborted).toBe(true);
      const next = await storage.leaser.acquire("l", claimOf("two"));
      expect(next.epoch).toBeGreaterThan(lease.epoch);
      await lease.release();
      expect(held(next)).toBe(true);
    });

    offered("expireLeases", "the loss is told by the acquisition that follows it", async (expire) => {
      const storage = await open();
      const lease = await storage.leaser.acquire("l", claimOf("one"));
      await expire(storage);
      expect(await storage.leaser.inspect("l")).toBeUndefined();
      await storage.leaser.acquire("l", claimOf("two"));
      expect(lease.lost.aborted).toBe(true);
    });
  });
}
