/**
 * An operation on the tree whose process is killed by SIGKILL right before any of its effects: as with a played death, and locks
 * are freed, memory is lost and threads end for real (U6, U9, G4).
 *
 * `LOOPRIG_SOAK=1`: at every effect of every operation; here at a few of each.
 */
import { expect, it } from "vitest";
import { builtFile } from "../build.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";
import type { TestProcess } from "../processes.js";
import { expectSettled } from "./aftermath.js";
import { operationNames } from "./operations.js";
import { places, thorough } from "./places.js";
import { Scene } from "./scene.js";
import { small } from "./trees.js";
import { withoutPrivileges } from "./unprivileged.js";

const program = "tests/processes/killed-restore.ts";

it.each(operationNames)(
  "%s whose process is killed leaves the old tree or the new one",
  { timeout: 3_600_000 },
  async (operation) => {
    // Made by whoever may write where it is kept.
    builtFile(program);
    await using place = new Playground("root", { quick: true });
    using _ = withoutPrivileges(place.dir, place.root);
    const scene = await Scene.of(operation, small, place);
    const endings = new Set<string>();
    const start = (): TestProcess => startProcess(program, [scene.root, scene.stateDir]);
    // The next one starts while what the last one left is looked at.
    let waiting = start();
    for (const at of places(scene, 97)) {
      scene.renew();
      const killed = waiting;
      waiting = start();
      killed.say(JSON.stringify([operation, at]));
      const { signal, stderr } = await killed.ended;
      const told = `killed before effect ${at} of ${scene.effects}`;
      expect(signal, `${told}: ${stderr}`).toBe("SIGKILL");
      endings.add(await expectSettled(scene, told));
    }
    waiting.kill("SIGKILL");
    await waiting.ended;
    if (thorough) expect([...endings].sort()).toEqual(["new", "old"]);
  },
);
