/** Deep enough for any input a tool means; far below what a recursive encoder survives. */
const depthMax = 64;

/** Whether nothing in `value`, which JSON made, is nested deeper than encoders bear. Hostile JSON nests to overflow stacks. */
export function isShallow(value: unknown, depth = depthMax): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((item) => isShallow(item, depth - 1));
}
