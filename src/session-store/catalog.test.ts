import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mintSessionId } from "../core/index.js";
import type { SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import { catalogKeyOf, catalogPrefix, ledgerOf } from "./keys.js";
import { inlineBytesMax } from "./out-of-line.js";
import { arbitraryHistory } from "./testing/arbitrary-events.js";
import { backends } from "./testing/backends.js";
import { interceptStorage } from "./testing/intercept-storage.js";
import {
  begin,
  checkpointed,
  claim,
  closed,
  codeOf,
  failureOf,
  idle,
  past,
  started,
  storeOn,
  turnDone,
  turnStarted,
} from "./testing/scenes.js";

describe.each(backends)("the catalog on storage %s", (_, makeBackend) => {
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

  const entries = async (): Promise<[string, string][]> =>
    (await storage.kv.list(catalogPrefix)).map(({ key, value }) => [key, Buffer.from(value).toString()]);
  const coveredBy = async (id: SessionId): Promise<unknown> =>
    (JSON.parse(new Map(await entries()).get(catalogKeyOf(id)) as string) as { seq: unknown }).seq;
  async function overwrite(id: SessionId, value: string): Promise<void> {
    const revision = (await storage.kv.get(catalogKeyOf(id)))?.revision ?? 0;
    await storage.kv.set(catalogKeyOf(id), Buffer.from(value), { revision });
  }
  async function wipe(): Promise<void> {
    for (const { key, revision } of await storage.kv.list(catalogPrefix)) await storage.kv.delete(key, { revision });
  }
  /** Whatever is done through it, nothing may be written. */
  const readOnly = (): SessionStore =>
    storeOn(
      interceptStorage(storage, (operation, run) => {
        const reads = ["ledger.read", "ledger.head", "ledger.list", "kv.get", "kv.list", "leaser.list", "blobs.get"];
        if (!reads.includes(operation)) throw new Error(`a listing called ${operation}`);
        return run();
      }),
    );

  describe("an entry", () => {
    it("is written at the first append, the end of a turn, a restore and the closing, not at every append", async () => {
      const journal = await store.create(mintSessionId(), claim);
      expect(await entries()).toEqual([]);
      await journal.append([started()]);
      expect(await coveredBy(journal.sessionId)).toBe(1);
      await journal.append([turnStarted(1)]);
      await journal.append([checkpointed(1)]);
      expect(await coveredBy(journal.sessionId)).toBe(1);
      await journal.append([turnDone(1)]);
      expect(await coveredBy(journal.sessionId)).toBe(4);
      await journal.append([idle]);
      expect(await coveredBy(journal.sessionId)).toBe(4);
      await journal.close();
      expect(await coveredBy(journal.sessionId)).toBe(5);
    });

    it("is never put back by a writer that knows less", async () => {
      const journal = await begin(store);
      const later = JSON.parse((await entries())[0]?.[1] as string) as object;
      await overwrite(journal.sessionId, JSON.stringify({ ...later, seq: 1_000 }));
      await journal.append([turnStarted(1), turnDone(1)]);
      await journal.close();
      expect(await coveredBy(journal.sessionId)).toBe(1_000);
    });

    it("is written all the same when somebody else was faster", async () => {
      let sets = 0;
      const journal = await begin(
        storeOn(
          interceptStorage(storage, async (operation, run) => {
            // The first one makes the entry; the next two attempts find another revision than they read.
            if (operation === "kv.set" && [2, 3].includes(++sets)) {
              const [entry] = await storage.kv.list(catalogPrefix);
              await storage.kv.set(entry?.key ?? "", entry?.value ?? Buffer.alloc(0), {
                revision: entry?.revision ?? 0,
              });
            }
            return run();
          }),
        ),
      );
      await journal.append([turnStarted(1), turnDone(1)]);
      expect(await coveredBy(journal.sessionId)).toBe(3);
      expect(sets).toBe(4);
      await journal.close();
    });
  });

  describe("listing", () => {
    it("tells what each session did and how it is, newest start first, and writes nothing", async () => {
      const finished = await past(store, turnStarted(1), checkpointed(1), turnDone(1), closed);
      const interrupted = await past(store, turnStarted(1));
      const live = await begin(store, turnStarted(1));
      await live.append([checkpointed(2)]);
      expect(await readOnly().list()).toMatchObject([
        { id: live.sessionId, state: "live", turns: 1, checkpoints: 1, history: "whole" },
        { id: interrupted, state: "interrupted", turns: 1, checkpoints: 0 },
        { id: finished, state: "closed", turns: 1, checkpoints: 1, root: "/w", command: "a test" },
      ]);
      await live.close();
      expect((await readOnly().list())[0]).toMatchObject({ id: live.sessionId, state: "interrupted" });
    });

    it("folds what an entry does not cover yet", async () => {
      const journal = await begin(store);
      await journal.append([turnStarted(1)]);
      await journal.append([checkpointed(1)]);
      expect(await coveredBy(journal.sessionId)).toBe(1);
      const [summary] = await readOnly().list();
      expect(summary).toMatchObject({ turns: 1, checkpoints: 1 });
      expect((summary?.lastAt.getTime() ?? 0) - (summary?.startedAt.getTime() ?? 0)).toBe(2_000);
      await journal.close();
    });

    it("shows the sessions of one root when asked", async () => {
      const here = await past(store);
      const journal = await store.create(mintSessionId(), claim);
      await journal.append([started("/elsewhere")]);
      await journal.close();
      await wipeOne(journal.sessionId);
      expect((await readOnly().list({ root: "/w" })).map(({ id }) => id)).toEqual([here]);
      expect((await readOnly().list({ root: "/elsewhere" })).map(({ id }) => id)).toEqual([journal.sessionId]);
      expect(await readOnly().list({ root: "/nowhere" })).toEqual([]);
    });
    async function wipeOne(id: SessionId): Promise<void> {
      const revision = (await storage.kv.get(catalogKeyOf(id)))?.revision ?? 0;
      await storage.kv.delete(catalogKeyOf(id), { revision });
    }

    it.each([
      ["missing", undefined],
      ["no JSON", "\0\0\0"],
      ["of another shape", '{"v":0,"seq":2}'],
      ["of a newer version", '{"v":7,"seq":2}'],
      ["ahead of its journal", "ahead"],
    ])("does without an entry that is %s", async (_, value) => {
      const id = await past(store, turnStarted(1), turnDone(1), closed);
      const before = await store.list();
      if (value === undefined) await wipe();
      else if (value !== "ahead") await overwrite(id, value);
      else {
        const entry = JSON.parse((await entries())[0]?.[1] as string) as object;
        await overwrite(id, JSON.stringify({ ...entry, seq: 99, turns: 50 }));
      }
      expect(await readOnly().list()).toEqual(before);
    });

    it("U8: names the newest tree and the one gone on from; an entry written without them counts as absent", async () => {
      const id = await past(store, turnStarted(1), checkpointed(7), turnDone(1));
      const [summary] = await store.list();
      expect(summary).toMatchObject({ id, checkpoints: 1, lastCheckpoint: { number: 7 } });
      expect(summary?.currentWorkspace).toBe(summary?.lastCheckpoint?.ref);
      const [[, text] = ["", "{}"]] = await entries();
      const {
        lastCheckpoint: _last,
        currentWorkspace: _current,
        ...older
      } = JSON.parse(text) as Record<string, unknown>;
      await overwrite(id, JSON.stringify(older));
      expect(await readOnly().list()).toEqual([summary]);
    });

    it("leaves out entries without a journal and keys that are not its own", async () => {
      const id = await past(store);
      await storage.ledger.delete(ledgerOf(id));
      await storage.ledger.append("sessions/not-an-id", [Buffer.from("x")], { expectedHead: 0, epoch: 1 });
      await storage.kv.set("catalog/not-an-id", Buffer.from("x"), { revision: 0 });
      expect(await readOnly().list()).toEqual([]);
    });

    it("shows a session with unreadable records as what stands before them, and says so", async () => {
      const good = await past(store, closed);
      const broken = await past(store, turnStarted(1));
      const head = await storage.ledger.head(ledgerOf(broken));
      await storage.ledger.append(ledgerOf(broken), [Buffer.alloc(200)], { expectedHead: head, epoch: 1 });
      const newer = await past(store, turnStarted(1));
      await storage.ledger.append(ledgerOf(newer), [Buffer.from('{"v":9}')], { expectedHead: head, epoch: 1 });
      const nameless = mintSessionId();
      await storage.ledger.append(ledgerOf(nameless), [Buffer.alloc(200)], { expectedHead: 0, epoch: 1 });
      expect(await readOnly().list()).toMatchObject([
        { id: newer, turns: 1, history: "newer" },
        { id: broken, turns: 1, history: "damaged" },
        { id: good, history: "whole" },
        { id: nameless, turns: 0, history: "damaged", root: undefined },
      ]);
    });

    it("does not call a session that begins meanwhile interrupted", async () => {
      const id = mintSessionId();
      let began: Awaited<ReturnType<typeof begin>> | undefined;
      const racing = interceptStorage(storage, async (operation, run) => {
        if (operation === "kv.list" && began === undefined) {
          began = await store.create(id, claim);
          await began.append([started()]);
        }
        return run();
      });
      expect(await storeOn(racing).list()).toMatchObject([{ id, state: "live" }]);
      await began?.close();
    });

    it("leaves out a session that is deleted while it is folded", async () => {
      const kept = await past(store);
      const id = await past(store, turnStarted(1));
      await wipeOne(id);
      const racing = interceptStorage(storage, async (operation, run) => {
        if (operation === "ledger.read") await storage.ledger.delete(ledgerOf(id));
        return run();
      });
      expect(await storeOn(racing).list()).toMatchObject([{ id: kept }]);
    });

    it("ends with the reason of an abort", async () => {
      await past(store);
      const reason = new Error("enough");
      expect(await failureOf(store.list({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    });
  });

  describe("finding", () => {
    it("takes the start of an id, in either case", async () => {
      const id = await past(store, turnStarted(1));
      expect(await store.find(id)).toMatchObject({ id, turns: 1 });
      expect(await store.find(id.slice(0, 8).toUpperCase())).toMatchObject({ id });
    });

    it("names the candidates when several fit", async () => {
      const ids = ["aaaa0000-0000-4000-8000-000000000001", "aaaa0000-0000-4000-8000-000000000002"] as SessionId[];
      for (const id of ids) {
        const journal = await store.create(id, claim);
        await journal.append([started()]);
        await journal.close();
      }
      const failure = await failureOf(store.find("aaaa"));
      expect(failure).toMatchObject({ code: "session.ambiguous" });
      expect([...(failure as { details: { candidates: string[] } }).details.candidates].sort()).toEqual(ids);
      expect(await store.find(ids[1] as string)).toMatchObject({ id: ids[1] });
    });

    it.each(["", "aaa", "zzzz", "../../..", "aaaa ", "aaaaaaaa"])("knows no session %j", async (given) => {
      await past(store);
      expect(await failureOf(store.find(given))).toMatchObject({ code: "session.unknown", details: { given } });
    });
  });

  describe("rebuilding", () => {
    it("makes the entries that were kept, from the journals alone", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(arbitraryHistory, { maxLength: 3 }), async (histories) => {
          for (const history of histories) {
            const journal = await store.create(mintSessionId(), claim);
            for (const event of history) await journal.append([event]);
            await journal.close();
          }
          const kept = await entries();
          await wipe();
          await store.rebuildCatalog();
          expect(await entries()).toEqual(kept);
        }),
        { numRuns: 8 },
      );
    });

    it("mends wrong entries, drops those without a journal, and keeps deletions that were begun", async () => {
      const wrong = await past(store, turnStarted(1), closed);
      const gone = await past(store);
      const going = await past(store, turnStarted(1));
      const before = new Map(await entries());
      await overwrite(wrong, '{"v":0,"seq":2}');
      await storage.ledger.delete(ledgerOf(gone));
      const stop = interceptStorage(storage, (operation, run) =>
        operation === "ledger.delete" ? Promise.reject(new Error("planned")) : run(),
      );
      await failureOf(storeOn(stop).delete(going, claim));
      await store.rebuildCatalog();
      const after = new Map(await entries());
      expect([...after.keys()].sort()).toEqual([catalogKeyOf(wrong), catalogKeyOf(going)].sort());
      expect(after.get(catalogKeyOf(wrong))).toBe(before.get(catalogKeyOf(wrong)));
      expect(await store.find(going)).toMatchObject({ state: "deleting", turns: 1 });
    });

    it("takes no newer entry back from a live writer", async () => {
      const journal = await begin(store, turnStarted(1));
      let raced = false;
      const racing = interceptStorage(storage, async (operation, run) => {
        if (operation === "kv.set" && !raced) {
          raced = true;
          await journal.append([turnDone(1)]);
        }
        return run();
      });
      await storeOn(racing).rebuildCatalog();
      expect(raced).toBe(true);
      expect(await coveredBy(journal.sessionId)).toBe(3);
      await journal.close();
    });

    it("finds large records that have no journal, unless their writer lives, so that they can be deleted", async () => {
      const failing = interceptStorage(storage, (operation, run) =>
        operation === "ledger.append" ? Promise.reject(new Error("planned")) : run(),
      );
      const journal = await storeOn(failing).create(mintSessionId(), claim);
      const large = { ...started(), command: "x".repeat(inlineBytesMax) } as ReturnType<typeof started>;
      await failureOf(journal.append([large]));
      await store.rebuildCatalog();
      expect(await entries()).toEqual([]);
      await journal.close();
      await store.rebuildCatalog();
      expect(await store.list()).toMatchObject([{ id: journal.sessionId, state: "deleting" }]);
      expect(codeOf(await failureOf(store.create(journal.sessionId, claim)))).toBe("session.deleting");
      await store.delete(journal.sessionId, claim);
      await store.rebuildCatalog();
      expect(await store.list()).toEqual([]);
    });

    it("keeps what an entry knows of a journal that is unreadable from its first record on", async () => {
      const id = await past(store, turnStarted(1));
      await storage.ledger.delete(ledgerOf(id));
      await storage.ledger.append(ledgerOf(id), [Buffer.alloc(9), Buffer.alloc(9), Buffer.alloc(9)], {
        expectedHead: 0,
        epoch: 1,
      });
      await store.rebuildCatalog();
      expect(await store.list()).toMatchObject([{ id, root: "/w", turns: 1, history: "damaged" }]);
    });
  });
});
