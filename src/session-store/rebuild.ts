/**
 * Makes the catalog again from what it is derived from. Runs beside live sessions: an entry is replaced only by a fold that
 * began after it was read, so a writer's newer entry is never lost.
 */
import type { Abortable, SessionId } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import type { Catalog } from "./catalog.js";
import { emptyFold } from "./fold.js";
import { leaseOf, ledgerOf, recordsPrefix, sessionOf } from "./keys.js";
import { storedSessions } from "./listing.js";
import { foldTail } from "./replay.js";

type RebuiltStorage = Pick<Storage, "ledger" | "blobs" | "leaser">;

export async function rebuildCatalog(storage: RebuiltStorage, catalog: Catalog, options: Abortable): Promise<void> {
  for (const id of await storedSessions(storage, "", options)) {
    await catalog.change(
      id,
      async (stored) => {
        const folded = await foldTail(storage, emptyFold(id), options);
        if (folded === undefined) return undefined;
        const { state } = folded;
        // Nothing readable, not even the first record: an entry that still knows the session's name is worth keeping.
        if (state.seq === 0 && stored !== undefined) return undefined;
        return { state, deleting: stored?.deleting ?? false };
      },
      options,
    );
  }
  for await (const id of recordsWithoutJournal(storage, options)) {
    await catalog.change(
      id,
      (stored) => (stored?.deleting ? undefined : { state: emptyFold(id), deleting: true }),
      options,
    );
  }
  for (const id of (await catalog.list("", options)).keys()) {
    const isLeftOver = async (deleting: boolean): Promise<boolean> =>
      !deleting && (await storage.ledger.head(ledgerOf(id), options)) === 0;
    await catalog.remove(id, (stored) => isLeftOver(stored?.deleting ?? false), options);
  }
}

/**
 * Sessions that are nothing but large records: a first append or a deletion was cut short. The order of the questions
 * matters: a writer holds its lease from before the blob until after the record, so a blob without holder and, asked
 * last, without journal is nobody's.
 */
async function* recordsWithoutJournal(storage: RebuiltStorage, options: Abortable): AsyncGenerator<SessionId> {
  let last: SessionId | undefined;
  for await (const { key } of storage.blobs.list(recordsPrefix, options)) {
    const id = sessionOf(key, recordsPrefix);
    if (id === undefined || id === last) continue;
    last = id;
    if ((await storage.leaser.inspect(leaseOf(id), options)) !== undefined) continue;
    if ((await storage.ledger.head(ledgerOf(id), options)) === 0) yield id;
  }
}
