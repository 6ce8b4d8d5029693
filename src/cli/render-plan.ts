/** What an undo, redo or restore would do, and what it did. Pure. */
import { displayName } from "../core/index.js";
import type { SessionId, WorkspacePath } from "../core/index.js";
import type { RestorePlan, RestoreReceipt, RootHistory, TurnSummary } from "../workspace/index.js";
import { count, number } from "./amounts.js";
import { unproven } from "./author-notes.js";
import { countCell } from "./change-lines.js";
import type { LineCount } from "./change-lines.js";
import { columns } from "./columns.js";
import type { Cell } from "./columns.js";
import { displayPath, oneLine, shellWord, turnTitle } from "./spelling.js";
import type { Style } from "./style.js";
import { clock } from "./times.js";

/** What is known of the paths of a plan; of very many nothing is. */
export type PathFacts = ReadonlyMap<string, LineCount & { readonly entry: string }>;

export interface PlanView {
  readonly plan: RestorePlan;
  /** The turn behind the entry, where it is one. */
  readonly turn?: TurnSummary | undefined;
  readonly lines: PathFacts;
  /** Kept paths at which nothing stands any more. */
  readonly gone: ReadonlySet<string>;
  readonly history: Pick<RootHistory, "turns" | "checkpoints">;
  readonly sessionName: (id: SessionId) => string;
  /** A workspace path as the user would type it from where they stand. */
  readonly typed: (path: WorkspacePath) => string;
  readonly now: Date;
  readonly style: Style;
  /** At most this many paths of a kind are listed; unlimited when absent. */
  readonly listed?: number | undefined;
}

/** `undo t1 "make the tests pass"   session 3f9a, 13:02`, and one line per path. */
export function planText(view: PlanView): string {
  return [heading(view), "", ...pathLines(view), ""].map((line) => `${line}\n`).join("");
}

/** Every path somebody else wrote that an exact restore would replace or delete. Never shortened. */
export function foreignText({ plan, lines, style }: PlanView): string {
  if (plan.foreign.length === 0) return "";
  const paths = columns(
    plan.foreign.map((path) => [displayPath(path, lines.get(path)?.entry)]),
    { indent: "  " },
  );
  return [style.yellow("not written by looprig, and replaced or deleted all the same"), ...paths, ""]
    .map((line) => `${line}\n`)
    .join("");
}

function heading({ plan, turn, sessionName, now, style }: PlanView): string {
  const title = turn !== undefined ? turnTitle(turn) : oneLine(plan.title ?? "");
  const entry = plan.entry === undefined ? undefined : oneLine(plan.entry);
  const what = [plan.action, entry, title].filter((part) => part !== undefined && part !== "").join(" ");
  const from = [
    ...(plan.entrySession === undefined ? [] : [`session ${sessionName(plan.entrySession)}`]),
    ...(plan.entryAt === undefined ? [] : [clock(plan.entryAt, now)]),
  ].join(", ");
  return from === "" ? style.bold(what) : `${style.bold(what)}   ${style.dim(from)}`;
}

function pathLines(view: PlanView): readonly string[] {
  const { plan, lines, style } = view;
  const path = (each: WorkspacePath): string => displayPath(each, lines.get(each)?.entry);
  const note = unprovenNote(view);
  const rows: Cell[][] = [
    ...cut(plan.writes, view.listed, (each) => ["restore", path(each), countCell(lines.get(each), style), note(each)]),
    ...cut(plan.deletes, view.listed, (each) => [{ text: "delete", paint: style.red }, path(each), "", note(each)]),
    ...plan.conflicts.map(({ path: each, by }): Cell[] => [
      { text: "conflict", paint: style.red },
      path(each),
      changedBy(by, view),
    ]),
    ...cut(plan.kept, view.listed, ({ path: each, reason }) => [
      { text: view.gone.has(each) ? "gone" : "keep", paint: style.dim },
      path(each),
      {
        text: view.gone.has(each) ? "was not captured; it cannot be brought back" : keptReasons[reason],
        paint: style.dim,
      },
    ]),
  ];
  return columns(rows, { indent: "  " });
}

/** U1: said of single paths where the entry is not as a whole a window. A command's turn is one, and named by its command. */
function unprovenNote({ plan, turn, style }: PlanView): (path: WorkspacePath) => Cell {
  const paths = new Set<string>(turn?.kind === "command" ? [] : plan.unproven);
  return (path) => ({ text: paths.has(path) ? unproven : "", paint: style.dim });
}

const keptReasons = {
  foreign: "not by looprig",
  omitted: "not captured",
  "other-session": "by another session",
  "not-empty": "not empty",
} as const satisfies Record<RestorePlan["kept"][number]["reason"], string>;

/** `changed at 13:20 by 3f9a t2`. */
function changedBy(by: RestorePlan["conflicts"][number]["by"], { history, sessionName, now }: PlanView): string {
  if (by.kind === "foreign") return "changed since, not by looprig";
  const turn = history.turns.find((each) => each.number === by.turn);
  const at = turn?.endedAt ?? turn?.startedAt;
  return [
    at === undefined ? "changed" : `changed at ${clock(at, now)}`,
    `by ${sessionName(by.sessionId)}`,
    ...(by.turn === undefined ? [] : [`t${by.turn}`]),
  ].join(" ");
}

function cut<T>(all: readonly T[], most: number | undefined, row: (each: T) => Cell[]): Cell[][] {
  const shown = most === undefined || all.length <= most + 1 ? all : all.slice(0, most);
  const rest = all.length - shown.length;
  return [...shown.map(row), ...(rest === 0 ? [] : [["", `… and ${rest} more; --dry-run lists all`]])];
}

/** The last line of a dry run. */
export function dryRunText({ plan, lines, gone, style }: PlanView): string {
  const left = plan.kept.filter(({ path }) => !gone.has(path)).length;
  const summary = [
    `${countPaths(plan.writes, lines)} to restore`,
    `${andPaths(plan.deletes, lines)} to delete`,
    ...(left > 0 ? [`${number(left)} to keep`] : []),
    count(plan.conflicts.length, "conflict"),
  ].join(", ");
  return `${summary}. Nothing was written.\n${notes(plan, gone, style)}`;
}

/** What to do about conflicts that stop everything. */
export function conflictText(view: PlanView): string {
  const { plan, lines, typed } = view;
  const first = plan.conflicts[0];
  const others = [...plan.writes, ...plan.deletes];
  const { later, atOnce } = whoConflicts(view);
  const rows: string[][] = [
    ...(first === undefined || plan.entry === undefined
      ? []
      : [[`looprig diff ${shellWord(plan.entry)} now -- ${typed(first.path)}`, "what is different"]]),
    ...(others.length === 0
      ? []
      : [
          [
            `looprig ${plan.action === "undo" ? `undo ${plan.entry ?? ""}`.trimEnd() : plan.action} --skip-conflicts`,
            `the other ${countPaths(others, lines).replace(/^1 /, "")} only`,
          ],
        ]),
    ...(later === undefined ? [] : [[`looprig undo t${later}`, "first take back what came later"]]),
    ...(later !== undefined || atOnce === undefined || first === undefined
      ? []
      : [[`looprig restore ${startOf(view, atOnce)} -- ${typed(first.path)}`, "as it was before both"]]),
  ];
  return [
    `${count(plan.conflicts.length, "conflict")}, so nothing was written.`,
    ...(later !== undefined || atOnce === undefined
      ? []
      : [
          `${plan.entry ?? "It"} and t${atOnce} wrote at the same time, so neither can be taken back from under the other.`,
        ]),
    ...columns(rows, { indent: "  ", gap: "     " }),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

/**
 * The turns behind the conflicts: one that came after the entry, which can be taken back first; else one that ran at the same
 * time, whose own undo would stop at this one in turn.
 */
function whoConflicts({ plan, turn, history }: PlanView): { later: number | undefined; atOnce: number | undefined } {
  const turns = plan.conflicts
    .flatMap(({ by }) => (by.kind === "foreign" || by.turn === undefined ? [] : [by.turn]))
    .map((number) => ({ number, other: history.turns.find((each) => each.number === number) }));
  const overlaps = (other: TurnSummary | undefined): boolean =>
    turn !== undefined && other !== undefined && startsBeforeEnd(turn, other) && startsBeforeEnd(other, turn);
  return {
    later: turns.find(({ other }) => !overlaps(other))?.number,
    atOnce: turns.find(({ other }) => overlaps(other))?.number,
  };
}

const startsBeforeEnd = (one: TurnSummary, other: TurnSummary): boolean =>
  other.endedAt === undefined || one.startedAt < other.endedAt;

/** The checkpoint at which the first of the two began. */
function startOf({ plan, turn, history }: PlanView, atOnce: number): string {
  const other = history.turns.find(({ number }) => number === atOnce);
  const first = turn !== undefined && other !== undefined && other.startedAt < turn.startedAt ? other : turn;
  const checkpoint = first?.from === undefined ? undefined : history.checkpoints.find(({ ref }) => ref === first.from);
  if (checkpoint !== undefined) return `c${checkpoint.number}`;
  return `${first === undefined ? shellWord(plan.entry ?? "") : `t${first.number}`}^`;
}

export interface Wish {
  readonly kind: RestorePlan["action"];
  /** The turn that was named. */
  readonly turn?: string | undefined;
  /** The paths it was narrowed to. */
  readonly paths?: readonly string[] | undefined;
}

/** Why there is nothing to do. */
export function nothingText(
  plan: Pick<RestorePlan, "action" | "passedOver" | "entry" | "kept" | "omitted"> | undefined,
  { kind: action, turn, paths }: Wish,
  gone: ReadonlySet<string> = new Set(),
): string {
  const narrowed = paths !== undefined;
  const where = narrowed ? "there" : "here";
  const kept = plan?.kept ?? [];
  const what =
    plan?.entry === undefined
      ? `There is nothing to ${action} ${where}.`
      : kept.length === 0
        ? `${oneLine(plan.entry)}: every file is as it would be.`
        : `${oneLine(plan.entry)}: ${nothingLeft[action]}.`;
  const passed = plan === undefined ? "" : passedOver(plan.passedOver, narrowed);
  // The newest entry stays the newest: without a name undo would come back to it for ever.
  const before =
    plan?.entry !== undefined && action === "undo" && turn === undefined && kept.length > 0
      ? ["looprig undo TURN takes back earlier ones."]
      : [];
  return `${[what, ...stays(kept, gone), ...(passed === "" ? [] : [passed]), ...before].join(" ")}\n`;
}

const nothingLeft = {
  undo: "nothing can be taken back",
  redo: "nothing can be put back",
  restore: "there is nothing to change",
} as const satisfies Record<RestorePlan["action"], string>;

/** One sentence for each reason why paths are left as they are. */
function stays(kept: RestorePlan["kept"], gone: ReadonlySet<string>): readonly string[] {
  const of = (reason: RestorePlan["kept"][number]["reason"]): readonly string[] =>
    kept.filter((each) => each.reason === reason && !gone.has(each.path)).map(({ path }) => path);
  const sentence = (paths: readonly string[], why: string): string[] =>
    paths.length === 0
      ? []
      : [`${nameOrCount(paths)} ${paths.length === 1 ? "stays as it is" : "stay as they are"}: ${why}.`];
  return [
    ...sentence(of("foreign"), "not by looprig"),
    ...sentence(of("other-session"), "by another session"),
    ...sentence(of("not-empty"), "not empty"),
    ...uncaptured(
      kept.filter(({ reason }) => reason === "omitted").map(({ path }) => path),
      gone,
    ),
  ];
}

/** What was not captured: what is there stays, what is not is lost to us. */
function uncaptured(omitted: readonly string[], gone: ReadonlySet<string>): readonly string[] {
  const here = omitted.filter((path) => !gone.has(path));
  const lost = omitted.filter((path) => gone.has(path));
  return [
    ...(here.length === 0
      ? []
      : [
          `${nameOrCount(here)} ${here.length === 1 ? "was not captured and stays as it is" : "were not captured and stay as they are"}.`,
        ]),
    ...(lost.length === 0
      ? []
      : [
          lost.length === 1
            ? `${nameOrCount(lost)} was not captured and is gone; it cannot be brought back.`
            : `${nameOrCount(lost)} were not captured and are gone; they cannot be brought back.`,
        ]),
  ];
}

const nameOrCount = (paths: readonly string[]): string => {
  const [only] = paths;
  return paths.length === 1 && only !== undefined ? displayName(only) : count(paths.length, "path");
};

/** `2 files`; directories count only where there is nothing else. */
export function countPaths(paths: readonly string[], facts: PathFacts): string {
  const files = filesAmong(paths, facts);
  return files === 0 && paths.length > 0 ? count(paths.length, "directory", "directories") : count(files, "file");
}

/** The same beside an amount that named its noun already: `2`. */
const andPaths = (paths: readonly string[], facts: PathFacts): string => {
  const files = filesAmong(paths, facts);
  return files > 0 || paths.length === 0 ? number(files) : countPaths(paths, facts);
};

const filesAmong = (paths: readonly string[], facts: PathFacts): number =>
  paths.filter((path) => facts.get(path)?.entry !== "directory").length;

/** `2 files restored. looprig redo puts them back.` */
export function receiptText(
  receipt: RestoreReceipt,
  view: {
    readonly lines: PathFacts;
    readonly gone: ReadonlySet<string>;
    readonly style: Style;
    readonly namesSafety: boolean;
    /** Of its conflicts those that nobody knew of before: somebody wrote while it was done. */
    readonly raced?: RestoreReceipt["conflicts"] | undefined;
  },
): string {
  const { written, deleted, conflicts, kept, reverse } = receipt;
  const left = kept.filter(({ path }) => !view.gone.has(path)).length;
  const verb = receipt.action === "redo" ? "put back" : "restored";
  const done = [
    ...(written.length > 0 || deleted.length === 0 ? [`${countPaths(written, view.lines)} ${verb}`] : []),
    ...(deleted.length > 0
      ? [`${written.length > 0 ? andPaths(deleted, view.lines) : countPaths(deleted, view.lines)} deleted`]
      : []),
    ...(conflicts.length > 0 ? [`${count(conflicts.length, "conflict")} left alone`] : []),
    ...(left > 0 ? [`${left} kept`] : []),
  ].join(", ");
  const reversed =
    reverse === null ? "" : ` ${view.style.bold(reverse)} ${reversal(reverse, written.length + deleted.length)}.`;
  const safety =
    view.namesSafety && receipt.safety !== null
      ? `${view.style.dim(`What was there before is kept as ${shortRef(receipt.safety)}.`)}\n`
      : "";
  const raced = (view.raced ?? []).map(
    ({ path, storedAs = path }) =>
      `${view.style.red("conflict")}: ${displayName(path)} was written meanwhile, not by looprig; that is kept as ${displayName(storedAs)}\n`,
  );
  return `${done}.${reversed}\n${raced.join("")}${safety}${notes(receipt, view.gone, view.style)}`;
}

const reversal = (command: string, amount: number): string =>
  command.endsWith("redo") ? (amount === 1 ? "puts it back" : "puts them back") : "takes that back";

/** Eight digits are enough to type (G7). */
export const shortRef = (ref: string): string => ref.replace(/^v1:sha256:/, "").slice(0, 8);

function notes(
  plan: Pick<RestorePlan, "passedOver" | "headMoved" | "entry" | "omitted">,
  gone: ReadonlySet<string>,
  style: Style,
): string {
  const passed = passedOver(plan.passedOver, false);
  return [
    ...(passed === "" ? [] : [passed]),
    ...uncaptured(plan.omitted, gone),
    ...(plan.headMoved === undefined
      ? []
      : [
          `note: HEAD moved since ${plan.entry ?? "then"} (${commit(plan.headMoved[0])} to ${commit(plan.headMoved[1])}); commits are git's and stay.`,
        ]),
  ]
    .map((line) => `${style.dim(line)}\n`)
    .join("");
}

const commit = (head: string): string => (/^[0-9a-f]{40,64}$/.test(head) ? head.slice(0, 7) : oneLine(head));

function passedOver(names: readonly string[], narrowed: boolean): string {
  if (names.length === 0) return "";
  const listed = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  const [has, was] = names.length === 1 ? ["has", "was"] : ["have", "were"];
  return `${listed} ${has} nothing to take back${narrowed ? " there" : ""} and ${was} passed over.`;
}
