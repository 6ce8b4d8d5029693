/** Durations on the command line: a number and its unit, `60s`, `500ms`, `5m`, `1h`; `0` alone. */

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Above this a timer of Node would fire at once. */
const durationMsMax = 2 ** 31 - 1;

/** Milliseconds, or undefined when the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text);
  if (match === null) return undefined;
  const ms = Math.round(Number(match[1]) * (unitMs[match[2] ?? ""] ?? Number.NaN));
  return ms <= durationMsMax ? ms : undefined;
}

const ageUnitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** An age such as `30d`: whole minutes, hours, days or weeks, in milliseconds. Undefined when the text is none. */
export function parseAge(text: string): number | undefined {
  const match = /^([1-9]\d{0,5})([mhdw])$/.exec(text);
  return match === null ? undefined : Number(match[1]) * (ageUnitMs[match[2] ?? ""] ?? Number.NaN);
}
