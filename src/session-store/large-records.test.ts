import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StorageError } from "../core/index.js";
import type { SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionStore } from "./contracts.js";
import type { NewEvent } from "./events.js";
import { ledgerOf, recordsOf } from "./keys.js";
import { inlineBytesMax, partBytesMax } from "./out-of-line.js";
import { backends } from "./testing/backends.js";
import { interceptStorage } from "./testing/intercept-storage.js";
import { begin, claim, collect, failureOf, idle, past, readAll, storeOn, turnStarted } from "./testing/scenes.js";

const large = turnStarted(1, "x".repeat(inlineBytesMax));

describe.each(backends)("large records on storage %s", (_, makeBackend) => {
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

  const blobsOf = async (id: SessionId) => collect(storage.blobs.list(recordsOf(id)));
  const bodyOf = async (id: SessionId, seq: number) => {
    const records = await collect(storage.ledger.read(ledgerOf(id)));
    return Buffer.from((records[seq - 1] as { body: Uint8Array }).body);
  };

  it("are read as if they were small", async () => {
    const journal = await begin(store);
    const appended = await journal.append([idle, large, idle]);
    await journal.close();
    expect((await collect(store.read(journal.sessionId))).slice(1)).toEqual(appended);
    expect(await blobsOf(journal.sessionId)).toHaveLength(1);
    expect((await bodyOf(journal.sessionId, 3)).length).toBeLessThan(1_000);
  });

  it("begin one byte above the limit", async () => {
    const journal = await begin(store, turnStarted(1, ""));
    const empty = (await bodyOf(journal.sessionId, 2)).length;
    await journal.append([turnStarted(1, "x".repeat(inlineBytesMax - empty))]);
    expect(await blobsOf(journal.sessionId)).toHaveLength(0);
    expect(await bodyOf(journal.sessionId, 3)).toHaveLength(inlineBytesMax);
    await journal.append([turnStarted(1, "x".repeat(inlineBytesMax - empty + 1))]);
    expect(await blobsOf(journal.sessionId)).toMatchObject([{ size: inlineBytesMax + 1 }]);
    await journal.close();
  });

  it("go in parts when one blob would be large itself", async () => {
    const huge = { ...turnStarted(1), input: "y".repeat(partBytesMax + 1_000) } as NewEvent;
    const id = await past(store, huge, idle);
    expect((await blobsOf(id)).map(({ size }) => size)).toEqual([partBytesMax, expect.any(Number)]);
    expect((await collect(store.read(id, { from: 2 })))[0]).toMatchObject(huge);
  });

  it("are durable before the record that names them", async () => {
    const operations: string[] = [];
    const watched = interceptStorage(storage, async (operation, run) => {
      const result = await run();
      operations.push(operation);
      return result;
    });
    const journal = await begin(storeOn(watched));
    operations.length = 0;
    await journal.append([large, large]);
    await journal.close();
    expect(operations.filter((operation) => operation !== "kv.get")).toEqual([
      ...["blobs.put", "blobs.put", "ledger.append", "kv.set"],
    ]);
  });

  it("that could not be stored leave no record, and the journal goes on", async () => {
    const full = new StorageError("storage.full", "planned", { path: "planned" });
    const failing = interceptStorage(storage, (operation, run) =>
      operation === "blobs.put" ? Promise.reject(full) : run(),
    );
    const journal = await begin(storeOn(failing));
    expect(await failureOf(journal.append([idle, large]))).toBe(full);
    expect(await journal.append([idle])).toMatchObject([{ seq: 2 }]);
    await journal.close();
    expect(await collect(store.read(journal.sessionId))).toHaveLength(2);
  });

  describe("that are not what was written", () => {
    const tampered: [string, (key: string, id: SessionId) => Promise<void>][] = [
      ["missing", (key) => storage.blobs.delete(key)],
      ["empty", (key) => replace(key, () => Buffer.alloc(0))],
      ["cut", (key) => replace(key, (bytes) => bytes.subarray(0, -1))],
      ["longer", (key) => replace(key, (bytes) => Buffer.concat([bytes, Buffer.from(" ")]))],
      ["of another byte", (key) => replace(key, (bytes) => Buffer.from(bytes.toString("latin1").replace("x", "y")))],
      ["all zero", (key) => replace(key, (bytes) => Buffer.alloc(bytes.length))],
    ];
    const replace = async (key: string, change: (bytes: Buffer) => Buffer) => {
      const bytes = Buffer.from(await storage.blobs.get(key));
      await storage.blobs.delete(key);
      await storage.blobs.put(key, [change(bytes)]);
    };

    it.each(tampered)("are damage when %s: what stands before is read", async (_, tamper) => {
      const id = await past(store, idle, large, idle);
      const [blob] = await blobsOf(id);
      await tamper((blob as { key: string }).key, id);
      const { events, error } = await readAll(store, id);
      expect(events.map(({ seq }) => seq)).toEqual([1, 2]);
      const damage = { code: "journal.damaged", details: { sessionId: id, seq: 3, readable: 2 } };
      expect(error).toMatchObject(damage);
      expect(await failureOf(store.open(id, claim))).toMatchObject(damage);
    });

    it("are damage when a stub names another record's blob", async () => {
      const id = await past(store, large, large);
      const bodies = (await collect(storage.ledger.read(ledgerOf(id)))).map(({ body }) => Buffer.from(body).toString());
      const [first, second] = await blobsOf(id);
      const name = (blob: unknown) => (blob as { key: string }).key.replace(/\.0$/, "");
      const swapped = bodies.map((body, index) =>
        index === 1 ? body.replace(`"blob":"${name(first)}"`, `"blob":"${name(second)}"`) : body,
      );
      // Whichever of the two sorts first, exactly one direction changes the stub.
      if (swapped[1] === bodies[1]) swapped[1] = (bodies[1] as string).replace(name(second), name(first));
      expect(swapped[1]).not.toBe(bodies[1]);
      await storage.ledger.delete(ledgerOf(id));
      await storage.ledger.append(
        ledgerOf(id),
        swapped.map((body) => Buffer.from(body)),
        { expectedHead: 0, epoch: 1 },
      );
      expect((await readAll(store, id)).error).toMatchObject({ code: "journal.damaged", details: { seq: 2 } });
    });

    it("are no damage when the storage merely fails", async () => {
      const id = await past(store, large);
      const failed = new StorageError("storage.failed", "planned", { operation: "planned" });
      const failing = interceptStorage(storage, (operation, run) =>
        operation === "blobs.get" ? Promise.reject(failed) : run(),
      );
      expect((await readAll(storeOn(failing), id)).error).toBe(failed);
    });
  });
});
