import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StorageError, mintSessionId } from "../core/index.js";
import type { SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import { catalogKeyOf, leaseOf, ledgerOf, recordsOf } from "./keys.js";
import { inlineBytesMax } from "./out-of-line.js";
import { backends } from "./testing/backends.js";
import { interceptStorage } from "./testing/intercept-storage.js";
import type { AroundCall } from "./testing/intercept-storage.js";
import { begin, claim, codeOf, collect, failureOf, past, storeOn, turnStarted } from "./testing/scenes.js";

const planned = new StorageError("storage.failed", "planned", { operation: "planned" });
const large = turnStarted(1, "x".repeat(inlineBytesMax));

describe.each(backends)("deleting a session on storage %s", (_, makeBackend) => {
  const backend = makeBackend();
  let storage: Storage;
  let store: SessionStore;

  beforeEach(async () => {
    storage = await backend.open();
    store = storeOn(storage);
  });
  afterEach(async () => {
    await storage.close();
    backend.dispose();
  });

  const around = (intercept: AroundCall): SessionStore => storeOn(interceptStorage(storage, intercept));

  async function remains(id: SessionId): Promise<unknown> {
    return {
      head: await storage.ledger.head(ledgerOf(id)),
      blobs: (await collect(storage.blobs.list(recordsOf(id)))).length,
      entry: (await storage.kv.get(catalogKeyOf(id))) !== undefined,
      lease: (await storage.leaser.inspect(leaseOf(id))) !== undefined,
    };
  }
  const nothing = { head: 0, blobs: 0, entry: false, lease: false };

  it("removes its journal, its large records and its entry, and nobody else's", async () => {
    const other = await past(store, large);
    const id = await past(store, large, large);
    await store.delete(id, claim);
    expect(await remains(id)).toEqual(nothing);
    expect(codeOf(await failureOf(collect(store.read(id))))).toBe("session.unknown");
    expect(await store.list()).toMatchObject([{ id: other }]);
    expect(await collect(store.read(other))).toHaveLength(2);
  });

  it("finds absent fine", async () => {
    await store.delete(mintSessionId(), claim);
    const id = await past(store);
    await store.delete(id, claim);
    await store.delete(id, claim);
    expect(await remains(id)).toEqual(nothing);
  });

  it("is refused while the session lives, and changes nothing", async () => {
    const journal = await begin(store, large);
    expect(codeOf(await failureOf(store.delete(journal.sessionId, claim)))).toBe("lease.held");
    await journal.close();
    expect(await collect(store.read(journal.sessionId))).toHaveLength(2);
  });

  it("works on a journal nobody can read", async () => {
    const id = mintSessionId();
    await storage.ledger.append(ledgerOf(id), [Buffer.alloc(100)], { expectedHead: 0, epoch: 1 });
    await store.delete(id, claim);
    expect(await remains(id)).toEqual(nothing);
  });

  it("is never undone by a writer that lost its lease", async () => {
    let wake: () => void = () => undefined;
    const stopped = new Promise<void>((resolve) => (wake = resolve));
    let asleep: () => void = () => undefined;
    const sleeping = new Promise<void>((resolve) => (asleep = resolve));
    let sets = 0;
    const journal = await begin(
      around(async (operation, run) => {
        if (operation === "kv.set" && ++sets === 2) {
          asleep();
          await stopped;
        }
        return run();
      }),
    );
    const late = journal.append([turnStarted(1), { type: "turn-done", order: 2, changed: 0 }]);
    await sleeping;
    await journal.lease.release();
    await store.delete(journal.sessionId, claim);
    wake();
    await late;
    await journal.close();
    expect(await remains(journal.sessionId)).toEqual(nothing);
  });

  // How many calls a deletion makes is found out by one that succeeds; each of them is then made to fail, before and after.
  it.each(["before", "after"])("cut short %s any of its calls is finished by the next one", async (when) => {
    let calls = 0;
    const whole = await past(store, large, large);
    await around(async (_, run) => {
      calls += 1;
      return run();
    }).delete(whole, claim);
    expect(calls).toBeGreaterThan(8);

    const seen = new Set<string>();
    for (let at = 1; at <= calls; at++) {
      const id = await past(store, large, large);
      let call = 0;
      const failure = await failureOf(
        around(async (operation, run) => {
          if (++call !== at) return run();
          seen.add(operation);
          if (when === "after") await settleLease(operation, run);
          throw planned;
        }).delete(id, claim),
      );
      expect(failure).toBe(planned);
      const summaries = await store.list();
      const [summary] = summaries;
      // Untouched, or being deleted, or gone: never in between and out of sight.
      if (summary === undefined) expect(await remains(id)).toEqual(nothing);
      else expect(["interrupted", "deleting"]).toContain(summary.state);
      if (summary?.state === "deleting") {
        expect(summary).toMatchObject({ id, root: "/w", turns: 2 });
        const opened = codeOf(await failureOf(store.open(id, claim)));
        expect(["session.deleting", "session.unknown"]).toContain(opened);
      }
      await store.delete(id, claim);
      expect(await remains(id)).toEqual(nothing);
      expect(await store.list()).toEqual([]);
    }
    expect([...seen]).toEqual(
      expect.arrayContaining(["kv.get", "kv.set", "ledger.delete", "blobs.list", "blobs.delete", "kv.delete"]),
    );
  });

  /** A lease whose acquisition failed after it was granted frees itself with its process; here the test plays that. */
  async function settleLease(operation: string, run: () => Promise<unknown>): Promise<void> {
    const result = await run();
    if (operation === "leaser.acquire") await (result as { release(): Promise<void> }).release();
  }
});
