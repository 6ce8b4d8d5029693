import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isLooprigError, mintSessionId, WorkspaceRootBusyError } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { createMemoryStorage } from "../storage/index.js";
import type { Lease, Leaser } from "../storage/index.js";
import { canonicalPath } from "./canonical-path.js";
import { acquireRootLease, commitLeaseName, rootKey, rootLeaseName } from "./root-lease.js";

let dir: string;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const at = (...names: string[]): CanonicalRoot => canonicalPath(path.join(dir, ...names));
const claim = () => ({ sessionId: mintSessionId(), command: "looprig exec -- make" });

describe("names of leases", () => {
  test("are made of the sha256 of the canonical root", () => {
    const root = "/srv/tree" as CanonicalRoot;
    const key = createHash("sha256").update(root).digest("hex");
    expect(rootKey(root)).toBe(key);
    expect(rootLeaseName(root)).toBe(`workspace-roots/${key}`);
    expect(commitLeaseName(root)).toBe(`workspace-commits/${key}`);
  });

  test("are one for all spellings of a root", () => {
    fs.mkdirSync(path.join(dir, "real"));
    fs.symlinkSync("real", path.join(dir, "link"));
    expect(rootLeaseName(at("link/x"))).toBe(rootLeaseName(at("real/./x/")));
  });
});

describe("a root that is held", () => {
  test.each([
    ["same", ["a"], ["a"]],
    ["inside", ["a"], ["a", "b", "c"]],
    ["contains", ["a", "b", "c"], ["a"]],
  ] as const)("is busy for the one that is the %s, and names the holder", async (relation, heldAt, oursAt) => {
    const { leaser } = createMemoryStorage();
    const holder = claim();
    const held = await acquireRootLease(leaser, at(...heldAt), holder);
    const ours = at(...oursAt);
    const error: unknown = await acquireRootLease(leaser, ours, claim()).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(WorkspaceRootBusyError);
    expect(error).toMatchObject({
      code: "workspace_root.busy",
      retryable: true,
      details: { root: ours, relation, holder: { ...holder, pid: process.pid, epoch: 1 } },
    });
    expect((error as Error).message).toContain(holder.sessionId);
    // What we took in between was given back, and nothing of the holder's was touched.
    expect((await leaser.list("workspace-roots/")).map(({ name }) => name)).toEqual([rootLeaseName(at(...heldAt))]);
    held.assertHeld();
    await held.release();
    await (await acquireRootLease(leaser, ours, claim())).release();
  });

  test.each([
    ["beside it", ["a", "b"], ["a", "c"]],
    ["with a longer name", ["a"], ["ab"]],
  ])("does not keep one %s from being taken", async (_, heldAt, oursAt) => {
    const { leaser } = createMemoryStorage();
    await acquireRootLease(leaser, at(...heldAt), claim());
    (await acquireRootLease(leaser, at(...oursAt), claim())).assertHeld();
  });

  test("is busy inside and around the root of the file system too", async () => {
    const { leaser } = createMemoryStorage();
    const held = await acquireRootLease(leaser, "/" as CanonicalRoot, claim());
    await expect(acquireRootLease(leaser, at("a"), claim())).rejects.toMatchObject({ details: { relation: "inside" } });
    await held.release();
    await acquireRootLease(leaser, at("a"), claim());
    await expect(acquireRootLease(leaser, "/" as CanonicalRoot, claim())).rejects.toMatchObject({
      details: { relation: "contains" },
    });
  });
});

describe("when the look at other roots does not succeed", () => {
  const failing = (list: Leaser["list"]): { leaser: Leaser; storage: ReturnType<typeof createMemoryStorage> } => {
    const storage = createMemoryStorage();
    const { leaser } = storage;
    return {
      storage,
      leaser: { acquire: leaser.acquire.bind(leaser), inspect: leaser.inspect.bind(leaser), list },
    };
  };

  test("our own lease is given back and the error is the look's", async () => {
    const broken = new Error("the store is gone");
    const { leaser, storage } = failing(() => Promise.reject(broken));
    await expect(acquireRootLease(leaser, at("a"), claim())).rejects.toBe(broken);
    expect(await storage.leaser.list("")).toEqual([]);
  });

  test("an abort leaves nothing held", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const { leaser, storage } = failing((prefix, options) => {
      controller.abort(reason);
      return storage.leaser.list(prefix, options);
    });
    await expect(acquireRootLease(leaser, at("a"), claim(), { signal: controller.signal })).rejects.toBe(reason);
    expect(await storage.leaser.list("")).toEqual([]);
  });

  test("a lease that was lost meanwhile is not handed out", async () => {
    const { leaser, storage } = failing(async () => {
      await storage.close();
      return [];
    });
    const error: unknown = await acquireRootLease(leaser, at("a"), claim()).catch((error: unknown) => error);
    expect(isLooprigError(error, "lease.lost", "storage.closed")).toBe(true);
  });
});

test("of openers of nested roots that race, never two succeed, whatever the interleaving", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.constantFrom("a", "a/b", "a/b/c", "a/d", "e"), { minLength: 2, maxLength: 5 }),
      async (s, names) => {
        const { leaser } = createMemoryStorage();
        // Each step of the leaser happens at one moment and answers at a later one.
        const between = async <T>(step: () => Promise<T>): Promise<T> => {
          await s.schedule(Promise.resolve(), "before a step");
          const result = await step();
          await s.schedule(Promise.resolve(), "after a step");
          return result;
        };
        const slow: Leaser = {
          acquire: (...args) => between(() => leaser.acquire(...args)),
          inspect: (...args) => between(() => leaser.inspect(...args)),
          list: (...args) => between(() => leaser.list(...args)),
        };
        const roots = names.map((name) => `/tree/${name}` as CanonicalRoot);
        const outcomes = roots.map((root) =>
          acquireRootLease(slow, root, claim()).then(
            (lease): { root: string; lease: Lease | undefined } => ({ root, lease }),
            (error: unknown) => {
              if (!isLooprigError(error, "workspace_root.busy")) throw error;
              return { root, lease: undefined };
            },
          ),
        );
        const held = (await s.waitFor(Promise.all(outcomes)))
          .filter(({ lease }) => lease !== undefined)
          .map(({ root }) => root);
        for (const [i, one] of held.entries()) {
          for (const other of held.slice(i + 1)) {
            expect(`${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)).toBe(false);
          }
        }
        // Nobody else's lease stays behind.
        expect((await leaser.list("")).map(({ subject }) => subject).sort()).toEqual([...held].sort());
      },
    ),
    { numRuns: 300 },
  );
});
