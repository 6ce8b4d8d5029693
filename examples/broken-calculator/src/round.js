/** Rounds to `digits` decimals, half away from zero. */
export function round(value, digits = 2) {
  const factor = 10 ** digits;
  return Math.floor(value * factor + 0.5) / factor;
}
