/** `looprig sessions`: one line each, newest first. Pure. */
import type { SessionId } from "../core/index.js";
import type { SessionSummary } from "../session-store/index.js";
import { count } from "./amounts.js";
import { columns, fit } from "./columns.js";
import { displayRoot, oneLine } from "./spelling.js";
import type { Style } from "./style.js";
import { clock } from "./times.js";

export interface SessionsView {
  readonly home: string;
  readonly now: Date;
  readonly sessionName: (id: SessionId) => string;
  readonly style: Style;
}

export function sessionsText(
  sessions: readonly SessionSummary[],
  { home, now, sessionName, style }: SessionsView,
): string {
  return columns(
    sessions.map((session) => [
      { text: sessionName(session.id), paint: style.bold },
      { text: session.state, paint: session.state === "closed" ? style.dim : style.yellow },
      session.root === undefined ? "-" : displayRoot(session.root, home),
      clock(session.lastAt, now),
      count(session.turns, "turn"),
      count(session.checkpoints, "checkpoint"),
      { text: fit(oneLine(session.command), 48), paint: style.dim },
    ]),
  )
    .map((line) => `${line}\n`)
    .join("");
}
