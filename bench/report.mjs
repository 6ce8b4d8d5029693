/** The run as Markdown for people and as JSON for programs. */
import { inProcessTable, operationsTable, table } from "./tables.mjs";

/** Said with every table of numbers, since numbers without it mislead. */
const method = `Medians; in brackets the median of ratios to git in the same rounds. Subjects take turns within each round, in another
order each time, in fresh directories; the disk is drained before each measurement. Captures after edits wait until stamps
of files are old enough to be trusted, by git as well as by looprig; the wait is not timed. The page cache is warm. Stores
are measured at rest and whole: looprig's and git's with their indexes of stamps, restic's and borg's without the caches
they keep elsewhere, and looprig's without the 4 MiB that each state directory holds back for a full disk. Memory and
waiting are those of the worst round.

What the others do and do not do: looprig syncs packs, index and pins to disk before it answers; git syncs no loose objects
by default, tar and \`cp\` sync nothing. git stores no empty directories and one permission bit. tar stores everything again
each time, and equal files twice. borg runs unencrypted; restic always encrypts. "In process" is a call in a process that
goes on and has looked before; git, restic, borg and tar start anew each time, which is how they are used. looprig's
workspace also takes leases and journals, and its undo captures the tree before and after.

Not measured: a cold page cache, slow disks and network file systems, many writers at once, other operating systems, inserts
in the middle of large files, stores with thousands of snapshots, collecting garbage.`;

/** `kinds` are those that took part, in the order of columns. */
export function markdown(run, kinds) {
  const { absent, trees, samples, verdicts } = run;
  const parts = [
    aboutRun(run),
    ...(absent.length === 0 ? [] : [`Not installed here and not measured: ${absent.join(", ")}.`]),
    ...trees.flatMap(({ name, description }) => {
      const own = samples.filter(({ tree }) => tree === name);
      return [description, operationsTable(own, kinds), inProcessTable(own, kinds)];
    }),
    "### Targets",
    targetsTable(verdicts),
    method,
  ];
  return `${parts.map((part) => part.trim()).join("\n\n")}\n`;
}

export function json(run) {
  return `${JSON.stringify({ format: 1, ...run }, undefined, 1)}\n`;
}

function aboutRun({ machine, runs }) {
  const place = `${machine.cpus} CPUs, ${machine.memoryGiB} GiB, ${machine.fileSystem}, ${machine.system}`;
  const load = `load ${machine.loadAtStart} at the start, ${machine.loadAtEnd} at the end`;
  return `Commit ${machine.commit}, ${machine.date}; Node ${machine.node}, ${place}; ${runs} runs; ${load}.`;
}

function targetsTable(verdicts) {
  const verdict = ({ met }) => (met === undefined ? "–" : met ? "met" : "**missed**");
  return table(
    ["tree", "what", "of", "target", "measured", ""],
    verdicts.map((row) => [row.tree, row.what, row.subject, row.wanted, row.measured, verdict(row)]),
    6,
  );
}
