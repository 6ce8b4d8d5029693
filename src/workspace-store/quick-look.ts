/** The quick look at a whole table (`look-lane.ts`), shared with helper threads where there is enough to look at. */
import { isHelperReady, prepareHelpers, takeHelpers } from "./lanes.js";
import { lookAround, lookCounters } from "./look-lane.js";
import type { LookJob } from "./look-lane.js";
import type { Looker } from "./stamps.js";
import type { TreeTable } from "./tree-table.js";

export interface QuickLookOptions {
  readonly looker: Looker;
  readonly threads: boolean;
  readonly signal: AbortSignal | undefined;
  readonly pace: () => Promise<void> | undefined;
}

/** From so many entries on a ready helper is worth the messages, and starting one worth its 70 ms. */
const entriesForHelper = 4000;
const entriesForNewHelper = 60_000;

/** Sets the `look` of every row and directory. Counts in `job.counters` as it goes; an abort ends all lanes. */
export async function lookQuickly(table: TreeTable, job: LookJob, options: QuickLookOptions): Promise<void> {
  const { looker, threads, signal, pace } = options;
  const entries = entriesIn(table);
  if (threads && entries >= entriesForNewHelper) prepareHelpers();
  const helped = threads && entries >= (isHelperReady() ? entriesForHelper : entriesForNewHelper);
  const request = { kind: "look", table: table.share(), job } as const;
  const others = (helped ? takeHelpers() : []).map((helper) => helper.run(request));
  try {
    const lane = lookAround(table, looker, job);
    while (lane.next().done !== true) await pace();
  } finally {
    if (signal?.aborted) Atomics.store(new Int32Array(job.counters), lookCounters.stop, 1);
    await Promise.all(others);
  }
  signal?.throwIfAborted();
}

function entriesIn(table: TreeTable): number {
  let count = 0;
  for (let directory = 0; directory < table.directories; directory++) {
    if (table.has(directory)) count += table.rowCount(directory);
  }
  return count;
}
