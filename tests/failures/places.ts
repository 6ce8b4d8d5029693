/** At which effects an operation is cut short: at each one with `LOOPRIG_SOAK=1`, else at a few. */
import { operationNames } from "./operations.js";
import type { Scene } from "./scene.js";

export const thorough = process.env["LOOPRIG_SOAK"] === "1";

/** Every `stride`-th of each operation. They begin at different places, so that together they come closer to all. */
export function places({ effects, operation }: Scene, stride: number): readonly number[] {
  const step = thorough ? 1 : stride;
  const first = 1 + Math.floor((operationNames.indexOf(operation) * step) / operationNames.length);
  return Array.from({ length: Math.ceil((effects - first + 1) / step) }, (_, i) => first + i * step);
}
