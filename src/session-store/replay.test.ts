import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StorageError, mintSessionId } from "../core/index.js";
import type { SessionId } from "../core/index.js";
import { ledgerDamaged } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import { ledgerOf } from "./keys.js";
import { arbitraryHistory } from "./testing/arbitrary-events.js";
import { backends } from "./testing/backends.js";
import { interceptStorage, readingThrough } from "./testing/intercept-storage.js";
import {
  begin,
  claim,
  codeOf,
  collect,
  failureOf,
  idle,
  past,
  readAll,
  storeOn,
  turnDone,
  turnStarted,
} from "./testing/scenes.js";

describe.each(backends)("reading a session on storage %s", (_, makeBackend) => {
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

  /** The session once more, its record `seq` replaced, as if a disk or another release had written it. */
  async function rewrite(id: SessionId, seq: number, body: string): Promise<void> {
    const records = await collect(storage.ledger.read(ledgerOf(id)));
    const bodies = records.map((record) => (record.seq === seq ? Buffer.from(body) : record.body));
    await storage.ledger.delete(ledgerOf(id));
    await storage.ledger.append(ledgerOf(id), bodies, { expectedHead: 0, epoch: 1 });
  }

  it("gives back any history, from any point", async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryHistory, fc.integer({ min: 1, max: 15 }), async (history, from) => {
        const journal = await store.create(mintSessionId(), claim);
        const appended = await journal.append(history);
        await journal.close();
        expect(await collect(store.read(journal.sessionId))).toEqual(appended);
        expect(await collect(store.read(journal.sessionId, { from }))).toEqual(appended.slice(from - 1));
      }),
      { numRuns: 25 },
    );
  });

  it("takes no lease and works beside the writer", async () => {
    const journal = await begin(store, turnStarted(1));
    const events = await collect(storeOn(storage).read(journal.sessionId));
    expect(events).toHaveLength(2);
    await journal.append([turnDone(1)]);
    await journal.close();
  });

  it("knows no session that is not there", async () => {
    expect(codeOf(await failureOf(collect(store.read(mintSessionId()))))).toBe("session.unknown");
  });

  it.each([0, -1, 1.5, Number.NaN])("refuses to begin at record %s", async (from) => {
    const id = await past(store);
    expect(codeOf(await failureOf(collect(store.read(id, { from }))))).toBe("option.invalid");
  });

  it("ends with the reason of an abort between two records", async () => {
    const id = await past(store, idle, idle);
    const controller = new AbortController();
    const reason = new Error("enough");
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { seq } of store.read(id, { signal: controller.signal })) {
        seen.push(seq);
        controller.abort(reason);
      }
    })();
    expect(await failureOf(reading)).toBe(reason);
    expect(seen).toEqual([1]);
  });

  it.each([
    ["no JSON", "\0".repeat(300)],
    ["JSON that is no record", '{"v":0,"type":"turn-started"}'],
  ])("yields everything before a record that is %s, then says which one is damaged", async (_, body) => {
    const id = await past(store, turnStarted(1), turnDone(1), turnStarted(2), turnDone(2));
    await rewrite(id, 4, body);
    const { events, error } = await readAll(store, id);
    expect(events.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(error).toMatchObject({ code: "journal.damaged", details: { sessionId: id, seq: 4, readable: 3 } });
    // Both views come from the same parse (C084): who writes is told the same as who reads.
    expect(await failureOf(store.open(id, claim))).toMatchObject({ code: "journal.damaged", details: { seq: 4 } });
    expect(codeOf(await failureOf(collect(store.read(id, { from: 4 }))))).toBe("journal.damaged");
    expect(await collect(store.read(id, { from: 5 }))).toHaveLength(1);
  });

  it("passes on damage that the ledger found", async () => {
    const id = await past(store, idle, idle);
    const cause = ledgerDamaged(ledgerOf(id), 3);
    const damaged = readingThrough(storage, async function* (records) {
      for await (const record of records) {
        if (record.seq === 3) throw cause;
        yield record;
      }
    });
    const { events, error } = await readAll(storeOn(damaged), id);
    expect(events).toHaveLength(2);
    expect(error).toMatchObject({ code: "journal.damaged", details: { seq: 3, readable: 2 }, cause });
  });

  it("passes on a failing storage as what it is", async () => {
    const id = await past(store, idle);
    const failure = new StorageError("storage.failed", "planned", { operation: "planned" });
    const failing = interceptStorage(storage, (operation, run) =>
      operation === "ledger.read" ? Promise.reject(failure) : run(),
    );
    expect((await readAll(storeOn(failing), id)).error).toBe(failure);
  });

  it("names a gap instead of closing over it", async () => {
    const id = await past(store, idle, idle, idle);
    const gapped = readingThrough(storage, async function* (records) {
      for await (const record of records) if (record.seq !== 3) yield record;
    });
    const { events, error } = await readAll(storeOn(gapped), id);
    expect(events).toHaveLength(2);
    expect(error).toMatchObject({ code: "journal.damaged", details: { seq: 3 } });
  });

  it("never takes a session that is deleted meanwhile for a shorter one", async () => {
    const id = await past(store, ...Array.from({ length: 99 }, () => idle));
    const seen: number[] = [];
    const failure = await failureOf(
      (async () => {
        for await (const { seq } of store.read(id)) {
          seen.push(seq);
          if (seq === 1) await store.delete(id, claim);
        }
      })(),
    );
    // How long a deleted ledger can still be read is left to the storage; memory reads on to the end.
    if (failure === undefined) expect(seen).toHaveLength(100);
    else expect(codeOf(failure)).toBe("session.unknown");
    expect(await store.list()).toEqual([]);
  });

  it("takes no first record but session-started", async () => {
    const id = await past(store, idle);
    const second = (await collect(storage.ledger.read(ledgerOf(id))))[1] as { body: Uint8Array };
    await rewrite(id, 1, Buffer.from(second.body).toString());
    const { events, error } = await readAll(store, id);
    expect(events).toEqual([]);
    expect(error).toMatchObject({ code: "journal.damaged", details: { seq: 1, readable: 0 } });
  });

  it.each([
    ["version", '{"v":1,"whatever":true}'],
    ["type", `{"v":0,"id":"e","at":"2026-07-30T00:00:00.000Z","type":"session-teleported"}`],
  ])("yields everything before a record of a newer %s, says so, and lets nobody write behind it", async (_, body) => {
    const id = await past(store, turnStarted(1), turnDone(1));
    await rewrite(id, 3, body);
    const { events, error } = await readAll(store, id);
    expect(events).toHaveLength(2);
    expect(error).toMatchObject({ code: "journal.newer", details: { sessionId: id, seq: 3, readable: 2 } });
    expect(codeOf(await failureOf(store.open(id, claim)))).toBe("journal.newer");
    expect(await collect(storage.ledger.read(ledgerOf(id)))).toHaveLength(3);
  });
});
