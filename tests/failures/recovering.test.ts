/**
 * What settles an operation that was cut short can be cut short itself: by death at any of its effects, by a disk that refuses, or
 * by somebody who settles at the same time. The end is the same (U9).
 *
 * `LOOPRIG_SOAK=1`: at every effect; here at a few.
 */
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { isLooprigError } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { builtFile } from "../build.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import { expectSettled, phaseOf } from "./aftermath.js";
import type { World } from "./effects.js";
import { FailingDisk, errnos } from "./failing-disk.js";
import { carryOut, isShared } from "./operations.js";
import { places, thorough } from "./places.js";
import { PlayedDeath } from "./played-death.js";
import { Scene } from "./scene.js";
import { small } from "./trees.js";
import { withoutPrivileges } from "./unprivileged.js";

const program = "tests/processes/settling.ts";

/** Takes the root as the next program does, and gives it back. */
async function settle({ root, stateDir, operation }: Scene, world: World): Promise<void> {
  const { fileSystem } = world;
  await using storage = world.storage(await openLocalStorage({ dir: stateDir, fileSystem }));
  const options = { root, storage, baseline: false, shared: isShared(operation), command: "settling" };
  await using _workspace = await openWorkspace(options, { fileSystem });
}

/** Plans that wait, at every one of their phases: the operation died, or the disk refused even to take it back. */
async function waitingPlans(scene: Scene): Promise<ReadonlyMap<string, () => Promise<void>>> {
  const dying = (at: number) => async (): Promise<void> => {
    scene.renew();
    using death = new PlayedDeath(at);
    await death.befalls((world) => carryOut(scene.operation, scene, world));
  };
  const failing = (at: number) => async (): Promise<void> => {
    scene.renew();
    const disk = new FailingDisk({ at, errno: "EIO", forever: true, of: "files" });
    await carryOut(scene.operation, scene, disk.world).catch(() => undefined);
  };
  const waiting = new Map<string, () => Promise<void>>();
  for (const [how, cut, step] of [
    ["dead", dying, thorough ? 5 : 19],
    ["failed", failing, thorough ? 5 : 29],
  ] as const) {
    for (let at = step; at <= scene.effects; at += step) {
      const make = cut(at);
      await make();
      const phase = await phaseOf(scene);
      if (phase !== undefined) waiting.set(`${how} in ${phase}${thorough ? `, effect ${at}` : ""}`, make);
    }
  }
  const phases = [...waiting.keys()].map((told) => told.split(",")[0]);
  const wanted = ["dead in staging", "dead in committing", "dead in committed", "failed in rolling-back"];
  expect(phases).toEqual(expect.arrayContaining(wanted));
  return waiting;
}

it("settling that dies, or that the disk refuses, is settled to the same end", { timeout: 3_600_000 }, async () => {
  await using place = new Playground("root", { quick: true });
  using _ = withoutPrivileges(place.dir, place.root);
  const scene = await Scene.of("undo", small, place);
  for (const [told, make] of await waitingPlans(scene)) {
    for (let at = 7; ; at += thorough ? 1 : 59) {
      await make();
      using death = new PlayedDeath(at);
      if (!(await death.befalls((world) => settle(scene, world)))) break;
      await expectSettled(scene, `${told}, then dead before effect ${at}`, { buried: false });
    }
    for (let at = 9; ; at += thorough ? 2 : 61) {
      await make();
      const disk = new FailingDisk({ at, errno: errnos[at % errnos.length] ?? "EIO", forever: at % 3 === 0 });
      const failure: unknown = await settle(scene, disk.world).catch((error: unknown) => error);
      if (disk.failed === undefined) break;
      const where = `${told}, then ${disk.failed} refused at effect ${at}`;
      if (failure !== undefined) expect(isLooprigError(failure), `${where}: ${inspect(failure)}`).toBe(true);
      await expectSettled(scene, where, { buried: false });
    }
  }
});

/** Two processes that wait for a line, and then take the root at the same moment. */
it.each(["undo", "undo in a shared root"] as const)(
  "%s that was killed is settled once by two who come at the same time",
  { timeout: 600_000 },
  async (operation) => {
    builtFile(program);
    await using place = new Playground("root", { quick: true });
    using _ = withoutPrivileges(place.dir, place.root);
    const scene = await Scene.of(operation, small, place);
    for (const at of places(scene, 67).filter((each) => thorough || each > scene.effects / 4)) {
      scene.renew();
      using death = new PlayedDeath(at);
      await death.befalls((world) => carryOut(operation, scene, world));
      const two = [1, 2].map(() => startProcess(program, [scene.root, scene.stateDir, String(isShared(operation))]));
      for (const each of two) expect(await each.line()).toBe("ready");
      for (const each of two) each.say("go");
      const ended = await Promise.all(two.map((each) => each.ended));
      const told = `dead before effect ${at} of ${scene.effects}`;
      expect(ended.map(({ stderr }) => stderr).join(""), told).toBe("");
      const answers = ended.flatMap(({ lines }) => lines);
      // In a root of one writer the other one may be refused; nothing else goes wrong.
      for (const answer of answers) expect(["settled", "workspace_root.busy"], told).toContain(answer);
      expect(answers, told).toContain("settled");
      await expectSettled(scene, told, { buried: false });
    }
  },
);
