/** Amounts as people read them. */

/** `1 file`, `2 files`, `12 480 files`. */
export const count = (n: number, noun: string, plural = `${noun}s`): string =>
  `${number(n)} ${n === 1 ? noun : plural}`;

/** Digits in groups of three from five digits on. */
export const number = (n: number): string => (n < 10_000 ? String(n) : String(n).replace(/\B(?=(?:\d{3})+$)/g, " "));

const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `512 B`, `1.8 MiB`. */
export function bytes(n: number): string {
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? "B"}`;
}

/** `0.4 s`, `2.1 s`, `38 s`, `41 min`, `3 h 5 min`. */
export function duration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 10) return `${Math.max(seconds, 0.1).toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const rest = minutes % 60;
  return rest === 0 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${rest} min`;
}
