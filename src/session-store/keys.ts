/** Where a session lies in the storage (docs/formats/journal.md, Names). */
import { isLooprigError, parseSessionId } from "../core/index.js";
import type { EventId, SessionId } from "../core/index.js";
import type { StorageKey } from "../storage/index.js";

export const sessionsPrefix = "sessions/";
export const catalogPrefix = "catalog/";
export const recordsPrefix = "records/";

export const ledgerOf = (id: SessionId): StorageKey => `${sessionsPrefix}${id}`;
export const leaseOf = (id: SessionId): StorageKey => `${sessionsPrefix}${id}`;
export const catalogKeyOf = (id: SessionId): StorageKey => `${catalogPrefix}${id}`;
export const recordsOf = (id: SessionId): string => `${recordsPrefix}${id}/`;
export const blobOf = (id: SessionId, event: EventId): StorageKey => `${recordsOf(id)}${event}`;

/** The session a key below `prefix` belongs to; undefined for keys that are not of our making. */
export function sessionOf(key: StorageKey, prefix: string): SessionId | undefined {
  try {
    return parseSessionId(key.slice(prefix.length).split("/", 1)[0] ?? "");
  } catch (error) {
    if (isLooprigError(error, "session_id.invalid")) return undefined;
    throw error;
  }
}
