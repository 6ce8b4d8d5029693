/** Sessions and roots of a storage, for listings and deletion. */
import type { Abortable, CanonicalRoot } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { SessionSummary } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import { createWorkspaceStore } from "../workspace-store/index.js";
import { forgetDropped } from "./retention/drop-records.js";
import { recordedRoots } from "./root-record.js";

/** The sessions of a storage, newest start first; with `root`, only those of that canonical root. Takes no lease. */
export function listSessions(
  storage: Storage,
  options: Abortable & { readonly root?: string | undefined } = {},
): Promise<readonly SessionSummary[]> {
  return createSessionStore(storage).list(options);
}

/**
 * Deletes a session that is not live: its journal first, then its pins, so that no journal ever names what nothing keeps.
 * A deletion cut short is finished by calling it again, and a full disk stops none. `session.unknown`, `session.ambiguous`, `lease.held`.
 */
export async function deleteSession(
  storage: Storage,
  idOrPrefix: string,
  options: Abortable = {},
): Promise<SessionSummary> {
  const work = async (): Promise<SessionSummary> => {
    const sessions = createSessionStore(storage);
    const found = await sessions.find(idOrPrefix, options);
    await sessions.delete(found.id, { command: "sessions rm" }, options);
    await createWorkspaceStore(storage).unpin({ owner: found.id }, options);
    await forgetDropped(storage.kv, found.id, options);
    return found;
  };
  // The database needs room to forget something, too.
  return storage.disk === undefined ? work() : storage.disk.withReserve(work);
}

/** Every root a session was ever attached to, most recently used first. */
export async function knownRoots(
  storage: Storage,
  options: Abortable = {},
): Promise<readonly { readonly root: CanonicalRoot; readonly lastAt: Date }[]> {
  return [...(await recordedRoots(storage.kv, options))].sort((a, b) => b.lastAt.getTime() - a.lastAt.getTime());
}
