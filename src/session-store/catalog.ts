/**
 * The catalog: one small entry per session, so that listing does not read every journal. Entries are derived from the
 * journals and may lag behind them; only the mark "deleting" is knowledge of their own (docs/formats/journal.md).
 *
 * Invariant: entries change by compare-and-set, each attempt deciding anew on what is stored.
 */
import { canonicalJson, invariant, isLooprigError } from "../core/index.js";
import type { Abortable, SessionId, SnapshotRef } from "../core/index.js";
import type { Kv, KvEntry } from "../storage/index.js";
import { placement, ref } from "./event-shapes.js";
import type { SessionFold } from "./fold.js";
import { catalogKeyOf, catalogPrefix, sessionOf } from "./keys.js";
import { Misfit, count, flag, members, optional, text, time } from "./shape.js";

export interface CatalogEntry {
  readonly state: SessionFold;
  readonly deleting: boolean;
}

const entryVersion = 0;
/** Each conflict is another writer's success, and writers of one entry are few. */
const attemptsMax = 20;

type Stored = Omit<SessionFold, "id" | "root" | "lastCheckpoint" | "currentWorkspace"> & {
  readonly v: number;
  readonly root?: string;
  readonly lastCheckpoint?: { readonly number: number; readonly ref: SnapshotRef };
  readonly currentWorkspace?: SnapshotRef;
  readonly deleting?: boolean;
};

const shape = members<Stored>({
  v: count,
  seq: count,
  root: optional(text),
  placement,
  command: text,
  startedAt: time,
  lastAt: time,
  turns: count,
  checkpoints: count,
  lastCheckpoint: optional(members({ number: count, ref })),
  currentWorkspace: optional(ref),
  closed: flag,
  deleting: optional(flag),
});

function encodeEntry({ state, deleting }: CatalogEntry): Uint8Array {
  const { seq, root, placement, command, turns, checkpoints, lastCheckpoint, currentWorkspace, closed } = state;
  const [startedAt, lastAt] = [state.startedAt.toISOString(), state.lastAt.toISOString()];
  const stored = { v: entryVersion, seq, root, placement, command, startedAt, lastAt, turns, checkpoints, closed };
  const trees = { lastCheckpoint, currentWorkspace };
  return Buffer.from(canonicalJson({ ...stored, ...trees, deleting: deleting ? true : undefined }), "utf8");
}

/** Undefined for what is not an entry of this version: it counts as absent, since the journal says the same and more. */
function decodeEntry(id: SessionId, value: Uint8Array): CatalogEntry | undefined {
  try {
    const { v, deleting, ...stored } = shape(JSON.parse(Buffer.from(value).toString("utf8")), "the entry");
    // Written before trees were folded in: it lacks what the journal tells.
    const lacks = stored.checkpoints > 0 && stored.currentWorkspace === undefined;
    if (v !== entryVersion || lacks) return undefined;
    const absent = { root: undefined, lastCheckpoint: undefined, currentWorkspace: undefined };
    return { state: { ...absent, ...stored, id }, deleting: deleting ?? false };
  } catch (error) {
    if (error instanceof Misfit || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export class Catalog {
  readonly #kv: Kv;

  constructor(kv: Kv) {
    this.#kv = kv;
  }

  async get(id: SessionId, options: Abortable): Promise<CatalogEntry | undefined> {
    return decode(id, await this.#kv.get(catalogKeyOf(id), options));
  }

  /** The entries of the sessions whose ids start with `idPrefix`; undefined stands for one that cannot be read. */
  async list(idPrefix: string, options: Abortable): Promise<ReadonlyMap<SessionId, CatalogEntry | undefined>> {
    const entries = new Map<SessionId, CatalogEntry | undefined>();
    for (const entry of await this.#kv.list(catalogPrefix + idPrefix, options)) {
      const id = sessionOf(entry.key, catalogPrefix);
      if (id !== undefined) entries.set(id, decode(id, entry));
    }
    return entries;
  }

  /**
   * Writes what `decide` makes of the stored entry; undefined leaves it as it is. `decide` runs once per attempt, after
   * the entry was read, so what it finds out elsewhere is at least as new.
   */
  async change(
    id: SessionId,
    decide: (stored: CatalogEntry | undefined) => CatalogEntry | undefined | Promise<CatalogEntry | undefined>,
    options: Abortable,
  ): Promise<void> {
    await this.#retrying(id, options, async (stored) => {
      const entry = await decide(decode(id, stored));
      if (entry === undefined) return;
      invariant(entry.state.id === id, "BUG: a catalog entry belongs to its own session");
      await this.#kv.set(catalogKeyOf(id), encodeEntry(entry), { ...options, revision: stored?.revision ?? 0 });
    });
  }

  /** Removes the entry, if `decide` still says so of what is stored. Absent is fine. */
  async remove(
    id: SessionId,
    decide: (stored: CatalogEntry | undefined) => boolean | Promise<boolean>,
    options: Abortable,
  ): Promise<void> {
    await this.#retrying(id, options, async (stored) => {
      if (stored === undefined || !(await decide(decode(id, stored)))) return;
      await this.#kv.delete(catalogKeyOf(id), { ...options, revision: stored.revision });
    });
  }

  async #retrying(
    id: SessionId,
    options: Abortable,
    attempt: (stored: KvEntry | undefined) => Promise<void>,
  ): Promise<void> {
    for (let attempts = 1; ; attempts++) {
      try {
        await attempt(await this.#kv.get(catalogKeyOf(id), options));
        return;
      } catch (error) {
        if (!isLooprigError(error, "kv.conflict") || attempts === attemptsMax) throw error;
      }
    }
  }
}

const decode = (id: SessionId, entry: KvEntry | undefined): CatalogEntry | undefined =>
  entry && decodeEntry(id, entry.value);
