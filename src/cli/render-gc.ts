/** `looprig gc`: what it lets go of and what that frees, before and after. Pure. */
import type { SessionId } from "../core/index.js";
import type { SessionSummary } from "../session-store/index.js";
import type { KeepPolicy, RootDrop } from "../workspace/index.js";
import type { CollectReport, StoreStats } from "../workspace-store/index.js";
import { bytes, count } from "./amounts.js";
import { columns, fit } from "./columns.js";
import type { Question } from "./consent.js";
import { rangeNames } from "./pin-names.js";
import { displayRoot } from "./spelling.js";
import type { Style } from "./style.js";
import { moment } from "./times.js";

export interface GcData {
  /** Where the store is. */
  readonly dir: string;
  readonly policy: KeepPolicy | undefined;
  readonly drops: readonly RootDrop[];
  readonly stats: StoreStats;
  /** What collecting would do, or did, once those checkpoints are let go. */
  readonly report: CollectReport;
  readonly sessions: readonly Pick<SessionSummary, "id" | "root">[];
}

export interface GcView {
  readonly home: string;
  readonly now: Date;
  readonly style: Style;
  readonly sessionName: (id: SessionId) => string;
}

/** Whether there is anything to let go of or to free, now or later. */
export const isIdle = ({ drops, report }: Pick<GcData, "drops" | "report">): boolean =>
  drops.every(({ checkpoints, pins }) => checkpoints.length + pins.length === 0) &&
  report.garbage.objects === 0 &&
  report.freed.bytes === 0;

/** Whether it takes something away. That garbage begins to wait takes nothing. */
export const removes = ({ drops, report }: Pick<GcData, "drops" | "report">): boolean =>
  drops.some(({ pins }) => pins.length > 0) || report.freed.bytes > 0 || report.freed.packs > 0;

/** What would be done. */
export function gcPlanText(data: GcData, view: GcView): string {
  return text([...headLines(data, view), ...ownerLines(data, view), "", ...sums(data, view, "to free now")]);
}

/** What was looked at, where there is nothing to do. */
export const gcIdleText = (data: GcData, view: GcView): string =>
  text([
    ...headLines(data, view),
    ...(data.drops.length === 0 ? [] : [""]),
    "There is nothing to free.",
    ...warnings(data, view),
  ]);

function headLines({ dir, stats, drops }: GcData, view: GcView): readonly string[] {
  const { total, garbage } = stats.bytes;
  const use = garbage === 0 ? "all of it in use" : `${bytes(garbage)} of it in use by nothing`;
  return [
    `${view.style.bold(displayRoot(dir, view.home))}   ${bytes(total)}, ${use}`,
    ...drops.flatMap((drop) => ["", ...dropLines(drop, view)]),
  ];
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

function dropLines(drop: RootDrop, { home, style, sessionName }: GcView): readonly string[] {
  const root = displayRoot(drop.root, home);
  if (drop.skipped !== undefined) return [`${root}   ${style.yellow("left alone")}: ${whySkipped[drop.skipped]}`];
  if (drop.checkpoints.length === 0) return [`${root}   nothing to let go of; ${count(drop.kept, "checkpoint")} kept`];
  const sessions = [...new Set(drop.checkpoints.map(({ sessionId }) => sessionId))];
  return [
    `${root}   lets go of ${drop.checkpoints.length} of ${count(drop.checkpoints.length + drop.kept, "checkpoint")}`,
    ...columns(
      sessions.map((id) => {
        const numbers = drop.checkpoints.filter(({ sessionId }) => sessionId === id).map(({ number }) => number);
        return [sessionName(id), fit(rangeNames(numbers), listedWidth)];
      }),
      { indent: "  " },
    ),
    ...(drop.entries.length === 0 ? [] : [`  undo no more: ${fit(drop.entries.join(", "), listedWidth)}`]),
  ];
}

/** Lists are cut at a line; `--json` has all of them. */
const listedWidth = 90;

const whySkipped: Readonly<Record<NonNullable<RootDrop["skipped"]>, string>> = {
  "in use": "a session is at work there",
  unsettled: "a restore was cut short there; looprig status says more",
  damaged: "a journal cannot be read whole; looprig doctor says which",
};

const ownersShown = 8;

function ownerLines({ stats, sessions }: GcData, { home, sessionName }: GcView): readonly string[] {
  if (stats.owners.length === 0) return [];
  const largest = [...stats.owners].sort((a, b) => b.ownBytes - a.ownBytes || b.bytes - a.bytes);
  const shown = largest.slice(0, ownersShown);
  return [
    "",
    "kept by",
    ...columns(
      shown.map(({ owner, bytes: size, ownBytes }) => {
        const session = sessions.find(({ id }) => id === owner);
        const name = session === undefined ? owner.slice(0, 8) : sessionName(session.id);
        const root = session?.root === undefined ? "-" : displayRoot(session.root, home);
        return [name, root, bytes(size), `${bytes(ownBytes)} only by it`];
      }),
      { indent: "  ", right: [2, 3] },
    ),
    ...(largest.length > shown.length
      ? [`  … and ${largest.length - shown.length} more; looprig sessions --sizes`]
      : []),
  ];
}

/** The lines that say what is, or was, freed, and what waits. */
function sums(data: GcData, view: GcView, freed: "to free now" | "freed"): readonly string[] {
  const { report } = data;
  const { until, bytes: later } = report.waiting;
  const none = freed === "freed" ? "Nothing is freed yet" : "Nothing to free yet";
  return [
    report.freed.bytes > 0
      ? `${bytes(report.freed.bytes)} ${freed}.`
      : later > 0
        ? `${none}.`
        : "There is nothing to free.",
    ...(later === 0
      ? []
      : [
          `${bytes(later)} ${until === undefined ? "wait" : `can be freed from ${moment(until, view.now)} on`}, in case something still counts on them. looprig gc --now does not wait.`,
        ]),
    ...warnings(data, view),
  ];
}

function warnings({ report: { damaged, stopped } }: GcData, { style }: GcView): readonly string[] {
  return [
    ...(damaged.length === 0
      ? []
      : [
          `${style.red("!")} ${count(damaged.length, "object")} that should be kept ${damaged.length === 1 ? "is" : "are"} damaged; looprig verify --all names the paths`,
        ]),
    ...(stopped === undefined
      ? []
      : [
          `${style.yellow("!")} the disk is too full to pack what is left more tightly; free some space and call it again`,
        ]),
  ];
}

export const dryRunLine = "Nothing was changed. The same without --dry-run does it.\n";

export function gcQuestion({ drops, report }: Pick<GcData, "drops" | "report">, graceMs: number | undefined): Question {
  const checkpoints = drops.reduce((sum, each) => sum + each.checkpoints.length, 0);
  const parts = [
    ...(checkpoints === 0 ? [] : [`let go of ${count(checkpoints, "checkpoint")} for good`]),
    // Small packs put together may take a little more than they did: they get an index.
    ...(report.freed.bytes <= 0 ? [] : [`free ${bytes(report.freed.bytes)}`]),
  ];
  const text = parts.length === 0 ? "tidy the store" : parts.join(" and ");
  // What nobody keeps and has waited is no loss; everything else is a decision.
  const wider = checkpoints > 0 || graceMs !== undefined;
  return { text: `${text.charAt(0).toUpperCase()}${text.slice(1)}?`, default: wider ? "no" : "yes" };
}

/** What was done. */
export function gcDoneText(data: GcData, view: GcView): string {
  const checkpoints = data.drops.reduce((sum, each) => sum + each.checkpoints.length, 0);
  const skipped = data.drops.filter((each) => each.skipped !== undefined);
  return text([
    ...skipped.flatMap((drop) => dropLines(drop, view)),
    ...(checkpoints === 0 ? [] : [`${count(checkpoints, "checkpoint")} let go of. looprig log shows what is kept.`]),
    ...sums(data, view, "freed"),
  ]);
}

/** The fields of `looprig.gc/1`. */
export const gcDocument = (
  { policy, drops, stats, report, sessions }: GcData,
  { dryRun, result }: { readonly dryRun: boolean; readonly result: "done" | "nothing" | "refused" },
): object => ({
  dryRun,
  result,
  policy:
    policy === undefined
      ? null
      : {
          keepLast: policy.last ?? null,
          keepWithinMs: policy.withinMs ?? null,
          dropLabelled: policy.dropLabelled ?? false,
        },
  roots: drops.map(({ root, checkpoints, kept, entries, skipped }) => ({
    ...{ root, dropped: checkpoints.map(({ number }) => `c${number}`), kept, entries },
    ...(skipped === undefined ? {} : { skipped }),
  })),
  store: { bytes: stats.bytes.total, live: stats.bytes.live, garbage: stats.bytes.garbage, packs: stats.packs },
  owners: stats.owners.map(({ owner, pins, bytes: size, ownBytes }) => ({
    ...{ owner, pins, bytes: size, ownBytes },
    root: sessions.find(({ id }) => id === owner)?.root ?? null,
  })),
  freed: report.freed,
  waiting: { ...report.waiting, until: report.waiting.until?.toISOString() ?? null },
  repacked: report.repacked,
  damaged: report.damaged,
  stopped: report.stopped ?? null,
});
