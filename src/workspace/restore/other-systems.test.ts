/** Restores on systems with other rules: an owner who is not root, no hard links, volumes that fold names. */
import fs from "node:fs";
import { describe, expect, test } from "vitest";
import { interceptFileSystem } from "../../core/index.js";
import type { FileSystem } from "../../core/index.js";
import { asOwner, folding, withoutLinks } from "./testing/other-systems.js";
import { after, before } from "./testing/scenario.js";
import { Killed, operationsBetween, Scene, unsyncedFileSystem } from "./testing/scene.js";
import { directory, file } from "./testing/trees.js";
import type { Nodes } from "./testing/trees.js";

async function there(from: Nodes, to: Nodes, fileSystem: FileSystem): Promise<void> {
  using scene = await Scene.of(from, to);
  using applied = await scene.apply({ fileSystem });
  await applied.finish();
  expect(scene.tree()).toEqual(to);
  expect(await scene.plans().read()).toBeUndefined();
}

/** Kills at each effect, settles with the same kind of system, and expects one tree or the other. */
async function killedEverywhere(from: Nodes, to: Nodes, base: FileSystem): Promise<number> {
  const operations = await operationsBetween(from, to);
  for (let number = 1; ; number++) {
    using scene = new Scene(from, to, operations);
    let effects = 0;
    const state = { dead: false };
    const fileSystem = interceptFileSystem(base, ({ name, effect }) => {
      if (effect && ++effects === number) state.dead = true;
      if (state.dead && name !== "close") throw new Killed();
    });
    const plans = scene.plans();
    const alive =
      <A extends readonly unknown[], R>(call: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        if (state.dead) throw new Killed();
        return call(...args);
      };
    try {
      using applied = await scene.apply({
        fileSystem,
        plans: {
          read: alive((...args: Parameters<typeof plans.read>) => plans.read(...args)),
          create: alive((...args: Parameters<typeof plans.create>) => plans.create(...args)),
          rewrite: alive((...args: Parameters<typeof plans.rewrite>) => plans.rewrite(...args)),
          advance: alive((...args: Parameters<typeof plans.advance>) => plans.advance(...args)),
          remove: alive((...args: Parameters<typeof plans.remove>) => plans.remove(...args)),
        },
      });
      await applied.finish();
    } catch (error) {
      if (!state.dead) throw error;
    }
    if (!state.dead) return number;
    const phase = (await plans.read())?.phase;
    await scene.settle(base);
    expect(scene.tree(), `effect ${number}, phase ${String(phase)}`).toEqual(phase === "staging" ? from : to);
  }
}

const tightBefore: Nodes = {
  locked: directory(0o500),
  "locked/old": file("old"),
  "locked/goes": file("goes"),
  "locked/in": directory(0o500),
  "locked/in/deep": file("deep", 0o400),
  stays: directory(0o500),
  "stays/x": file("x"),
};
const tightAfter: Nodes = {
  locked: directory(0o555),
  "locked/old": file("new"),
  "locked/made": directory(0o500),
  "locked/made/leaf": file("leaf", 0o400),
  stays: directory(0o500),
  "stays/x": file("y"),
};

describe("for an owner who is not root", () => {
  test("read-only directories are made writable for the moment and have their modes again", async () => {
    await there(tightBefore, tightAfter, asOwner());
    await there(tightAfter, tightBefore, asOwner());
  });

  test("every kind of change is made", async () => {
    await there(before, after, asOwner());
  });

  test("a kill at any effect leaves no directory writable after the settling", async () => {
    expect(await killedEverywhere(tightBefore, tightAfter, asOwner())).toBeGreaterThan(40);
  });

  test("a failed restore gives the modes back", async () => {
    using scene = await Scene.of(tightBefore, tightAfter);
    const base = asOwner();
    const fileSystem: FileSystem = {
      ...base,
      mkdir: () => {
        throw Object.assign(new Error("full"), { code: "ENOSPC" });
      },
    };
    await expect(scene.apply({ fileSystem })).rejects.toThrow();
    await scene.settle(asOwner());
    expect(scene.tree()).toEqual(tightBefore);
  });
});

/** Runs as a user without privileges, where the tests run as root. */
async function unprivileged(act: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return act();
  process.seteuid?.(65_534);
  try {
    await act();
  } finally {
    process.seteuid?.(0);
  }
}

describe("for a real user without privileges", () => {
  test("every kind of change is made, in read-only directories too", async () => {
    await unprivileged(async () => {
      await there(before, after, unsyncedFileSystem);
      await there(tightBefore, tightAfter, unsyncedFileSystem);
      await there(tightAfter, tightBefore, unsyncedFileSystem);
    });
  });

  test("a kill at any effect in read-only directories is settled", async () => {
    await unprivileged(async () => {
      await killedEverywhere(tightBefore, tightAfter, unsyncedFileSystem);
    });
  });

  test(
    "a directory of another user's is refused, and nothing is written",
    { skip: process.geteuid?.() !== 0 },
    async () => {
      using scene = await Scene.of(
        { d: directory(0o755), "d/x": file("x") },
        { d: directory(0o755), "d/x": file("y") },
      );
      fs.chmodSync(scene.dir, 0o755);
      await unprivileged(async () => {
        await expect(scene.apply({ fileSystem: unsyncedFileSystem })).rejects.toMatchObject({
          code: "restore.failed",
          details: { path: "d/x", errno: "EACCES" },
        });
      });
      expect(scene.tree()).toEqual(scene.before);
      expect(await scene.plans().read()).toBeUndefined();
    },
  );
});

describe("where there are no hard links", () => {
  test("every kind of change is made", async () => {
    await there(before, after, withoutLinks());
  });

  test("a kill at any effect is settled", async () => {
    await killedEverywhere(tightBefore, tightAfter, withoutLinks());
  });
});

describe("on a volume that folds case and composition (C105)", () => {
  const from: Nodes = {
    Readme: file("read me"),
    a: file("one"),
    b: file("two"),
    Dir: directory(),
    "Dir/x": file("x"),
    "Dir/Sub": directory(),
    "Dir/Sub/y": file("y"),
    "caf\u00e9": file("composed"),
    Same: file("same"),
  };
  const to: Nodes = {
    README: file("read me"),
    b: file("one"),
    c: file("two"),
    dir: directory(),
    "dir/x": file("x"),
    "dir/sub": directory(),
    "dir/sub/y": file("y"),
    "cafe\u0301": file("composed"),
    Same: file("same"),
  };

  test("names that change only in case or composition, and rename chains, go there and back", async () => {
    await there(from, to, folding());
    await there(to, from, folding());
  });

  test("a kill at any effect is settled, forwards and backwards", async () => {
    await killedEverywhere(from, to, folding());
    await killedEverywhere(to, from, folding());
  });

  test("the same plans work where names are told apart", async () => {
    await there(from, to, asOwner());
    await there(to, from, asOwner());
  });
});
