/** A kill at every single effect of apply, finish and settle ends at exactly the old tree or exactly the new one. */
import { describe, expect, test } from "vitest";
import { after, before, linked, smallAfter, smallBefore, smallLinked } from "./testing/scenario.js";
import { Killed, killAt, operationsBetween, Scene, unsyncedFileSystem } from "./testing/scene.js";
import type { Killer } from "./testing/scene.js";
import { readTree } from "./testing/trees.js";
import type { Nodes } from "./testing/trees.js";

const operations = await operationsBetween(before, after);
const smallOperations = await operationsBetween(smallBefore, smallAfter);
const scene = (): Scene => new Scene(before, after, operations, linked);
const smallScene = (): Scene => new Scene(smallBefore, smallAfter, smallOperations, smallLinked);

async function applyAndFinish(of: Scene, killer: Killer): Promise<void> {
  using applied = await of.apply({ fileSystem: killer.fileSystem, plans: of.plans(killer.storage) });
  await applied.finish();
}

/** Runs to the effect at which it dies; false when it ended before. */
async function dies(run: () => Promise<unknown>, killer: Killer): Promise<boolean> {
  try {
    await run();
  } catch (error) {
    if (!killer.dead()) throw error;
  }
  return killer.dead();
}

const effectsOf = async (make: () => Scene, run: (of: Scene, killer: Killer) => Promise<unknown>): Promise<number> => {
  using of = make();
  const killer = killAt(of.storage, -1);
  await run(of, killer);
  return killer.count();
};

describe("a killed restore", () => {
  test("applies exactly when nothing kills it", async () => {
    using of = scene();
    using applied = await of.apply();
    expect(await applied.finish()).toEqual({ raced: [] });
    expect(of.tree()).toEqual(after);
    expect(await of.plans().read()).toBeUndefined();
  });

  test("is settled to exactly the old or the new tree, whichever effect it died at (U6, U9)", async () => {
    const total = await effectsOf(scene, applyAndFinish);
    expect(total).toBeGreaterThan(200);
    const outcomes = new Map<Nodes, number>();
    for (let number = 1; number <= total; number++) {
      using of = scene();
      const killer = killAt(of.storage, number);
      expect(await dies(() => applyAndFinish(of, killer), killer), `effect ${number}`).toBe(true);
      const phase = (await of.plans().read())?.phase;
      const settled = await of.settle(unsyncedFileSystem);
      const expected = phase === "staging" || (phase === undefined && number < total / 2) ? before : after;
      expect(of.tree(), `effect ${number}, phase ${String(phase)}`).toEqual(expected);
      expect(of.outsideTree(), `effect ${number}`).toEqual({ "mode-linked": before["mode-linked"] });
      expect(settled?.skipped ?? []).toEqual([]);
      expect(await of.plans().read()).toBeUndefined();
      outcomes.set(expected, (outcomes.get(expected) ?? 0) + 1);
    }
    expect(outcomes.size).toBe(2);
  });

  test("is settled the same when settling is killed too, at every effect of it", async () => {
    const total = await effectsOf(smallScene, applyAndFinish);
    const phases = new Set<string | undefined>();
    // Every third death of the restore; each then dies again at every effect of its settling.
    for (let number = 1; number <= total; number += 3) {
      for (let second = 1; ; second++) {
        using of = smallScene();
        const killer = killAt(of.storage, number);
        await dies(() => applyAndFinish(of, killer), killer);
        const phase = (await of.plans().read())?.phase;
        phases.add(phase);
        const again = killAt(of.storage, second);
        const died = await dies(() => of.settle(again.fileSystem, of.plans(again.storage)), again);
        await of.settle(unsyncedFileSystem);
        const expected = phase === "staging" || (phase === undefined && number < total / 2) ? smallBefore : smallAfter;
        expect(of.tree(), `effect ${number}, phase ${String(phase)}, then ${second}`).toEqual(expected);
        expect(of.outsideTree()).toEqual({ "mode-linked": smallBefore["mode-linked"] });
        expect(await of.plans().read()).toBeUndefined();
        if (!died) break;
      }
    }
    expect(phases).toEqual(new Set([undefined, "staging", "committing", "committed"]));
  });

  test("is rolled back when it dies while taking back a failure", async () => {
    const failing = (of: Scene, number: number): { run: () => Promise<unknown>; killer: Killer } => {
      const killer = killAt(of.storage, number);
      const run = () =>
        of.apply({
          fileSystem: {
            ...killer.fileSystem,
            mkdir: (path, mode) => {
              if (String(path).endsWith("/to-dir")) throw Object.assign(new Error("full"), { code: "ENOSPC" });
              killer.fileSystem.mkdir(path, mode);
            },
          },
          plans: of.plans(killer.storage),
        });
      return { run, killer };
    };
    let whole = 0;
    {
      using of = smallScene();
      const { run, killer } = failing(of, -1);
      await expect(run()).rejects.toMatchObject({ code: "restore.failed" });
      expect(of.tree()).toEqual(smallBefore);
      whole = killer.count();
    }
    let rollingBack = 0;
    for (let number = 1; number <= whole; number++) {
      using of = smallScene();
      const { run, killer } = failing(of, number);
      expect(await dies(run, killer), `effect ${number}`).toBe(true);
      const phase = (await of.plans().read())?.phase;
      if (phase === "rolling-back") rollingBack++;
      await of.settle(unsyncedFileSystem);
      // Dead after the commit point and before the roll-back was written down: completed, which is as good.
      expect(readTree(of.dir), `effect ${number}, phase ${String(phase)}`).toEqual(
        phase === "committing" ? smallAfter : smallBefore,
      );
      expect(await of.plans().read()).toBeUndefined();
    }
    expect(rollingBack).toBeGreaterThan(10);
  });

  test("a dead process throws what killed it, or says that the plan is unsettled", async () => {
    using of = scene();
    const killer = killAt(of.storage, 5);
    await expect(applyAndFinish(of, killer)).rejects.toSatisfy(
      (error) => error instanceof Killed || (error as { code?: string }).code === "restore.unsettled",
    );
  });
});
