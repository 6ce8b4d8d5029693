/**
 * Deleting a session: mark → journal → large records → entry (docs/formats/journal.md). Every step can find its work done
 * already, so a deletion cut short anywhere is finished by deleting again.
 */
import type { Abortable, SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { Catalog } from "./catalog.js";
import { emptyFold } from "./fold.js";
import { ledgerOf, recordsOf } from "./keys.js";
import { foldTail } from "./replay.js";

/** How many blob names are in memory at a time. */
const batchMax = 1_000;

/** The caller holds the session's lease. */
export async function deleteSession(
  storage: Pick<Storage, "ledger" | "blobs">,
  catalog: Catalog,
  id: SessionId,
  options: Abortable,
): Promise<void> {
  const exists = (await storage.ledger.head(ledgerOf(id), options)) > 0;
  await catalog.change(
    id,
    async (stored) => {
      if (stored?.deleting === true || (stored === undefined && !exists)) return undefined;
      // What people see of a deletion that was cut short is what the session was.
      const known = stored ?? (await foldTail(storage, emptyFold(id), options));
      return { state: known?.state ?? emptyFold(id), deleting: true };
    },
    options,
  );
  await storage.ledger.delete(ledgerOf(id), options);
  await deleteRecords(storage, id, options);
  await catalog.remove(id, () => true, options);
}

async function deleteRecords({ blobs }: Pick<Storage, "blobs">, id: SessionId, options: Abortable): Promise<void> {
  for (;;) {
    // Names first, deletions after: what a listing shows while it is deleted from is left to each backend.
    const keys: string[] = [];
    for await (const { key } of blobs.list(recordsOf(id), options)) {
      keys.push(key);
      if (keys.length === batchMax) break;
    }
    if (keys.length === 0) return;
    for (const key of keys) await blobs.delete(key, options);
  }
}
