/** `looprig sessions`: one line each, newest first. Pure. */
import type { SessionId } from "../core/index.js";
import type { SessionSummary } from "../session-store/index.js";
import type { CollectReport, OwnerStats } from "../workspace-store/index.js";
import { bytes, count } from "./amounts.js";
import { columns, fit } from "./columns.js";
import { displayRoot, oneLine } from "./spelling.js";
import type { Style } from "./style.js";
import { clock, moment } from "./times.js";

export interface SessionsView {
  readonly home: string;
  readonly now: Date;
  readonly sessionName: (id: SessionId) => string;
  readonly style: Style;
  /** What each keeps, where it was asked for. */
  readonly sizes?: SessionSizes | undefined;
}

/** By session id. One that is not there keeps nothing. */
export type SessionSizes = ReadonlyMap<string, Pick<OwnerStats, "bytes" | "ownBytes">>;

export function sessionsText(
  sessions: readonly SessionSummary[],
  { home, now, sessionName, style, sizes }: SessionsView,
): string {
  return columns(
    sessions.map((session) => [
      { text: sessionName(session.id), paint: style.bold },
      { text: session.state, paint: session.state === "closed" ? style.dim : style.yellow },
      session.root === undefined ? "-" : displayRoot(session.root, home),
      clock(session.lastAt, now),
      count(session.turns, "turn"),
      count(session.checkpoints, "checkpoint"),
      ...(sizes === undefined ? [] : sizeCells(sizes.get(session.id))),
      { text: fit(oneLine(session.command), 48), paint: style.dim },
    ]),
  )
    .map((line) => `${line}\n`)
    .join("");
}

const sizeCells = (size: Pick<OwnerStats, "bytes" | "ownBytes"> | undefined): readonly string[] => [
  bytes(size?.bytes ?? 0),
  `${bytes(size?.ownBytes ?? 0)} only by it`,
];

/** When the space of a session that was deleted comes back. Undefined: somebody else collects now, or it failed. */
export function spaceText(report: CollectReport | undefined, now: Date): string {
  if (report === undefined) return "looprig gc gives its space back.";
  const { freed, waiting } = report;
  const done = freed.bytes === 0 ? "" : `${bytes(freed.bytes)} freed. `;
  if (waiting.bytes === 0) return done === "" ? "Nothing was kept by it alone." : done.trimEnd();
  const from = waiting.until === undefined ? "" : ` from ${moment(waiting.until, now)} on`;
  return `${done}looprig gc frees ${bytes(waiting.bytes)}${from}.`;
}

/** The same for the document. */
export const spaceEntry = (report: CollectReport | undefined): object =>
  report === undefined
    ? {}
    : { freed: report.freed, waiting: { ...report.waiting, until: report.waiting.until?.toISOString() ?? null } };
