/**
 * An operation on the tree one of whose effects is refused by the system, on the root or on the store: it fails with a typed
 * error and the tree as before, or says `restore.unsettled`, or could do without. The same program then goes on, and so does
 * the next one (U6, U9).
 *
 * `LOOPRIG_SOAK=1`: every effect of every operation, and every error at each effect of one; here some of each.
 */
import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { Workspace } from "../../src/workspace/index.js";
import { Playground } from "../playground.js";
import { expectSettled } from "./aftermath.js";
import { FailingDisk, errnos } from "./failing-disk.js";
import type { Errno } from "./failing-disk.js";
import { isShared, operationNames, operations } from "./operations.js";
import { places, thorough } from "./places.js";
import { Scene } from "./scene.js";
import { small } from "./trees.js";
import { withoutPrivileges } from "./unprivileged.js";

interface Fault {
  readonly at: number;
  readonly errno: Errno;
  readonly forever: boolean;
}

/** Does the operation with the fault, then once more in the same program without it. */
async function expectFailedWhole(scene: Scene, fault: Fault): Promise<string> {
  const told = `${fault.errno} ${fault.forever ? "from" : "at"} effect ${fault.at} of ${scene.effects}`;
  const disk = new FailingDisk(fault);
  const { fileSystem } = disk.world;
  scene.renew();
  let outcome = "not opened";
  const typed = (error: unknown): void => {
    if (!isLooprigError(error)) throw error;
    outcome = error.code;
  };
  try {
    await using storage = disk.world.storage(await openLocalStorage({ dir: scene.stateDir, fileSystem }));
    let workspace: Workspace | undefined;
    try {
      const options = { root: scene.root, storage, baseline: false, shared: isShared(scene.operation) };
      workspace = await openWorkspace(options, { fileSystem });
    } catch (error) {
      typed(error);
    }
    if (workspace === undefined) expect(scene.tree(), `${told}: ${outcome}`).toEqual(scene.before);
    else {
      const receipt = await operations[scene.operation].run(workspace).catch(typed);
      disk.mend();
      if (receipt !== undefined) {
        outcome = "done";
        expect(scene.tree(), told).toEqual(scene.after);
      } else {
        if (outcome !== "restore.unsettled") expect(scene.tree(), `${told}: ${outcome}`).toEqual(scene.before);
        await expectGoesOn(scene, workspace, outcome, `${told}: ${outcome}`);
      }
      await workspace.close();
    }
  } finally {
    disk.mend();
  }
  await expectSettled(scene, `${told}: ${outcome}`, { buried: false });
  return outcome;
}

/**
 * The same program goes on. An unsettled operation is ended first, one way or the other; what was not done is done by asking
 * once more.
 */
async function expectGoesOn(scene: Scene, workspace: Workspace, outcome: string, told: string): Promise<void> {
  if (outcome === "restore.unsettled") await workspace.checkpoint();
  expect(await workspace.unsettled(), told).toBeUndefined();
  if (isDeepStrictEqual(scene.tree(), scene.after)) {
    expect(outcome, told).toBe("restore.unsettled");
    return;
  }
  expect(scene.tree(), told).toEqual(scene.before);
  expect((await operations[scene.operation].run(workspace)).result, told).toMatch(/^(done|partly)$/);
  expect(scene.tree(), told).toEqual(scene.after);
}

it.each(operationNames)(
  "%s on a disk that refuses fails with the tree as before, or says that it is unsettled (U6)",
  { timeout: 3_600_000 },
  async (operation) => {
    await using place = new Playground("root", { quick: true });
    using _ = withoutPrivileges(place.dir, place.root);
    const scene = await Scene.of(operation, small, place);
    const outcomes = new Set<string>();
    for (const at of places(scene, 97)) {
      const every = thorough && operation === "undo" ? errnos : [errnos[at % errnos.length] as Errno];
      for (const errno of every)
        for (const forever of [false, true]) outcomes.add(await expectFailedWhole(scene, { at, errno, forever }));
    }
    const known = ["done", "restore.failed", "restore.unsettled", "storage.failed", "storage.full"];
    if (thorough) expect(known).toEqual(expect.arrayContaining([...outcomes]));
    expect(outcomes.size).toBeGreaterThan(1);
  },
);
