/** The errors of this feature, each made in one place. */
import { LooprigError } from "../core/index.js";
import type { SessionId } from "../core/index.js";
import type { RecordPlace } from "./record.js";
import type { Misfit } from "./shape.js";

export const sessionUnknown = (given: string): LooprigError<"session.unknown"> =>
  new LooprigError(
    "session.unknown",
    `Cannot find session ${JSON.stringify(given)}: no stored session is called that; \`looprig sessions\` lists them`,
    { given },
  );

export const sessionDeleting = (sessionId: SessionId): LooprigError<"session.deleting"> =>
  new LooprigError(
    "session.deleting",
    `Cannot open session "${sessionId}": its deletion was begun and not finished; delete it again`,
    { sessionId },
  );

export function journalDamaged({ sessionId, seq }: RecordPlace, why: string, cause?: unknown): LooprigError {
  return new LooprigError(
    "journal.damaged",
    `Cannot read record ${seq} of session "${sessionId}": ${why}; the ${seq - 1} records before it are good`,
    { sessionId, seq, readable: seq - 1 },
    { cause },
  );
}

export function journalNewer({ sessionId, seq }: RecordPlace, misfit: Misfit): LooprigError {
  return new LooprigError(
    "journal.newer",
    `Cannot read record ${seq} of session "${sessionId}": a newer looprig wrote it (${misfit.message}); use that one, or read only the ${seq - 1} records before it`,
    { sessionId, seq, readable: seq - 1 },
    { cause: misfit },
  );
}

export function outcomeUnknown(sessionId: SessionId, seq: number, cause: unknown): LooprigError {
  return new LooprigError(
    "journal.outcome_unknown",
    `Cannot tell whether record ${seq} of session "${sessionId}" was appended: the storage failed, and failed again when asked; open the session again and read`,
    { sessionId, seq },
    { cause },
  );
}
