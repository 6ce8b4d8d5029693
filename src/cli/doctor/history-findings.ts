/** Sessions, their journals, who is at work now, and the roots they belong to. */
import { isLooprigError, parseSessionId } from "../../core/index.js";
import type { Abortable, SessionId } from "../../core/index.js";
import type { SessionStore, SessionSummary } from "../../session-store/index.js";
import type { LeaseInfo } from "../../storage/index.js";
import type { RootExamination } from "../../workspace/index.js";
import { holderLine } from "../holder-line.js";
import { displayRoot, shellWord } from "../spelling.js";
import { note, problem } from "./finding.js";
import type { Finding } from "./finding.js";

export interface HistoryView {
  readonly home: string;
  readonly now: Date;
  readonly sessionName: (id: SessionId) => string;
}

/** Reads every record of every journal: a checksum is only known to hold by looking. */
export async function journalFindings(
  store: Pick<SessionStore, "read">,
  sessions: readonly Pick<SessionSummary, "id" | "root" | "state">[],
  { home, sessionName }: HistoryView,
  options: Abortable,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { id, root, state } of sessions) {
    const name = sessionName(id);
    const where = root === undefined ? "" : ` in ${displayRoot(root, home)}`;
    if (state === "deleting") {
      findings.push(
        problem("sessions", `the deletion of session ${name} was cut short`, `looprig sessions rm ${name}`),
      );
      continue;
    }
    if (state === "interrupted") {
      findings.push(
        note("sessions", `session ${name}${where} was killed; the next command that writes there settles what it left`),
      );
    }
    const trouble = await readThrough(store, id, options);
    if (trouble !== undefined) {
      findings.push(
        problem(
          "journals",
          `the journal of session ${name}${where} ${trouble}`,
          `looprig sessions rm ${name} deletes it`,
        ),
      );
    }
  }
  return findings;
}

async function readThrough(
  store: Pick<SessionStore, "read">,
  id: SessionId,
  options: Abortable,
): Promise<string | undefined> {
  let records = 0;
  try {
    for await (const _ of store.read(id, options)) records++;
    return undefined;
  } catch (error) {
    if (isLooprigError(error, "journal.damaged"))
      return `is damaged after record ${records}; what comes before still counts`;
    if (isLooprigError(error, "journal.newer")) return `was written by a newer looprig from record ${records + 1} on`;
    // Deleted meanwhile.
    if (isLooprigError(error, "session.unknown")) return undefined;
    throw error;
  }
}

/** Who is at work. Leases of the system are freed with their process, so none of these is stale. */
export function leaseFindings(
  leases: readonly LeaseInfo[],
  { home, now, sessionName }: HistoryView,
): readonly Finding[] {
  const sessions = leases.filter(({ name }) => name.startsWith("sessions/"));
  const told = new Set(sessions.map(({ holder }) => holder.sessionId));
  // What is held without a session: a collection, say.
  const others = leases.filter(({ holder }) => !told.has(holder.sessionId));
  return [...sessions, ...others].map(({ subject, name, holder }) => {
    const where = subject === undefined ? name : displayRoot(subject, home);
    return note("leases", `${where} is in use: ${holderLine(holder, now, nameOf(sessionName))}`);
  });
}

const nameOf =
  (sessionName: (id: SessionId) => string) =>
  (id: SessionId): string => {
    try {
      return sessionName(parseSessionId(id));
    } catch {
      return id;
    }
  };

export function rootFindings(
  roots: readonly RootExamination[],
  { home }: Pick<HistoryView, "home">,
): readonly Finding[] {
  return roots.flatMap(({ root, state, unsettled, backups }) => {
    const name = displayRoot(root, home);
    const option = `--root ${shellWord(root)}`;
    return [
      ...(state === "replaced"
        ? [
            problem(
              "roots",
              `${name} is not the directory that was recorded: another one stands there`,
              `looprig snapshot ${option} --adopt-root accepts it`,
            ),
          ]
        : state === "unreadable"
          ? [problem("roots", `${name} cannot be looked at`, `ls -ld ${shellWord(root)}`)]
          : state === "missing"
            ? [note("roots", `${name} is gone; its history is here`, `looprig restore last ${option} builds it again`)]
            : []),
      ...(unsettled === undefined
        ? []
        : unsettled === "damaged"
          ? [
              problem(
                "plans",
                `the record of a restore that was cut short in ${name} is damaged; its temporaries stay`,
                `looprig log ${option}`,
              ),
            ]
          : [
              problem(
                "plans",
                `${unsettled === "undo" ? "an" : "a"} ${unsettled} was cut short in ${name}; the next command that writes there settles it`,
                `looprig snapshot ${option}`,
              ),
            ]),
      ...backups.map((backup) =>
        note(
          "backups",
          `${displayRoot(backup, home)} stood at ${name} once, and holds what was not captured; it is yours to delete`,
        ),
      ),
    ];
  });
}
