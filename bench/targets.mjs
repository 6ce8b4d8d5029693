/**
 * What was promised of each operation, and whether it was kept. Times are promised as ratios to a peer in the same run, since
 * times of one machine say nothing of another; bytes and waiting as what they are, the worst of all rounds.
 */
import { mebibytes, milliseconds, operations, seriesOf } from "./tables.mjs";
import { median, medianRatio } from "./measure/statistics.mjs";

const MiB = 2 ** 20;
const texts = ["small", "repo", "mono"];
const captures = ["first", "unchanged", "edited", "overwrite"];

/** At most `factor` times what `peer` takes, in each of `values`. */
const ratio = (operation, trees, peer, factor, value = "ms") => ({
  ...{ operation, trees, subject: "engine", wanted: `≤ ${factor} × ${peers[peer] ?? peer}${words[value]}` },
  measure: (samples) =>
    medianRatio(seriesOf(samples, operation, "engine", value), seriesOf(samples, operation, peer, value)),
  limit: factor,
  show: (measured) => `${measured.toFixed(2)} ×`,
});
const peers = { copy: "`cp -a`" };
const words = { ms: "", bytes: "'s bytes", diskBytes: "'s disk use" };

/** A new process that finds nothing changed costs at most so much more than a process that does nothing. */
function commandOverNode(limit) {
  const show = (ms) => `node's own start + ${milliseconds(ms)}`;
  const measure = (samples) => {
    const [own, start] = ["command", "node"].map((key) => seriesOf(samples, "unchanged", key, "ms"));
    return own.size === 0 || start.size === 0 ? undefined : median(own.values()) - median(start.values());
  };
  return {
    operation: "unchanged",
    trees: ["repo"],
    subject: "command",
    limit,
    measure,
    show,
    wanted: `≤ ${show(limit)}`,
  };
}

/** A restore costs little more than the one look at the tree that it cannot do without. */
const restoreOverCapture = (factor) => ({
  ...{ operation: "restore", trees: ["repo", "mono"], subject: "workspace", limit: factor },
  wanted: `≤ ${factor} × a capture of it, nothing changed`,
  measure: (samples) => {
    const [own, capture] = ["restore", "unchanged"].map((each) => seriesOf(samples, each, "workspace", "ms"));
    return own.size === 0 || capture.size === 0 ? undefined : median(own.values()) / median(capture.values());
  },
  show: (measured) => `${measured.toFixed(2)} ×`,
});

/** At most `limit`, in the worst round of any of these operations. */
const ceiling = (title, { trees, subject, of, value, limit, show }) => ({
  ...{ title, trees, subject, limit, show, wanted: `≤ ${show(limit)}` },
  measure: (samples) => {
    const all = of.flatMap((operation) => [...seriesOf(samples, operation, subject, value).values()]);
    return all.length === 0 ? undefined : Math.max(...all);
  },
});

const memory = (subject) =>
  ceiling("peak memory, whatever it does", {
    ...{ trees: [...texts, "bigfile"], subject, value: "peakBytes", limit: 300e6 },
    of: [...Object.keys(operations), "peak"],
    show: (bytes) => `${(bytes / 1e6).toFixed(0)} MB`,
  });

export const targets = [
  ratio("first", texts, "git", 0.3),
  ratio("first", texts, "restic", 0.4),
  ratio("unchanged", texts, "git", 0.6),
  commandOverNode(150),
  ratio("edited", texts, "git", 0.65),
  restoreOverCapture(1.5),
  ratio("materialize", texts, "git", 0.55),
  ratio("materialize", texts, "copy", 1.3),
  ratio("growth", ["repo"], "git", 0.3, "bytes"),
  ratio("growth", ["repo"], "git", 0.1, "diskBytes"),
  ratio("store", texts, "git", 1, "bytes"),
  ratio("store", texts, "git", 0.35, "diskBytes"),
  ceiling("stored for 1 MiB overwritten in 1 GiB", {
    ...{ trees: ["bigfile"], subject: "engine", of: ["overwrite"], value: "bytes", limit: 2.1 * MiB },
    show: (bytes) => `${mebibytes(bytes)} MiB`,
  }),
  ratio("overwrite", ["bigfile"], "borg", 0.4),
  ...["engine", "workspace", "command"].map(memory),
  ...["engine", "workspace"].map((subject) =>
    ceiling("other work waits while it captures, at most", {
      ...{ trees: [...texts, "bigfile"], subject, of: captures, value: "delayMaxMs", limit: 50, show: milliseconds },
    }),
  ),
];

/** One row for each target and each tree that was measured; `met` is undefined where something it needs was not. */
export function judge(samples) {
  const measured = [...new Set(samples.map(({ tree }) => tree))];
  return targets.flatMap((target) =>
    measured
      .filter((tree) => target.trees.includes(tree))
      .map((tree) => {
        const value = target.measure(samples.filter((sample) => sample.tree === tree));
        return {
          tree,
          ...{ what: target.title ?? titles[target.operation], subject: target.subject, wanted: target.wanted },
          measured: value === undefined ? "not measured" : target.show(value),
          ...(value === undefined ? {} : { value, met: value <= target.limit }),
          limit: target.limit,
        };
      }),
  );
}

const titles = { ...operations, store: "store after the first capture", growth: "growth over 50 captures of 10 edits" };
