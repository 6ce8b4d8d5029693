/**
 * The record of a root: one small value per canonical root, shared by every session that is ever attached to it.
 *
 * It owns the root's clock and numbers (checkpoints and turns are numbered per root, from 1, never reused), the identity of
 * the directory (R7) and the capture settings that are kept with the root (U11). It changes by compare-and-set only, so
 * sessions of a shared root can draw numbers at the same time; a crash may skip a number and never gives one twice.
 */
import { canonicalJson, isLooprigError, StorageError, yieldToEventLoop } from "../core/index.js";
import type { Abortable, CanonicalRoot, PlanId, SnapshotRef } from "../core/index.js";
import type { StoredIdentity } from "../session-store/index.js";
import type { Kv, KvEntry } from "../storage/index.js";
import { identityFromStored, sameAcrossProcesses } from "./root-identity.js";
import type { RootIdentity } from "./root-identity.js";
import { rootKey } from "./root-lease.js";

export interface RootRecordData {
  readonly v: 0;
  readonly root: string;
  readonly identity?: StoredIdentity | undefined;
  /** Last value drawn of each counter. */
  readonly order: number;
  readonly checkpoint: number;
  readonly turn: number;
  readonly exclude: readonly string[];
  readonly allowLarge: boolean;
  readonly vcs?: "include" | "omit" | undefined;
  readonly maxFileBytes?: number | undefined;
  /** Whether the notice after the first change was shown here. */
  readonly noticed: boolean;
  /** Name, beside the root, of a tree being materialized to take the root's place. Ours to remove while it stands here. */
  readonly staging?: string | undefined;
  readonly swap?: RootSwap | undefined;
  /** Names, beside the root, of directories that stood there once and hold what no capture does. Not ours to remove. */
  readonly backups?: readonly string[] | undefined;
  readonly lastAt: string;
}

/** A directory that is not ours being exchanged for a tree of ours (U7); docs/formats/roots.md has the order. */
export interface RootSwap {
  /** Nothing was moved; the two renames are under way; the tree of ours is in place. */
  readonly phase: "staging" | "renaming" | "swapped";
  readonly planId: PlanId;
  /** The tree of ours. Until the exchange is journaled it is what the session goes on from, whatever was captured since. */
  readonly target: SnapshotRef;
  /** The stranger, captured and pinned. */
  readonly from: SnapshotRef;
  readonly stranger: StoredIdentity;
  /** Where the stranger is from the first rename on: a name beside the root. */
  readonly backup?: string | undefined;
  readonly built?: StoredIdentity | undefined;
}

export interface Drawn {
  readonly order: number;
  readonly checkpoint: number;
  readonly turn: number;
}

/** The record without its exchange. A backup that was not cleared is nobody's task any more, and stays. */
export function withoutSwap({ swap, backups, ...data }: RootRecordData): RootRecordData {
  const left = swap?.phase === "swapped" ? swap.backup : undefined;
  return { ...data, ...withBackup(backups, left) };
}

/** Whether the directory is the one that an exchange has put in place. */
export const isBuilt = ({ swap }: RootRecordData, identity: RootIdentity): boolean =>
  swap?.phase === "swapped" &&
  swap.built !== undefined &&
  sameAcrossProcesses(identity, identityFromStored(swap.built));

/** For a record: the backups known, and one more. */
export const withBackup = (
  backups: RootRecordData["backups"],
  more: string | undefined,
): Pick<RootRecordData, "backups"> =>
  more === undefined ? { backups } : { backups: [...(backups ?? []).filter((each) => each !== more), more] };

const attemptsMax = 1_000;
const keyOf = (root: CanonicalRoot): string => `roots/${rootKey(root)}`;

export class RootRecord {
  readonly #kv: Kv;
  readonly #root: CanonicalRoot;

  constructor(kv: Kv, root: CanonicalRoot) {
    this.#kv = kv;
    this.#root = root;
  }

  /** Undefined when no session was ever attached to the root. */
  async read(options: Abortable = {}): Promise<RootRecordData | undefined> {
    const entry = await this.#kv.get(keyOf(this.#root), options);
    return entry === undefined ? undefined : parse(entry);
  }

  /** Applies `change` to the present value (a fresh one at first) and returns what was stored. `change` may run several times. */
  async update(change: (data: RootRecordData) => RootRecordData, options: Abortable = {}): Promise<RootRecordData> {
    const key = keyOf(this.#root);
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const entry = await this.#kv.get(key, options);
      const next = change(entry === undefined ? fresh(this.#root) : parse(entry));
      try {
        await this.#kv.set(key, Buffer.from(canonicalJson({ ...next })), {
          ...options,
          revision: entry?.revision ?? 0,
        });
        return next;
      } catch (error) {
        if (!isLooprigError(error, "kv.conflict")) throw error;
        await yieldToEventLoop();
      }
    }
    throw new StorageError(
      "storage.busy",
      `Cannot update the record of "${this.#root}": others kept changing it; try again`,
      {
        operation: "root record",
      },
      { retryable: true },
    );
  }

  /** Draws the next place on the root's clock and, where asked for, the next checkpoint or turn number. */
  async draw(
    what: { readonly checkpoint?: boolean; readonly turn?: boolean },
    at: Date,
    options: Abortable = {},
  ): Promise<Drawn> {
    const { order, checkpoint, turn } = await this.update(
      (data) => ({
        ...data,
        order: data.order + 1,
        checkpoint: data.checkpoint + (what.checkpoint === true ? 1 : 0),
        turn: data.turn + (what.turn === true ? 1 : 0),
        lastAt: at.toISOString(),
      }),
      options,
    );
    return { order, checkpoint, turn };
  }
}

/** Every root a session was ever attached to, in no order. */
export async function recordedRoots(
  kv: Kv,
  options: Abortable = {},
): Promise<readonly { readonly root: CanonicalRoot; readonly lastAt: Date }[]> {
  return (await kv.list("roots/", options)).map((entry) => {
    const { root, lastAt } = parse(entry);
    return { root: root as CanonicalRoot, lastAt: new Date(lastAt) };
  });
}

const fresh = (root: CanonicalRoot): RootRecordData => ({
  v: 0,
  root,
  order: 0,
  checkpoint: 0,
  turn: 0,
  exclude: [],
  allowLarge: false,
  noticed: false,
  lastAt: new Date(0).toISOString(),
});

function parse(entry: KvEntry): RootRecordData {
  const data = JSON.parse(Buffer.from(entry.value).toString("utf8")) as RootRecordData;
  if ((data.v as number) !== 0) {
    throw new StorageError(
      "storage.unsupported_version",
      `Cannot use the record of "${data.root}": it was written by a newer looprig; install that version`,
      { dir: entry.key, found: data.v, supported: 0 },
    );
  }
  return data;
}
