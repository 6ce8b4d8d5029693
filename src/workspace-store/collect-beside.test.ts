/**
 * Collections and captures interleaved at every call on the storage (G2): whichever comes first, what a capture returned
 * and what was pinned is whole, and the capture is one that counted on garbage when it began.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mintSessionId, parseWorkspacePath } from "../core/index.js";
import type { SnapshotRef } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Blobs, Storage } from "../storage/index.js";
import type { WorkspaceStore } from "./contracts.js";
import { createWorkspaceStore } from "./store.js";
import { readTree, temporaryDirectory } from "./testing/tree-on-disk.js";

const claim = { sessionId: mintSessionId(), command: "test" };

/** The same storage, `before` run ahead of each call on its blobs. */
function interposed(storage: Storage, before: () => Promise<void>): Storage {
  const { blobs } = storage;
  const hooked: Blobs = {
    put: async (...args) => before().then(() => blobs.put(...args)),
    get: async (...args) => before().then(() => blobs.get(...args)),
    stat: async (...args) => before().then(() => blobs.stat(...args)),
    delete: async (...args) => before().then(() => blobs.delete(...args)),
    async *list(...args) {
      await before();
      yield* blobs.list(...args);
    },
  };
  return { ...storage, blobs: hooked };
}

let base: ReturnType<typeof temporaryDirectory>;
let root: string;
beforeEach(() => {
  base = temporaryDirectory();
  root = path.join(base.path, "tree");
  fs.mkdirSync(root);
  fs.writeFileSync(path.join(root, "a"), randomBytes(50_000));
  fs.writeFileSync(path.join(root, "b"), randomBytes(2_000));
});
afterEach(() => base.dispose());

const open = (storage: Storage): WorkspaceStore =>
  createWorkspaceStore(storage, { spoolDir: path.join(base.path, "spool"), now: () => Date.now() + 60_000 });
const collect = (store: WorkspaceStore) => store.collect({ claim, graceMs: 0, fill: 1 });

let restores = 0;
async function expectWhole(storage: Storage, ref: SnapshotRef, told: string): Promise<void> {
  const store = open(storage);
  expect((await store.verify()).damaged, told).toEqual([]);
  const dest = path.join(base.path, `out-${restores++}`);
  await store.materialize(await store.open(ref), dest);
  expect(readTree(dest), told).toEqual(readTree(root));
  await collect(store);
  expect((await store.verify()).damaged, told).toEqual([]);
  expect(await store.has(ref), told).toBe(true);
}

/** A store in which the tree is garbage beside something that stays, and the ref of the tree. */
async function withGarbage(): Promise<{ storage: Storage; ref: SnapshotRef }> {
  const storage = createMemoryStorage();
  const store = open(storage);
  const { ref } = await store.capture({ root, pin: { owner: "o", id: "1" } });
  await store.keep([{ path: parseWorkspacePath("b"), bytes: fs.readFileSync(path.join(root, "b")), mode: 0o644 }], {
    pin: { owner: "stays", id: "1" },
  });
  await store.unpin({ owner: "o" });
  return { storage, ref };
}

/** What relies on what is stored: in three ways. */
const reliers: readonly (readonly [string, (store: WorkspaceStore, ref: SnapshotRef) => Promise<void>])[] = [
  [
    "a capture that pins",
    async (store) => {
      await store.capture({ root, pin: { owner: "o", id: "2" } });
    },
  ],
  [
    "a capture, pinned afterwards",
    async (store) => {
      const { ref } = await store.capture({ root });
      await store.pin({ owner: "o", id: "2" }, [ref]);
    },
  ],
  [
    "kept files",
    async (store) => {
      const names = ["a", "b"] as const;
      await store.keep(
        names.map((name) => ({
          ...{ path: parseWorkspacePath(name), mode: 0o644, bytes: fs.readFileSync(path.join(root, name)) },
        })),
        { pin: { owner: "o", id: "2" } },
      );
    },
  ],
];

describe.each(reliers)("%s", (what, rely) => {
  const mayBeLate = what === "a capture, pinned afterwards";

  it("at any call of a collection leaves a whole tree", async () => {
    for (let at = 1, calls = Infinity; at <= calls; at++) {
      const { storage, ref } = await withGarbage();
      const relying = open(storage);
      // It knows the index as it was.
      await relying.has(ref);
      calls = 0;
      const collector = open(
        interposed(storage, async () => {
          if (++calls === at) await rely(relying, ref);
        }),
      );
      await collect(collector);
      if (calls >= at) await expectWhole(storage, ref, `at call ${at}`);
    }
  });

  it("with a collection at any call of it leaves a whole tree", async () => {
    for (let at = 1, calls = Infinity; at <= calls; at++) {
      const { storage, ref } = await withGarbage();
      const collector = open(storage);
      calls = 0;
      const relying = open(
        interposed(storage, async () => {
          if (++calls === at) await collect(collector);
        }),
      );
      const outcome = await rely(relying, ref).catch((error: unknown) => error);
      if (outcome === undefined) await expectWhole(storage, ref, `at call ${at}`);
      // What is captured without a pin is nobody's until it is pinned, and then it may be gone; this is said.
      else expect(outcome, `at call ${at}`).toMatchObject({ code: "snapshot.object_missing" });
      expect(outcome === undefined || mayBeLate, `at call ${at}`).toBe(true);
    }
  });
});

it("a tree is handed from one pin to another at any call of a collection, and stays", async () => {
  for (let at = 1, calls = Infinity; at <= calls; at++) {
    const storage = createMemoryStorage();
    const store = open(storage);
    // The new pin is listed before the old one, so that a listing can miss both.
    const { ref } = await store.capture({ root, pin: { owner: "z", id: "old" } });
    calls = 0;
    const collector = open(
      interposed(storage, async () => {
        if (++calls !== at) return;
        await store.pin({ owner: "a", id: "new" }, [ref]);
        await store.unpin({ owner: "z" });
      }),
    );
    await collect(collector);
    if (calls >= at) await expectWhole(storage, ref, `at call ${at}`);
  }
});

it("a tree that each mark's first listing of pins misses, handed over meanwhile, is in its second", async () => {
  const storage = createMemoryStorage();
  const store = open(storage);
  const { ref } = await store.capture({ root, pin: { owner: "o", id: "9" } });
  let owed = 1;
  let at = 9;
  const { blobs } = storage;
  const missing: Storage = {
    ...storage,
    blobs: {
      ...blobs,
      put: async (key, ...rest) => {
        // The second mark comes after this.
        if (key.startsWith("condemned/")) owed = 1;
        return blobs.put(key, ...rest);
      },
      async *list(prefix, options) {
        const names = [];
        for await (const info of blobs.list(prefix, options)) names.push(info);
        if (prefix === "roots/" && owed-- > 0) {
          await store.pin({ owner: "o", id: String(at - 1) }, [ref]);
          await store.unpin({ owner: "o", id: String(at--) });
        }
        // What was not there when it began is not seen, and what is gone by now neither.
        for (const info of names) if ((await blobs.stat(info.key)) !== undefined) yield info;
      },
    },
  };
  // Something to condemn, so that there is a second mark.
  await store.keep([{ path: parseWorkspacePath("c"), bytes: randomBytes(10_000), mode: 0o644 }]);
  const { freed } = await collect(open(missing));
  expect({ freed: freed.objects, at }).toEqual({ freed: 3, at: 7 });
  await expectWhole(storage, ref, "handed over twice");
});

it("pinning what is condemned saves it; pinning what is gone is refused", async () => {
  const { storage, ref } = await withGarbage();
  const clock = Date.now() + 60_000;
  const store = open(storage);
  await store.collect({ claim });
  await store.pin({ owner: "o", id: "2" }, [ref]);
  const later = createWorkspaceStore(storage, { now: () => clock + 25 * 60 * 60 * 1000 });
  await later.collect({ claim });
  await expectWhole(storage, ref, "condemned");
  await store.unpin({ owner: "o" });
  const { ref: again } = await store.capture({ root });
  expect(again).toBe(ref);
  await collect(open(storage));
  await expect(store.pin({ owner: "o", id: "3" }, [ref])).rejects.toMatchObject({ code: "snapshot.object_missing" });
});

it("a second collector is told who is at it, and one that lost its lease deletes nothing more", async () => {
  const { storage } = await withGarbage();
  const held = await storage.leaser.acquire("workspace-collection", claim);
  await expect(collect(open(storage))).rejects.toMatchObject({ code: "lease.held" });
  await held.release();

  const deleted: string[] = [];
  let lost = new AbortController();
  const losing: Storage = {
    ...storage,
    leaser: {
      ...storage.leaser,
      acquire: async (...args) => {
        const lease = await storage.leaser.acquire(...args);
        lost = new AbortController();
        const assertHeld = (): void => lost.signal.throwIfAborted();
        return { ...lease, lost: lost.signal, assertHeld, [Symbol.asyncDispose]: () => lease.release() };
      },
    },
    blobs: {
      ...storage.blobs,
      delete: async (key, options) => {
        deleted.push(key);
        lost.abort(new Error("the lease is lost"));
        await storage.blobs.delete(key, options);
      },
    },
  };
  await expect(collect(open(losing))).rejects.toThrow("the lease is lost");
  expect(deleted).toHaveLength(1);
  expect((await open(storage).verify()).damaged).toEqual([]);
});
