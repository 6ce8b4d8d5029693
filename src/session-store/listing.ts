/** Listing sessions: catalog entries, the tails of journals they do not cover, and who is alive. Reads only. */
import type { Abortable, SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { Catalog, CatalogEntry } from "./catalog.js";
import type { SessionSummary } from "./contracts.js";
import { emptyFold } from "./fold.js";
import { ledgerOf, sessionOf, sessionsPrefix } from "./keys.js";
import { foldTail } from "./replay.js";
import type { Folded } from "./replay.js";

type ListedStorage = Pick<Storage, "ledger" | "blobs" | "leaser">;

export interface SessionQuery {
  readonly idPrefix: string;
  readonly root: string | undefined;
}

export async function listSessions(
  storage: ListedStorage,
  catalog: Catalog,
  query: SessionQuery,
  options: Abortable,
): Promise<readonly SessionSummary[]> {
  const live = new Set(await liveSessions(storage, query, options));
  // Entries before ledgers: a session deleted in between is then missing from the second, not half there.
  const entries = await catalog.list(query.idPrefix, options);
  const ids = new Set(await storedSessions(storage, query.idPrefix, options));
  for (const [id, entry] of entries) if (entry?.deleting === true) ids.add(id);

  const found: (Folded & { readonly deleting: boolean })[] = [];
  for (const id of ids) {
    options.signal?.throwIfAborted();
    const entry = entries.get(id);
    if (query.root !== undefined && entry !== undefined && entry.state.root !== query.root) continue;
    const session = await current(storage, id, entry, options);
    if (session === undefined || (query.root !== undefined && session.state.root !== query.root)) continue;
    found.push({ ...session, deleting: entry?.deleting ?? false });
  }

  // Once more: a session that began meanwhile must not look like one that was cut off.
  for (const id of await liveSessions(storage, query, options)) live.add(id);
  return found.map((session) => summarize(session, session.deleting, live)).sort(newestFirst);
}

/** The state of a session at this moment; undefined when it has neither a journal nor an entry that says "deleting". */
async function current(
  storage: ListedStorage,
  id: SessionId,
  entry: CatalogEntry | undefined,
  options: Abortable,
): Promise<Folded | undefined> {
  const head = await storage.ledger.head(ledgerOf(id), options);
  if (head === 0) return entry?.deleting === true ? { state: entry.state, history: "whole" } : undefined;
  // An entry ahead of its journal is not of this journal.
  const base = entry !== undefined && entry.state.seq <= head ? entry.state : emptyFold(id);
  return base.seq === head ? { state: base, history: "whole" } : foldTail(storage, base, options);
}

function summarize({ state, history }: Folded, deleting: boolean, live: ReadonlySet<SessionId>): SessionSummary {
  const { seq: _seq, closed, ...known } = state;
  const now = deleting ? "deleting" : live.has(state.id) ? "live" : closed ? "closed" : "interrupted";
  return { ...known, state: now, history };
}

const newestFirst = (a: SessionSummary, b: SessionSummary): number =>
  b.startedAt.getTime() - a.startedAt.getTime() || b.lastAt.getTime() - a.lastAt.getTime() || (a.id < b.id ? -1 : 1);

async function liveSessions(
  storage: ListedStorage,
  { idPrefix }: SessionQuery,
  options: Abortable,
): Promise<readonly SessionId[]> {
  const leases = await storage.leaser.list(sessionsPrefix + idPrefix, options);
  return leases.map(({ name }) => sessionOf(name, sessionsPrefix)).filter((id) => id !== undefined);
}

/** The sessions that have a journal. */
export async function storedSessions(
  { ledger }: Pick<Storage, "ledger">,
  idPrefix: string,
  options: Abortable,
): Promise<readonly SessionId[]> {
  const names = await ledger.list(sessionsPrefix + idPrefix, options);
  return names.map((name) => sessionOf(name, sessionsPrefix)).filter((id) => id !== undefined);
}
