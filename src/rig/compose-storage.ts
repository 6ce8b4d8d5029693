/**
 * One storage made of parts of several, for placements with a store or leaser of their own. Who a key belongs to decides
 * where it goes: what a session owns to the session store, leases of roots to their leaser, everything else (objects,
 * pins, records and plans of roots) to the workspace store. So whoever is handed the result needs not know of the parts.
 */
import { WorkspacePlacementError } from "../core/index.js";
import type { Blobs, BlobInfo, Kv, Leaser, Storage, StorageKey } from "../storage/index.js";
import type { LeaserParts, SessionStoreParts, WorkspaceStoreParts } from "./options.js";

export interface StorageParts {
  readonly sessions: SessionStoreParts;
  readonly snapshots: WorkspaceStoreParts;
  readonly rootLeases: LeaserParts;
}

/** What the session store calls its own, beside ledgers and leases: listings in the KV, large events in the blobs. */
const catalogPrefix = "catalog/";
const recordsPrefix = "records/";
const rootLeasesPrefix = "workspace-roots/";

/** The parts stay their owners': closing the result closes none of them. */
export function composeStorage({ sessions, snapshots, rootLeases }: StorageParts): Storage {
  const close = async (): Promise<void> => undefined;
  return Object.freeze({
    ledger: sessions.ledger,
    leaser: sessions.leaser === rootLeases.leaser ? sessions.leaser : routedLeaser(sessions.leaser, rootLeases.leaser),
    kv: sessions.kv === snapshots.kv ? sessions.kv : routedKv(sessions.kv, snapshots.kv),
    blobs: sessions.blobs === snapshots.blobs ? sessions.blobs : routedBlobs(sessions.blobs, snapshots.blobs),
    locality: snapshots.locality,
    persistencePaths: () => [
      ...new Set([sessions, snapshots, rootLeases].flatMap((part) => [...part.persistencePaths()])),
    ],
    spoolDir: snapshots.spoolDir,
    disk: snapshots.disk,
    close,
    [Symbol.asyncDispose]: close,
  });
}

function routedKv(ofSessions: Kv, ofRoots: Kv): Kv {
  const at = (key: StorageKey): Kv => (key.startsWith(catalogPrefix) ? ofSessions : ofRoots);
  return {
    get: (key, options) => at(key).get(key, options),
    set: (key, value, options) => at(key).set(key, value, options),
    delete: (key, options) => at(key).delete(key, options),
    list: async (prefix, options) => {
      if (prefix.startsWith(catalogPrefix)) return ofSessions.list(prefix, options);
      const outer = await ofRoots.list(prefix, options);
      if (!catalogPrefix.startsWith(prefix)) return outer;
      return merged(outer, await ofSessions.list(catalogPrefix, options), catalogPrefix, ({ key }) => key);
    },
  };
}

function routedLeaser(ofSessions: Leaser, ofRoots: Leaser): Leaser {
  const at = (name: StorageKey): Leaser => (name.startsWith(rootLeasesPrefix) ? ofRoots : ofSessions);
  return {
    acquire: async (name, claim, options) => {
      const lease = await at(name).acquire(name, claim, options);
      if (lease.name === name) return lease;
      // Two roots could have one lease then, or one root two. What was acquired is given back; why it is matters more.
      await lease.release().catch(() => undefined);
      throw new WorkspacePlacementError(
        "workspace_placement.lease_name_invalid",
        `Cannot take the lease ${JSON.stringify(name)}: the leaser gave one called ${JSON.stringify(lease.name)}; use a leaser that keeps names as they are`,
        { name: lease.name },
      );
    },
    inspect: (name, options) => at(name).inspect(name, options),
    list: async (prefix, options) => {
      if (prefix.startsWith(rootLeasesPrefix)) return ofRoots.list(prefix, options);
      const outer = await ofSessions.list(prefix, options);
      if (!rootLeasesPrefix.startsWith(prefix)) return outer;
      return merged(outer, await ofRoots.list(rootLeasesPrefix, options), rootLeasesPrefix, ({ name }) => name);
    },
  };
}

function routedBlobs(ofSessions: Blobs, ofRoots: Blobs): Blobs {
  const at = (key: StorageKey): Blobs => (key.startsWith(recordsPrefix) ? ofSessions : ofRoots);
  return {
    put: (key, chunks, options) => at(key).put(key, chunks, options),
    get: (key, options) => at(key).get(key, options),
    stat: (key, options) => at(key).stat(key, options),
    list: (prefix, options) => {
      if (prefix.startsWith(recordsPrefix)) return ofSessions.list(prefix, options);
      const outer = ofRoots.list(prefix, options);
      if (!recordsPrefix.startsWith(prefix)) return outer;
      return mergedBlobs(outer, ofSessions.list(recordsPrefix, options));
    },
    delete: (key, options) => at(key).delete(key, options),
  };
}

/** `inner` in its place among `outer`; what `outer` has below `prefix` is not reachable by its key, and so not listed. */
function merged<T>(
  outer: readonly T[],
  inner: readonly T[],
  prefix: string,
  keyOf: (item: T) => StorageKey,
): readonly T[] {
  const others = outer.filter((item) => !keyOf(item).startsWith(prefix));
  const before = others.filter((item) => keyOf(item) < prefix);
  return [...before, ...inner, ...others.slice(before.length)];
}

async function* mergedBlobs(outer: AsyncIterable<BlobInfo>, inner: AsyncIterable<BlobInfo>): AsyncGenerator<BlobInfo> {
  let pending = true;
  for await (const info of outer) {
    if (info.key.startsWith(recordsPrefix)) continue;
    if (pending && info.key > recordsPrefix) {
      pending = false;
      yield* inner;
    }
    yield info;
  }
  if (pending) yield* inner;
}
