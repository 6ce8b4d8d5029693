/** `looprig log`: turns and checkpoints, newest first. Pure. Marks stand only for what is not normal: `~` fuzzy, `!` partial or unprotected, `x` failed. */
import type { SessionId } from "../core/index.js";
import type { Checkpoint, RootHistory, TurnSummary } from "../workspace/index.js";
import { bytes, count, number } from "./amounts.js";
import { columns, fit } from "./columns.js";
import type { Cell } from "./columns.js";
import type { LogRow } from "./log-rows.js";
import { displayRoot, oneLine, turnTitle } from "./spelling.js";
import type { Style } from "./style.js";
import { clock } from "./times.js";

export interface LogView {
  readonly home: string;
  readonly now: Date;
  readonly sessionName: (id: SessionId) => string;
  readonly style: Style;
  /** Bytes of the store, and whether other roots share it. */
  readonly stored?: { readonly bytes: number; readonly shared: boolean } | undefined;
  /** Whether everything was asked for: then each checkpoint's cause and consistency are told too. */
  readonly all: boolean;
  /** Rows shown at most. */
  readonly limit: number;
}

export function logText(
  history: Pick<RootHistory, "root" | "checkpoints" | "damaged">,
  rows: readonly LogRow[],
  view: LogView,
): string {
  const shown = rows.slice(0, view.limit);
  const lines = [
    header(history, rows, view),
    ...(shown.length === 0 ? [] : ["", ...table(shown, view)]),
    ...(rows.length > shown.length
      ? [
          "",
          view.style.dim(`${count(rows.length - shown.length, "older row")}; looprig log -n ${rows.length} shows all`),
        ]
      : []),
    ...history.damaged.map(
      (id) =>
        `${view.style.red("!")} the journal of session ${view.sessionName(id)} is damaged; what it holds after the damage is missing here`,
    ),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** Counts the sessions that stand in the rows: one that only took something back is told with what it took back. */
function header(
  history: Pick<RootHistory, "root" | "checkpoints">,
  rows: readonly LogRow[],
  { home, style, stored }: LogView,
): string {
  const facts = [
    count(new Set(rows.map(sessionOf)).size, "session"),
    count(history.checkpoints.length, "checkpoint"),
    ...(stored === undefined ? [] : [`${bytes(stored.bytes)}${stored.shared ? " with all roots" : ""}`]),
  ];
  return `${style.bold(displayRoot(history.root, home))}   ${facts.join(", ")}`;
}

const sessionOf = (row: LogRow): SessionId =>
  row.kind === "turn" ? row.turn.sessionId : row.kind === "fold" ? row.last.sessionId : row.checkpoint.sessionId;

function table(rows: readonly LogRow[], view: LogView): string[] {
  const amountWidth = Math.max(...rows.map((row) => amountOf(row).length));
  return columns(
    rows.map((row) => cells(row, amountWidth, view)),
    { indent: "  ", gap: [" ", "  ", "  ", "  ", "   ", "   "], least: [8] },
  );
}

function cells(row: LogRow, amountWidth: number, view: LogView): Cell[] {
  const { now, sessionName, style } = view;
  if (row.kind === "fold") {
    const name = row.count === 1 ? marked(row.first) : `${marked(row.first)}-${marked(row.last)}`;
    return [
      name,
      "",
      sessionName(row.last.sessionId),
      "",
      `${number(row.count)} taken while it ran`,
      { text: "log --all shows them", paint: style.dim, spans: true },
    ];
  }
  const amount = amountOf(row);
  const files = amount === "" ? "" : `${amount.padStart(amountWidth)} ${amount === "1" ? "file" : "files"}`;
  if (row.kind === "turn") {
    const { turn, checkpoint } = row;
    const at = turn.endedAt ?? turn.startedAt;
    return [
      {
        text:
          checkpoint === undefined
            ? turnMark(turn)
            : `c${checkpoint.number}${checkpointMark(checkpoint)}${turnMark(turn)}`,
        paint: turn.protected ? same : style.yellow,
      },
      clock(at, now),
      sessionName(turn.sessionId),
      `t${turn.number}`,
      turnTitle(turn),
      files,
      // What ended a turn says nothing about how its changes are known.
      { text: [...causeOf(checkpoint, view, false), ...turnNotes(turn, now)].join(", "), paint: style.dim },
    ];
  }
  const { checkpoint } = row;
  const state = row.entry?.state === "partly" ? "undone in part" : row.entry?.state === "undone" ? "undone" : "";
  const partial = checkpoint.completeness === "partial" ? "partial: some files could not be read" : "";
  const notes = [
    ...causeOf(checkpoint, view, checkpoint.label !== undefined),
    ...(state === "" ? [] : [state]),
    ...droppedNote(checkpoint, now),
  ];
  return [
    marked(checkpoint),
    clock(checkpoint.at, now),
    sessionName(checkpoint.sessionId),
    "",
    checkpointTitle(row),
    row.equalTo === undefined ? files : "",
    partial === "" || checkpoint.dropped !== undefined
      ? { text: notes.join(", "), paint: style.dim }
      : { text: partial, paint: style.yellow },
  ];
}

/** `named`: the row's title does not say the cause. */
const causeOf = (checkpoint: Checkpoint | undefined, { all }: LogView, named: boolean): readonly string[] =>
  !all || checkpoint === undefined ? [] : [...(named ? [checkpoint.trigger] : []), checkpoint.consistency];

const same = (text: string): string => text;

function amountOf(row: LogRow): string {
  if (row.kind === "fold") return "";
  if (row.kind === "turn")
    return row.turn.endedAt !== undefined && row.turn.changed > 0 ? number(row.turn.changed) : "";
  return row.equalTo === undefined ? number(row.checkpoint.files) : "";
}

function checkpointTitle({ checkpoint, equalTo, entry }: Extract<LogRow, { kind: "checkpoint" }>): string {
  const equal = equalTo === undefined ? "" : `, equal to c${equalTo.number}`;
  const { trigger, label, restored } = checkpoint;
  if (entry !== undefined) return `${oneLine(entry.title)}${equal}`;
  if (restored !== undefined) return `${restored.action} ${restored.entry}${equal}`;
  const title = label !== undefined ? `"${fit(oneLine(label), 46)}"` : triggerTitles[trigger];
  return `${title}${equal}`;
}

const triggerTitles: Readonly<Record<Checkpoint["trigger"], string>> = {
  seed: "seed",
  baseline: "baseline",
  manual: "snapshot",
  idle: "idle",
  "turn-done": "turn done",
  "step-done": "step done",
  interrupt: "interrupted",
  resume: "resumed",
  window: "after a command",
  interval: "while it ran",
  "pre-restore": "before a restore",
  "post-restore": "after a restore",
};

function turnNotes(turn: TurnSummary, now: Date): readonly string[] {
  return [
    ...(turn.state === "running" ? ["running"] : []),
    ...(turn.state === "unsettled" ? ["cut short; looprig status says more"] : []),
    ...(turn.state === "interrupted" ? ["interrupted"] : []),
    ...(turn.state === "failed" ? ["failed"] : []),
    ...(turn.exitCode !== undefined && turn.exitCode !== 0 ? [`exit ${turn.exitCode}`] : []),
    // Directories are not counted.
    ...(turn.endedAt !== undefined && turn.changed === 0 && turn.protected
      ? [turn.from === turn.to ? "changed nothing" : "changed no files"]
      : []),
    ...(turn.protected ? [] : ["not protected: undo is refused"]),
    ...reversals(turn, now),
    ...(turn.dropped === undefined ? [] : [`undo dropped by gc ${clock(turn.dropped, now)}`]),
  ];
}

/** What `show`, `undo` and `restore` say of it too: it is no damage. */
const droppedNote = ({ dropped }: { readonly dropped?: Date }, now: Date): readonly string[] =>
  dropped === undefined ? [] : [`dropped by gc ${clock(dropped, now)}`];

/** `undone 13:24, redone 13:25`, in the order in which it happened. */
function reversals({ undone, undoneAt, redoneAt }: TurnSummary, now: Date): readonly string[] {
  return [
    { what: undone === "partly" ? "undone in part" : "undone", at: undoneAt },
    { what: "redone", at: redoneAt },
  ]
    .flatMap(({ what, at }) => (at === undefined ? [] : [{ what, at }]))
    .sort((a, b) => a.at.getTime() - b.at.getTime())
    .map(({ what, at }) => `${what} ${clock(at, now)}`);
}

const checkpointMark = (checkpoint: Checkpoint): string =>
  `${checkpoint.consistency === "fuzzy" ? "~" : ""}${checkpoint.completeness === "partial" ? "!" : ""}`;
const turnMark = (turn: TurnSummary): string => (turn.state === "failed" ? "x" : turn.protected ? "" : "!");
const marked = (checkpoint: Checkpoint): string => `c${checkpoint.number}${checkpointMark(checkpoint)}`;
