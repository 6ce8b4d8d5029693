/** Samples as Markdown. */
import { median, medianRatio } from "./measure/statistics.mjs";

export const operations = {
  first: "first capture",
  unchanged: "capture, nothing changed",
  edited: "capture after 10 edited, 1 added, 1 deleted",
  undo: "undo of those 12",
  restore: "restore of those 12, made by somebody else",
  materialize: "materialize into an empty directory",
  overwrite: "capture after 1 MiB overwritten in 1 GiB",
};

/** Values of one thing by round. */
export function seriesOf(samples, operation, subject, value) {
  const own = samples.filter((sample) => sample.operation === operation && sample.subject === subject);
  return new Map(own.filter((sample) => sample[value] !== undefined).map((sample) => [sample.round, sample[value]]));
}

/** Medians of times, and in brackets how many times what git takes; then sizes. */
export function operationsTable(samples, kinds, base = "git") {
  const shown = kinds.filter(({ key }) => samples.some(({ subject }) => subject === key));
  const rows = [];
  for (const [operation, title] of Object.entries(operations)) {
    const baseline = seriesOf(samples, operation, base, "ms");
    const cells = shown.map(({ key }) => {
      const own = seriesOf(samples, operation, key, "ms");
      if (own.size === 0) return "–";
      const ratio = key === base ? undefined : medianRatio(own, baseline);
      return `${milliseconds(median(own.values()))}${ratio === undefined ? "" : ` (${ratio.toFixed(2)}x)`}`;
    });
    rows.push([title, ...cells]);
  }
  for (const [operation, title] of Object.entries({
    store: "store after the first capture, MiB (on disk)",
    growth: "growth over 50 captures of 10 edits, MiB (on disk)",
    overwrite: "growth by that MiB, MiB (on disk)",
  })) {
    const cells = shown.map(({ key }) => {
      const bytes = seriesOf(samples, operation, key, "bytes");
      const diskBytes = seriesOf(samples, operation, key, "diskBytes");
      return bytes.size === 0 ? "–" : `${mebibytes(median(bytes.values()))} (${mebibytes(median(diskBytes.values()))})`;
    });
    rows.push([title, ...cells]);
  }
  return table(
    ["", ...shown.map(({ title }) => title)],
    rows.filter((row) => row.slice(1).some((cell) => cell !== "–")),
  );
}

/** What a process that hosts the library pays beside time. The worst of all rounds is told. */
export function inProcessTable(samples, kinds) {
  const rows = [];
  for (const { key, title } of kinds) {
    for (const [operation, name] of [...Object.entries(operations), ["peak", operations.first]]) {
      const worst = (value) => Math.max(...seriesOf(samples, operation, key, value).values());
      if (seriesOf(samples, operation, key, "peakBytes").size === 0) continue;
      const waited = ["delayMaxMs", "delayP99Ms"].map((value) =>
        seriesOf(samples, operation, key, value).size === 0 ? "–" : milliseconds(worst(value)),
      );
      rows.push([`${title}: ${name}`, mebibytes(worst("peakBytes")), ...waited]);
    }
  }
  return table(["", "peak memory, MiB", "event loop waited, at most", "p99"], rows);
}

/** Columns of words stand to the left, of numbers to the right. */
export function table(head, rows, words = 1) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, i) => (i < words ? "---" : "---:"))), ...rows.map(line), ""].join("\n");
}

export function mebibytes(bytes) {
  return (bytes / 2 ** 20).toFixed(1);
}

export function milliseconds(ms) {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 20 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
