/**
 * An operation on the tree that dies right before any of its effects, played in this process: whoever takes the root next finds
 * exactly the old tree or exactly the new one, with a journal, a catalog and a store that say the same (U6, U8, U9).
 *
 * `LOOPRIG_SOAK=1`: at every effect of every operation; here at a few of each.
 */
import { expect, it } from "vitest";
import { Playground } from "../playground.js";
import { expectSettled, phaseOf } from "./aftermath.js";
import { carryOut, operationNames } from "./operations.js";
import { places, thorough } from "./places.js";
import { PlayedDeath } from "./played-death.js";
import { Scene } from "./scene.js";
import { large, small } from "./trees.js";
import { withoutPrivileges } from "./unprivileged.js";

const phases = ["no plan old", "staging old", "committing new", "committed new", "no plan new"];

it.each(operationNames)(
  "%s that dies leaves the old tree or the new one",
  { timeout: 3_600_000 },
  async (operation) => {
    await using place = new Playground("root", { quick: true });
    using _ = withoutPrivileges(place.dir, place.root);
    const scene = await Scene.of(operation, thorough ? large : small, place);
    expect(scene.effects).toBeGreaterThan(100);
    const met = new Set<string>();
    for (const at of places(scene, 41)) {
      scene.renew();
      using death = new PlayedDeath(at);
      const told = `dead before effect ${at} of ${scene.effects}`;
      expect(await death.befalls((world) => carryOut(operation, scene, world)), told).toBe(true);
      const phase = await phaseOf(scene);
      met.add(`${phase ?? "no plan"} ${await expectSettled(scene, told, { buried: false })}`);
    }
    if (thorough) expect([...met].sort()).toEqual([...phases].sort());
    else for (const each of met) expect(phases).toContain(each);
  },
);
