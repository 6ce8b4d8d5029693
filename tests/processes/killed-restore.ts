/**
 * Does one operation on a root, and is killed by SIGKILL right before the effect that was named. Prints the number of effects
 * when it lives to the end. Waits for a line first, so that one can be started ahead of its turn.
 *
 * argv: root, state directory; the line: operation and number of the effect, as JSON
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { countEffects } from "../failures/effects.js";
import { carryOut } from "../failures/operations.js";
import type { OperationName } from "../failures/operations.js";

const [root = "", stateDir = ""] = process.argv.slice(2);
const told = createInterface({ input: process.stdin });
const [line] = (await once(told, "line")) as [string];
told.close();
const [operation, last] = JSON.parse(line) as [OperationName, number];

const world = countEffects(({ number }) => {
  if (number === last) process.kill(process.pid, "SIGKILL");
});
await carryOut(operation, { root, stateDir }, world);
console.log(world.count());
