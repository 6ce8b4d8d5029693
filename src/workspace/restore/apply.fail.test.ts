/** A failure of any single effect leaves the tree as it was, or a plan that a later settling ends. */
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { isLooprigError } from "../../core/index.js";
import type { FileSystem, FsPath } from "../../core/index.js";
import { after, before, linked, smallAfter, smallBefore, smallLinked } from "./testing/scenario.js";
import { failAt, operationsBetween, Scene, unsyncedFileSystem } from "./testing/scene.js";
import { touchOf } from "./testing/trees.js";
import type { Nodes } from "./testing/trees.js";

const errnos = ["ENOSPC", "EIO", "EACCES", "EROFS"] as const;
const operations = await operationsBetween(before, after);
const smallOperations = await operationsBetween(smallBefore, smallAfter);

interface Attempt {
  readonly scene: Scene;
  readonly old: Nodes;
  readonly wanted: Nodes;
  readonly untouched: readonly string[];
}
const attempt = (): Attempt => ({
  scene: new Scene(before, after, operations, linked),
  old: before,
  wanted: after,
  untouched: ["same.txt", "kept/inner.txt", "kept"],
});
const smallAttempt = (): Attempt => ({
  scene: new Scene(smallBefore, smallAfter, smallOperations, smallLinked),
  old: smallBefore,
  wanted: smallAfter,
  untouched: ["same.txt"],
});

/** Applies with the fault; returns what fired, or undefined when the plan has fewer effects. */
async function applyWith(
  { scene, old, wanted, untouched }: Attempt,
  fault: ReturnType<typeof failAt>,
): Promise<string | undefined> {
  using _ = scene;
  const touches = untouched.map((path) => touchOf(scene.dir, path));
  let applied = false;
  let failure: unknown;
  try {
    using result = await scene.apply({ fileSystem: fault.fileSystem, plans: scene.plans(fault.storage) });
    applied = true;
    await result.finish();
  } catch (error) {
    failure = error;
  }
  const fired = fault.fired();
  if (failure !== undefined) {
    expect(isLooprigError(failure), `${String(fired)}: ${inspect(failure)}`).toBe(true);
    if (isLooprigError(failure, "restore.unsettled")) {
      await scene.settle(unsyncedFileSystem);
      expect([old, wanted], fired).toContainEqual(scene.tree());
      if (applied) expect(scene.tree()).toEqual(wanted);
    } else expect(scene.tree(), fired).toEqual(old);
  } else expect(scene.tree(), fired).toEqual(wanted);
  // What could not be removed after the plan was gone is swept with the next one; the plan itself is gone.
  expect(await scene.plans().read()).toBeUndefined();
  expect(untouched.map((path) => touchOf(scene.dir, path))).toEqual(touches);
  expect(scene.outsideTree()).toEqual({ "mode-linked": old["mode-linked"] });
  return fired;
}

async function everyEffect(
  make: () => Attempt,
  errnoOf: (number: number) => string,
  when: "once" | "forever" | "late",
): Promise<Set<string>> {
  const met = new Set<string>();
  for (let number = 1; ; number++) {
    const made = make();
    const fired = await applyWith(made, failAt(made.scene.storage, number, errnoOf(number), when));
    if (fired === undefined) return met;
    met.add(fired);
  }
}

describe("a restore one of whose effects fails", () => {
  test("leaves the tree as it was, whatever fails and however (U6)", async () => {
    for (const errno of errnos) {
      const met = await everyEffect(smallAttempt, () => errno, "once");
      expect([...met]).toEqual(
        expect.arrayContaining(["open", "write", "fsync", "fsyncLater", "fchmod", "mkdir", "rmdir"]),
      );
      expect([...met]).toEqual(expect.arrayContaining(["rename", "link", "unlink", "symlink", "set", "put", "delete"]));
    }
  });

  test("leaves the tree as it was in every kind of change", async () => {
    await everyEffect(attempt, (number) => errnos[number % errnos.length] as string, "once");
  });

  test("keeps the plan when taking back fails too, and a later settling ends it", async () => {
    await everyEffect(smallAttempt, () => "EIO", "forever");
  });

  test("takes back what was done although the system said that it failed", async () => {
    await everyEffect(smallAttempt, () => "EIO", "late");
  });

  test("names the path, what was to be done and the system's error", async () => {
    using scene = new Scene(smallBefore, smallAfter, smallOperations, smallLinked);
    const fileSystem = {
      ...unsyncedFileSystem,
      mkdir: (path: FsPath, mode: number) => {
        if (String(path).endsWith("/to-dir")) throw Object.assign(new Error("disk full"), { code: "ENOSPC" });
        unsyncedFileSystem.mkdir(path, mode);
      },
    };
    await expect(scene.apply({ fileSystem })).rejects.toMatchObject({
      code: "restore.failed",
      details: { path: "to-dir", operation: "put in place", errno: "ENOSPC" },
    });
  });

  test("says content is unavailable and changes nothing when the store lost an object (U6, G8)", async () => {
    using scene = new Scene(smallBefore, smallAfter, smallOperations, smallLinked);
    scene.store.lose("inside");
    await expect(scene.apply()).rejects.toMatchObject({ code: "snapshot.object_missing" });
    expect(scene.tree()).toEqual(smallBefore);
    expect(await scene.plans().read()).toBeUndefined();
  });

  test("is rolled back when the answer to the commit point is lost", async () => {
    using scene = new Scene(smallBefore, smallAfter, smallOperations, smallLinked);
    let sets = 0;
    const { kv, blobs } = scene.storage;
    const lossy: typeof kv = {
      get: (...args) => kv.get(...args),
      delete: (...args) => kv.delete(...args),
      list: (...args) => kv.list(...args),
      set: async (...args) => {
        const revision = await kv.set(...args);
        if (++sets === 2) throw Object.assign(new Error("the line dropped"), { code: "ECONNRESET" });
        return revision;
      },
    };
    await expect(scene.apply({ plans: scene.plans({ kv: lossy, blobs }) })).rejects.toMatchObject({
      code: "restore.failed",
    });
    expect(sets).toBe(3);
    expect(scene.tree()).toEqual(smallBefore);
    expect(await scene.plans().read()).toBeUndefined();
  });
});

describe("a restore whose lease is lost", () => {
  test("touches nothing any more, and the next holder settles it", async () => {
    const lost = new Error("the lease is lost");
    for (let calls = 0; calls < 5; calls++) {
      using scene = new Scene(smallBefore, smallAfter, smallOperations, smallLinked);
      let left = calls;
      let effects = 0;
      const { fileSystem } = failAt(scene.storage, -1, "EIO");
      const counting: FileSystem = {
        ...fileSystem,
        rename: (from, to) => {
          effects++;
          fileSystem.rename(from, to);
        },
      };
      const assertHeld = (): void => {
        if (left-- <= 0) throw lost;
      };
      const outcome = await scene.apply({ fileSystem: counting, assertHeld }).then(
        (applied) => {
          applied[Symbol.dispose]();
          return "applied";
        },
        (error: unknown) => error,
      );
      if (calls < 4) expect(outcome).toBe(lost);
      else expect(outcome).toBe("applied");
      if (calls < 2) expect(effects).toBe(0);
      const phase = (await scene.plans().read())?.phase;
      await scene.settle();
      expect(scene.tree()).toEqual(phase === "staging" ? smallBefore : smallAfter);
    }
  });
});

describe("a restore that is cancelled", () => {
  test("leaves the tree as it was and rejects with the signal's reason, while it stages", async () => {
    using scene = new Scene(smallBefore, smallAfter, smallOperations, smallLinked);
    const controller = new AbortController();
    const reason = new Error("never mind");
    const fileSystem = {
      ...unsyncedFileSystem,
      fchmod: (fd: number, mode: number) => {
        unsyncedFileSystem.fchmod(fd, mode);
        controller.abort(reason);
      },
    };
    await expect(scene.apply({ fileSystem, signal: controller.signal })).rejects.toBe(reason);
    expect(scene.tree()).toEqual(smallBefore);
    expect(await scene.plans().read()).toBeUndefined();
  });
});
