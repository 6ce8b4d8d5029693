import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { InvariantError, StorageError, mintSessionId } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import type { NewEvent } from "./events.js";
import { ledgerOf } from "./keys.js";
import { backends } from "./testing/backends.js";
import { interceptStorage } from "./testing/intercept-storage.js";
import type { AroundCall } from "./testing/intercept-storage.js";
import {
  begin,
  claim,
  closed,
  codeOf,
  collect,
  failureOf,
  idle,
  past,
  started,
  storeOn,
  turnDone,
  turnStarted,
} from "./testing/scenes.js";

const full = new StorageError("storage.failed", "planned", { operation: "planned" });

describe.each(backends)("a journal on storage %s", (_, makeBackend) => {
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

  it("returns the events as every reader sees them", async () => {
    const journal = await store.create(mintSessionId(), claim);
    const first = await journal.append([started(), turnStarted(1)]);
    const second = await journal.append([turnDone(1)]);
    expect([...first, ...second].map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(journal.head).toBe(3);
    await journal.close();
    expect(await collect(store.read(journal.sessionId))).toEqual([...first, ...second]);
    expect(await collect(store.read(journal.sessionId, { from: 2 }))).toEqual([first[1], ...second]);
    expect(await collect(store.read(journal.sessionId, { from: 4 }))).toEqual([]);
  });

  it("goes on where it ended when it is opened again", async () => {
    const id = await past(store, turnStarted(1), closed);
    const journal = await store.open(id, claim);
    expect(journal.head).toBe(3);
    expect(journal.lease.epoch).toBe(2);
    await journal.append([idle]);
    await journal.close();
    expect((await collect(store.read(id))).map(({ seq, type }) => [seq, type])).toEqual([
      [1, "session-started"],
      [2, "turn-started"],
      [3, "session-closed"],
      [4, "session-idle"],
    ]);
  });

  it("puts calls made at once in their order, without gaps", async () => {
    const journal = await begin(store);
    await Promise.all([1, 2, 3, 4, 5].map((number) => journal.append([turnStarted(number), turnDone(number)])));
    await journal.close();
    const events = await collect(store.read(journal.sessionId));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    const numbers = events.map((event) => (event.type === "turn-started" ? event.number : undefined));
    expect(numbers.filter((number) => number !== undefined)).toEqual([1, 2, 3, 4, 5]);
  });

  it("appends nothing for no events, and refuses more at once than can be journaled all or none", async () => {
    const journal = await begin(store);
    expect(await journal.append([])).toEqual([]);
    const many = Array.from({ length: 1_001 }, () => idle);
    expect(codeOf(await failureOf(journal.append(many)))).toBe("option.invalid");
    expect(await journal.append(many.slice(1))).toHaveLength(1_000);
    expect(journal.head).toBe(1_001);
    await journal.close();
  });

  it("starts with session-started and nothing else", async () => {
    const journal = await store.create(mintSessionId(), claim);
    expect(await failureOf(journal.append([idle, started()]))).toBeInstanceOf(InvariantError);
    await journal.append([started()]);
    await journal.close();
  });

  it("does not append an event that no reader could read, and goes on", async () => {
    const journal = await begin(store);
    const wrong = { type: "turn-done", order: 0.5, changed: 0 } as NewEvent;
    expect(await failureOf(journal.append([idle, wrong]))).toBeInstanceOf(InvariantError);
    expect(journal.head).toBe(1);
    await journal.append([idle]);
    await journal.close();
    expect(await collect(store.read(journal.sessionId))).toHaveLength(2);
  });

  describe("one writer", () => {
    it("refuses a second one, naming the holder", async () => {
      const journal = await store.create(mintSessionId(), { command: "the first" });
      await journal.append([started()]);
      for (const attempt of [
        storeOn(storage).open(journal.sessionId, claim),
        storeOn(storage).create(journal.sessionId, claim),
        storeOn(storage).delete(journal.sessionId, claim),
      ]) {
        expect(await failureOf(attempt)).toMatchObject({
          code: "lease.held",
          details: { holder: { sessionId: journal.sessionId, command: "the first", pid: process.pid, epoch: 1 } },
        });
      }
      await journal.close();
    });

    it("leaves the lease free when opening fails", async () => {
      const id = await past(store, idle);
      const failing = around((operation, run) => (operation === "ledger.fence" ? Promise.reject(full) : run()));
      expect(await failureOf(failing.open(id, claim))).toBe(full);
      await (await store.open(id, claim)).close();
    });

    it("whose work fails says so, also when the end fails after it", async () => {
      const journal = await store.create(mintSessionId(), claim);
      const whole = { ...journal.lease };
      Object.assign(journal.lease, { release: () => Promise.reject(full) });
      const work = async (): Promise<void> => {
        await using _held = journal;
        await Promise.reject(new Error("the work failed"));
      };
      await expect(work()).rejects.toThrow("the work failed");
      expect(await failureOf(journal.close())).toBe(full);
      Object.assign(journal.lease, whole);
    });

    it("refuses to begin a session that exists", async () => {
      const id = await past(store);
      expect(codeOf(await failureOf(store.create(id, claim)))).toBe("ledger.conflict");
      await (await store.open(id, claim)).close();
    });

    it("knows no session that never appended", async () => {
      const journal = await store.create(mintSessionId(), claim);
      await journal.close();
      expect(codeOf(await failureOf(store.open(journal.sessionId, claim)))).toBe("session.unknown");
      expect(codeOf(await failureOf(collect(store.read(journal.sessionId))))).toBe("session.unknown");
      expect(await store.list()).toEqual([]);
    });
  });

  describe("an abort", () => {
    it("before the call appends nothing", async () => {
      const journal = await begin(store);
      const reason = new Error("enough");
      expect(await failureOf(journal.append([idle], { signal: AbortSignal.abort(reason) }))).toBe(reason);
      expect(journal.head).toBe(1);
      await journal.close();
    });

    it("of a waiting call rejects at once, appends nothing, and lets the next one pass in order", async () => {
      let letGo: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => (letGo = resolve));
      let appends = 0;
      const slow = around(async (operation, run) => {
        // The second append is the one that takes its time.
        if (operation === "ledger.append" && ++appends === 2) await gate;
        return run();
      });
      const journal = await begin(slow);
      const working = journal.append([turnStarted(1)]);
      const controller = new AbortController();
      const waiting = failureOf(journal.append([turnStarted(2)], { signal: controller.signal }));
      const after = journal.append([turnStarted(3)]);
      const reason = new Error("enough");
      controller.abort(reason);
      expect(await waiting).toBe(reason);
      letGo();
      await Promise.all([working, after]);
      await journal.close();
      const events = await collect(store.read(journal.sessionId));
      expect(events.map((event) => (event.type === "turn-started" ? event.number : 0))).toEqual([0, 1, 3]);
    });

    it("that comes after the events were stored does not deny them", async () => {
      const controller = new AbortController();
      const late = around(async (operation, run) => {
        const result = await run();
        if (operation === "ledger.append" && controller.signal.aborted) throw controller.signal.reason;
        return result;
      });
      const journal = await begin(late);
      const appended = journal.append([idle]);
      controller.abort(new Error("too late"));
      expect(await appended).toHaveLength(1);
      expect(journal.head).toBe(2);
      await journal.close();
    });
  });

  describe("a failing ledger", () => {
    it("that stored nothing is an error, and the same events can be appended again", async () => {
      let fail = false;
      const journal = await begin(
        around((operation, run) => (fail && operation === "ledger.append" ? Promise.reject(full) : run())),
      );
      fail = true;
      expect(await failureOf(journal.append([idle]))).toBe(full);
      fail = false;
      expect(await journal.append([idle])).toMatchObject([{ seq: 2 }]);
      await journal.close();
      expect(await collect(store.read(journal.sessionId))).toHaveLength(2);
    });

    it.each(["storage.failed", "ledger.conflict"] as const)(
      "that stored everything and answered %s all the same is a success",
      async (code) => {
        let fail = false;
        const answer = new StorageError(code, "planned", { operation: "planned" });
        const journal = await begin(
          around(async (operation, run) => {
            const result = await run();
            if (fail && operation === "ledger.append") throw answer;
            return result;
          }),
        );
        fail = true;
        expect(await journal.append([turnStarted(1), idle])).toMatchObject([{ seq: 2 }, { seq: 3 }]);
        fail = false;
        expect(await journal.append([idle])).toMatchObject([{ seq: 4 }]);
        await journal.close();
        expect(await collect(store.read(journal.sessionId))).toHaveLength(4);
      },
    );

    it("that cannot be asked afterwards ends the journal, and opening again tells", async () => {
      let fail = false;
      const journal = await begin(
        around(async (operation, run) => {
          if (fail && operation === "ledger.read") throw full;
          const result = await run();
          if (fail && operation === "ledger.append") throw full;
          return result;
        }),
      );
      fail = true;
      const failure = await failureOf(journal.append([idle]));
      expect(failure).toMatchObject({ code: "journal.outcome_unknown", details: { seq: 2 } });
      fail = false;
      expect(await failureOf(journal.append([idle]))).toBe(failure);
      await journal.close();
      const again = await store.open(journal.sessionId, claim);
      expect(again.head).toBe(2);
      await again.close();
    });

    it("in which somebody else wrote ends the journal", async () => {
      const journal = await begin(store);
      const ledger = ledgerOf(journal.sessionId);
      await storage.ledger.append(ledger, [Buffer.from("theirs")], { expectedHead: 1, epoch: journal.lease.epoch });
      const failure = await failureOf(journal.append([idle]));
      expect(codeOf(failure)).toBe("ledger.conflict");
      await storage.ledger.delete(ledger);
      expect(await failureOf(journal.append([idle]))).toBe(failure);
      await journal.close();
    });
  });

  describe("a failing catalog", () => {
    it("fails no append and no close: the events are there and the listing tells", async () => {
      const journal = await begin(
        around((operation, run) => (operation === "kv.set" ? Promise.reject(full) : run())),
        turnStarted(1),
      );
      await journal.append([turnDone(1), closed]);
      await journal.close();
      expect(await store.list()).toMatchObject([{ id: journal.sessionId, turns: 1, state: "closed" }]);
      await (await store.open(journal.sessionId, claim)).close();
    });
  });

  describe("closing", () => {
    it("waits for appends made before it and refuses those made after it", async () => {
      const journal = await begin(store);
      const before = journal.append([idle]);
      const closing = journal.close();
      const after = failureOf(journal.append([idle]));
      expect(await before).toHaveLength(1);
      await closing;
      expect(codeOf(await after)).toBe("lease.lost");
      expect(await collect(store.read(journal.sessionId))).toHaveLength(2);
    });

    it("is done once however often it is called, also by await using", async () => {
      let releases = 0;
      const counting = around(async (operation, run) => {
        if (operation === "kv.set") releases += 1;
        return run();
      });
      const journal = await counting.create(mintSessionId(), claim);
      await journal.append([started()]);
      await journal.append([idle]);
      await Promise.all([journal.close(), journal.close(), journal[Symbol.asyncDispose]()]);
      await journal.close();
      // One entry at the first append, one at the close.
      expect(releases).toBe(2);
      await (await store.open(journal.sessionId, claim)).close();
    });
  });
});

describe("a writer whose lease expired (C087)", () => {
  it("appends nothing more once another took over, whichever of the two guards sees it first", async () => {
    let now = 0;
    const storage = createMemoryStorage({ leaseTtlMs: 1_000, clock: () => now });
    const store = storeOn(storage);
    const first = await begin(store, turnStarted(1));
    now = 2_000;
    const second = await storeOn(storage).open(first.sessionId, claim);
    expect(codeOf(await failureOf(first.append([idle])))).toBe("lease.lost");
    await second.append([turnDone(1)]);
    expect(codeOf(await failureOf(first.append([idle])))).toBe("lease.lost");
    await first.close();
    await second.close();
    expect((await collect(store.read(first.sessionId))).map(({ seq, type }) => [seq, type])).toEqual([
      [1, "session-started"],
      [2, "turn-started"],
      [3, "turn-done"],
    ]);
  });

  it("is fenced by the ledger when it does not notice, and never speaks for the session again", async () => {
    const storage = createMemoryStorage();
    const store = storeOn(storage);
    // A holder that was stopped in the middle of an append and wakes after the takeover.
    let wake: () => void = () => undefined;
    const stopped = new Promise<void>((resolve) => (wake = resolve));
    let asleep: () => void = () => undefined;
    const sleeping = new Promise<void>((resolve) => (asleep = resolve));
    let appends = 0;
    const first = await begin(
      storeOn(
        interceptStorage(storage, async (operation, run) => {
          if (operation === "ledger.append" && ++appends === 2) {
            asleep();
            await stopped;
          }
          return run();
        }),
      ),
    );
    const late = failureOf(first.append([turnStarted(1), turnDone(1)]));
    await sleeping;
    await first.lease.release();
    const second = await store.open(first.sessionId, claim);
    wake();
    const failure = await late;
    expect(codeOf(failure)).toBe("ledger.fenced");
    expect(await failureOf(first.append([idle]))).toBe(failure);
    await second.append([turnStarted(7), turnDone(7), closed]);
    await second.close();
    await first.close();
    expect(await store.list()).toMatchObject([{ turns: 1, state: "closed" }]);
    expect(await collect(store.read(first.sessionId))).toHaveLength(4);
  });
});
