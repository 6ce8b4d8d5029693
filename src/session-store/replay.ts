/**
 * Reading a journal: the one place where records become events, for readers, writers and listings alike, so that all of
 * them see the same history. One record is in memory at a time.
 *
 * Whatever cannot be read ends the iteration after everything before it was yielded; nothing is skipped.
 */
import { isLooprigError } from "../core/index.js";
import type { Abortable, SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { SessionEvent } from "./events.js";
import { journalDamaged, journalNewer, sessionUnknown } from "./failures.js";
import { emptyFold, foldEvent } from "./fold.js";
import type { SessionFold } from "./fold.js";
import { ledgerOf } from "./keys.js";
import { fetchRecord } from "./out-of-line.js";
import { parseRecord } from "./record.js";
import type { LargeRecord, RecordPlace } from "./record.js";
import { Misfit } from "./shape.js";

export type JournalStorage = Pick<Storage, "ledger" | "blobs">;

/** The events from `from` to the head. Yields nothing for a session that does not exist. */
export async function* replay(
  storage: JournalStorage,
  sessionId: SessionId,
  from: number,
  { signal }: Abortable,
): AsyncGenerator<SessionEvent, void, undefined> {
  let next = from;
  try {
    const head = await storage.ledger.head(ledgerOf(sessionId), { signal });
    for await (const { seq, body } of storage.ledger.read(ledgerOf(sessionId), { from, signal })) {
      if (seq !== next) throw new Misfit("damaged", "the record's place", "the one after the record before it");
      yield await readRecord(storage, body, { sessionId, seq }, { signal });
      next += 1;
    }
    // An iteration over a ledger that is deleted meanwhile just ends; a history must not look complete for that.
    if (next <= head) throw new Misfit("damaged", "the record", "there");
  } catch (error) {
    throw await judge(storage, error, { sessionId, seq: next });
  }
}

async function readRecord(
  storage: JournalStorage,
  body: Uint8Array,
  place: RecordPlace,
  options: Abortable,
): Promise<SessionEvent> {
  const record = parseRecord(body, place);
  const event = record.inline ? record.event : await readLarge(storage, record, place, options);
  if (place.seq === 1 && event.type !== "session-started") {
    throw new Misfit("damaged", "the first record", '"session-started"');
  }
  return event;
}

async function readLarge(
  storage: JournalStorage,
  { head, out }: LargeRecord,
  place: RecordPlace,
  options: Abortable,
): Promise<SessionEvent> {
  const record = parseRecord(await fetchRecord(storage.blobs, place.sessionId, head.id, out, options), place);
  if (
    !record.inline ||
    record.event.id !== head.id ||
    record.event.type !== head.type ||
    record.event.at.getTime() !== head.at.getTime()
  ) {
    throw new Misfit("damaged", "the large record", "the one its stub speaks of");
  }
  return record.event;
}

/** What a failure to read means for the journal. Failures of the storage mean nothing for it and pass. */
async function judge(storage: JournalStorage, error: unknown, place: RecordPlace): Promise<unknown> {
  if (isLooprigError(error, "ledger.damaged")) {
    return journalDamaged({ ...place, seq: error.details.seq }, "it does not match its checksum", error);
  }
  if (!(error instanceof Misfit)) return error;
  if (error.verdict === "newer") return journalNewer(place, error);
  // A deletion takes the journal first and its large records after: what a reader misses then is no damage.
  if ((await storage.ledger.head(ledgerOf(place.sessionId))) < place.seq) return sessionUnknown(place.sessionId);
  return journalDamaged(place, error.message, error);
}

/** How much of a journal a fold covers: all of it, or what stands before a record that could not be read. */
export type History = "whole" | "damaged" | "newer";

export interface Folded {
  readonly state: SessionFold;
  readonly history: History;
}

/**
 * Folds what `base` does not cover. Unreadable records are an answer here, not a failure. Undefined when the session was
 * deleted meanwhile.
 */
export async function foldTail(
  storage: JournalStorage,
  base: SessionFold,
  options: Abortable,
): Promise<Folded | undefined> {
  let state = base;
  try {
    for await (const event of replay(storage, base.id, base.seq + 1, options)) state = foldEvent(state, event);
    return { state, history: "whole" };
  } catch (error) {
    if (isLooprigError(error, "journal.damaged")) return { state, history: "damaged" };
    if (isLooprigError(error, "journal.newer")) return { state, history: "newer" };
    if (isLooprigError(error, "session.unknown")) return undefined;
    throw error;
  }
}

/** Folds the whole journal and accepts nothing less than all of it. */
export async function foldWhole(
  storage: JournalStorage,
  sessionId: SessionId,
  options: Abortable,
): Promise<SessionFold> {
  let state = emptyFold(sessionId);
  for await (const event of replay(storage, sessionId, 1, options)) state = foldEvent(state, event);
  return state;
}
