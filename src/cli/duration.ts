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
