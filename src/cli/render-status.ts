/** What changed since the last checkpoint, by whom, and what can be undone. Pure. */
import type { LeaseHolder, SessionId, TurnId, WorkspacePath } from "../core/index.js";
import type {
  Change,
  ChangedBy,
  Checkpoint,
  FileDiff,
  RestorePlan,
  RootHistory,
  TurnSummary,
} from "../workspace/index.js";
import { count } from "./amounts.js";
import { callNote, noteOf, overlapNote, unproven } from "./author-notes.js";
import { changeLines } from "./change-lines.js";
import type { LineCount } from "./change-lines.js";
import { holderLine } from "./holder-line.js";
import { displayPath, displayRoot, oneLine, turnTitle } from "./spelling.js";
import type { Style } from "./style.js";
import { ago } from "./times.js";

export interface StatusData {
  readonly root: string;
  readonly holder: LeaseHolder | undefined;
  readonly history: Pick<RootHistory, "checkpoints" | "turns" | "damaged">;
  /** Since the last checkpoint. */
  readonly changes: readonly Change[];
  readonly undoable: Undoable | undefined;
  /** Turns that were cut short at a question, which is put again when their session goes on. */
  readonly waiting: ReadonlySet<TurnId>;
  /** A restore that was cut short. */
  readonly unsettled: { readonly planId: string; readonly action: string } | undefined;
}

export interface Undoable {
  readonly plan: RestorePlan;
  readonly turn: TurnSummary | undefined;
  /** What the entry changed, before to after: at most `listedMax`, and whether that is not all. */
  readonly changed: readonly FileDiff[];
  readonly more: boolean;
  /** Who left the present bytes of a path, for the paths that are not known to be the turn's as a whole. */
  readonly authors: ReadonlyMap<WorkspacePath, ChangedBy>;
}

/** Paths listed of one author; a listing that scrolls away says less than its end. */
export const listedMax = 50;

export interface StatusView {
  readonly home: string;
  readonly now: Date;
  readonly sessionName: (id: SessionId) => string;
  readonly style: Style;
}

export function statusText(data: StatusData, view: StatusView): string {
  const sections = [
    [headline(data, view)],
    [...warnings(data, view)],
    [...changeSections(data, view), ...undoableSection(data, view)],
    [...lastLine(data, view)],
  ];
  return sections
    .filter((section) => section.length > 0)
    .map((section) => section.map((line) => `${line}\n`).join(""))
    .join("\n");
}

function headline(data: StatusData, { home, now, sessionName, style }: StatusView): string {
  const root = style.bold(displayRoot(data.root, home));
  if (data.holder !== undefined) {
    return `${root}   ${style.yellow("in use")}: ${holderLine(data.holder, now, sessionName)}`;
  }
  const last = data.history.checkpoints.at(-1);
  if (last === undefined) return `${root}   free, no checkpoint yet`;
  if (data.changes.length === 0) return `${root}   nothing changed since ${name(last)}, ${ago(last.at, now)}`;
  const used = lastUse(data.history, last);
  return `${root}   free, last used by ${sessionName(used.session)} ${ago(used.at, now)}   ${name(last)} ${ago(last.at, now)}`;
}

function lastUse(history: StatusData["history"], last: Checkpoint): { readonly session: SessionId; readonly at: Date } {
  const uses = [
    { session: last.sessionId, at: last.at },
    ...history.turns.map((turn) => ({ session: turn.sessionId, at: turn.endedAt ?? turn.startedAt })),
  ];
  return uses.reduce((newest, use) => (use.at > newest.at ? use : newest));
}

/** Turns whose session was killed: nobody has written down how they ended. */
export const unsettledTurns = (history: Pick<RootHistory, "turns">): readonly TurnSummary[] =>
  history.turns.filter(({ state }) => state === "unsettled");

function warnings({ unsettled, history, waiting }: StatusData, { sessionName, style }: StatusView): readonly string[] {
  return [
    ...unsettledTurns(history).map((turn) => {
      const told = waiting.has(turn.turnId)
        ? `was cut short at a question; looprig run --resume ${sessionName(turn.sessionId)} asks it again, any other command that writes ends the turn`
        : "was cut short; the next command that writes settles it, and looprig undo asks before it takes it back";
      return `${style.yellow("!")} t${turn.number} ${turnTitle(turn)} ${told}`;
    }),
    ...(unsettled === undefined
      ? []
      : [
          `${style.yellow("!")} ${unsettled.action === "undo" ? "an" : "a"} ${oneLine(unsettled.action)} was cut short here; the next command that writes settles it first`,
        ]),
    ...history.damaged.map(
      (id) =>
        `${style.red("!")} the journal of session ${sessionName(id)} is damaged; what it holds after the damage is missing here`,
    ),
  ];
}

/** One section per author, in the order in which they first appear. */
function changeSections(data: StatusData, view: StatusView): readonly string[] {
  const last = data.history.checkpoints.at(-1);
  const groups = new Map<string, Change[]>();
  for (const change of data.changes) {
    if (isForeseen(change, data.undoable)) continue;
    const title = author(change, data.history, last, view);
    groups.set(title, [...(groups.get(title) ?? []), change]);
  }
  return [...groups].flatMap(([title, changes]) => [
    title,
    ...changeLines(
      changes.slice(0, listedMax).map(({ path, kind, entry, captured, by }) => ({
        ...{ path, kind, entry },
        note: noteOf(captured ? undefined : notCaptured, callNote(by), overlapNote(by, view.sessionName)),
      })),
      view.style,
    ),
    ...(changes.length > listedMax ? [`  … and ${changes.length - listedMax} more; --json lists all`] : []),
  ]);
}

/** Listed with the turn that can be undone, and only there: its window is open until it is settled. */
const isForeseen = ({ path, by }: Change, undoable: Undoable | undefined): boolean =>
  undoable?.turn?.state === "unsettled" &&
  by.kind !== "foreign" &&
  by.turn === undoable.turn.number &&
  undoable.changed.some((diff) => diff.path === path);

/** Excluded, too large or unreadable: no undo brings it back. */
const notCaptured = "not captured";

function author(
  { by }: Change,
  history: StatusData["history"],
  last: Checkpoint | undefined,
  { sessionName }: StatusView,
): string {
  const since = last === undefined ? "" : `, since ${name(last)}`;
  if (by.kind === "foreign") return `not by looprig${since}`;
  const turn = history.turns.find((each) => each.number === by.turn);
  const what = turn === undefined ? "" : `t${turn.number} ${turnTitle(turn)}, `;
  return `${what}${sessionName(by.sessionId)}${by.strength === "window" ? `, ${unproven}` : ""}${since}`;
}

function undoableSection({ undoable }: StatusData, { sessionName, style }: StatusView): readonly string[] {
  if (undoable === undefined) return [];
  const { plan, turn } = undoable;
  const what = turn === undefined ? oneLine(plan.title ?? "") : turnTitle(turn);
  const session = plan.entrySession === undefined ? [] : [sessionName(plan.entrySession)];
  const window = turn?.kind === "command" ? [unproven] : [];
  const able = isIdle(plan)
    ? notCaptured
    : plan.conflicts.length === 0
      ? "can be undone"
      : count(plan.conflicts.length, "conflict");
  const title = [`${plan.entry ?? ""} ${what}`.trim(), ...session, ...window, able].join(", ");
  const stopped = new Set<string>(plan.conflicts.map(({ path }) => path));
  const uncaptured = new Set<string>(plan.omitted);
  const lines = undoable.changed.map((diff) => ({
    ...{ path: diff.path, kind: diff.kind, entry: diff.entry, lines: lineCountOf(diff) },
    note: stopped.has(diff.path)
      ? (overlapNote(undoable.authors.get(diff.path) ?? foreign, sessionName, turn?.number) ?? "changed since")
      : uncaptured.has(diff.path)
        ? notCaptured
        : authorNote(undoable, diff.path, sessionName),
  }));
  const more = undoable.more ? ["  … and more; looprig diff --stat lists all"] : [];
  return [title, ...changeLines(lines, style), ...more];
}

const foreign = { kind: "foreign" } as const;

/** In an agent's turn each path has its own author: the file tool that wrote it, or a command in whose window it changed. */
function authorNote(
  { authors, plan, turn }: Undoable,
  path: WorkspacePath,
  sessionName: StatusView["sessionName"],
): string | undefined {
  const by = authors.get(path) ?? foreign;
  const overlap = overlapNote(by, sessionName, turn?.number);
  if (turn?.kind !== "prompt") return overlap;
  // Whose the present bytes are may not be known any more; that undo asks before it takes them back is.
  const asks = by.kind === "foreign" ? plan.window.includes(path) : by.strength === "window";
  const call = by.kind !== "foreign" && by.turn === turn.number ? callNote(by) : undefined;
  return noteOf(call, asks ? unproven : undefined, overlap);
}

/** Whether undo would have nothing to do: what the entry changed was not captured. */
export const isIdle = (plan: RestorePlan): boolean =>
  plan.writes.length + plan.deletes.length + plan.conflicts.length === 0;

const lineCountOf = ({ added, removed, binary }: FileDiff): LineCount => ({ added, removed, binary });

function lastLine({ undoable, changes }: StatusData, { style }: StatusView): readonly string[] {
  if (undoable === undefined) return [];
  const { plan } = undoable;
  if (plan.conflicts.length > 0) {
    return [
      `${style.bold("looprig undo")} would stop at ${count(plan.conflicts.length, "conflict")}; --dry-run shows them.`,
    ];
  }
  const lost =
    plan.omitted.length === 0
      ? ""
      : `${count(plan.omitted.length, "path")} ${plan.omitted.length === 1 ? "was" : "were"} not captured`;
  if (isIdle(plan)) {
    const why = lost === "" ? "--dry-run says why" : lost;
    return [`${style.bold("looprig undo")} cannot take back ${plan.entry ?? "it"}: ${why}.`];
  }
  const touched = new Set<WorkspacePath>([...plan.writes, ...plan.deletes]);
  const staying = changes.filter(({ path }) => !touched.has(path));
  const stay = staying.length === 0 ? "" : `; ${names(staying)} ${staying.length === 1 ? "stays" : "stay"}`;
  return [`${style.bold("looprig undo")} takes back ${plan.entry ?? "it"}${stay}${lost === "" ? "" : `; ${lost}`}.`];
}

function names(changes: readonly Change[]): string {
  const shown = changes.slice(0, changes.length > 3 ? 2 : 3).map(({ path, entry }) => displayPath(path, entry));
  const rest = changes.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : listed(shown);
}

const listed = (parts: readonly string[]): string =>
  parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1) ?? ""}`;

const name = (checkpoint: Checkpoint): string => `c${checkpoint.number}`;
