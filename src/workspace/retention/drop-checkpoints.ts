/**
 * Carries out what a policy decides for one root: looks, records, unpins. What is freed by it is the collector's to say.
 *
 * Rules:
 * 1. A root in which a session is live, a restore waits to be settled, or a journal cannot be read whole is left alone: what
 *    it needs is not known.
 * 2. The root's lease is held meanwhile, and the lease of each session whose pins go (G2): nobody undoes, restores or
 *    checkpoints there between the decision and its end.
 * 3. Recorded → unpinned. A run that was cut short is gone on with by the next one: pins of recorded checkpoints go too.
 */
import { isLooprigError, mintSessionId, nodeFileSystem } from "../../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem, SessionId, SnapshotRef } from "../../core/index.js";
import type { Journal, UndoEntryName } from "../../session-store/index.js";
import type { Storage } from "../../storage/index.js";
import type { Checkpoint } from "../contracts.js";
import type { FoldedHistory } from "../history.js";
import { acquireRootLease } from "../root-lease.js";
import { RootReader } from "../root-reader.js";
import { recordDropped } from "./drop-records.js";
import { decideDrop } from "./keep-policy.js";
import type { DropDecision, KeepPolicy } from "./keep-policy.js";

/** A pin that goes with a drop. */
export interface PinName {
  readonly owner: string;
  readonly id: string;
}

/** What a policy does to one root. */
export interface RootDrop {
  readonly root: CanonicalRoot;
  /** Checkpoints that go, and how many stay. */
  readonly checkpoints: readonly Checkpoint[];
  readonly kept: number;
  /** Turns and restores that can be undone no more. */
  readonly entries: readonly UndoEntryName[];
  readonly pins: readonly PinName[];
  /** Set where the root was left alone: somebody is at work in it, a restore was cut short, a journal cannot be read. */
  readonly skipped?: "in use" | "unsettled" | "damaged";
}

export interface DropOptions extends Abortable {
  readonly fileSystem?: FileSystem | undefined;
  readonly clock?: (() => Date) | undefined;
}

/** What `dropCheckpoints` would do now. Takes no lease and writes nothing. */
export async function planDrop(
  storage: Storage,
  root: CanonicalRoot,
  policy: KeepPolicy,
  options: DropOptions = {},
): Promise<RootDrop> {
  return (await look(readerOf(storage, root, options), policy, options)).drop;
}

/** Drops what the policy lets go of one root, durable on return. Afterwards nothing keeps its bytes but the grace period. */
export async function dropCheckpoints(
  storage: Storage,
  root: CanonicalRoot,
  policy: KeepPolicy,
  options: DropOptions = {},
): Promise<RootDrop> {
  const { signal, fileSystem = nodeFileSystem } = options;
  const reader = readerOf(storage, root, options);
  const claim = { sessionId: mintSessionId(), command: "gc" };
  let lease;
  try {
    lease = await acquireRootLease(storage.leaser, root, claim, { signal, fileSystem });
  } catch (error) {
    if (!isLooprigError(error, "workspace_root.busy")) throw error;
    return skipped(root, "in use");
  }
  await using _held = lease;
  const { drop, history } = await look(reader, policy, options);
  const owners = new Set(drop.pins.map(({ owner }) => owner));
  const opened: Journal[] = [];
  try {
    for (const id of history?.sessions ?? []) {
      if (owners.has(id)) opened.push(await reader.sessions.open(id, { command: "gc", subject: root }, { signal }));
    }
    for (const { sessionId } of opened) await record(reader, sessionId, drop, history, options);
    lease.assertHeld();
    for (const pin of drop.pins) await reader.store.unpin(pin, { signal });
    return drop;
  } catch (error) {
    if (isLooprigError(error, "lease.held")) return skipped(root, "in use");
    throw error;
  } finally {
    for (const journal of opened) await journal.close();
  }
}

const skipped = (root: CanonicalRoot, why: RootDrop["skipped"] & string): RootDrop => ({
  ...{ root, checkpoints: [], kept: 0, entries: [], pins: [], skipped: why },
});

const readerOf = (storage: Storage, root: CanonicalRoot, { fileSystem, clock }: DropOptions): RootReader =>
  // The placement matters to captures only, and none is taken.
  new RootReader({ storage, root, placement: "exclusive", fileSystem, clock });

interface Look {
  readonly drop: RootDrop;
  readonly history: FoldedHistory | undefined;
}

async function look(reader: RootReader, policy: KeepPolicy, { signal }: Abortable): Promise<Look> {
  const { root } = reader;
  const alone = (why: RootDrop["skipped"] & string): Look => ({ drop: skipped(root, why), history: undefined });
  const sessions = await reader.sessions.list({ root, signal });
  if (sessions.some(({ state }) => state === "live")) return alone("in use");
  if (sessions.some(({ history }) => history !== "whole")) return alone("damaged");
  const record = await reader.record.read({ signal });
  if (record?.swap !== undefined || (await reader.plans.read({ signal })) !== undefined) return alone("unsettled");
  let history: FoldedHistory;
  try {
    history = await reader.history({ signal });
  } catch (error) {
    if (isLooprigError(error, "journal.newer")) return alone("damaged");
    throw error;
  }
  if (history.damaged.length > 0) return alone("damaged");
  // A session that is closed goes on from what stands in the root, whose newest tree stays anyhow.
  const held = sessions
    .filter(({ state }) => state !== "closed")
    .flatMap(({ currentWorkspace }) => currentWorkspace ?? []);
  const decision = decideDrop(history, policy, { held, now: reader.clock() });
  const pins = pinsToRemove(await reader.store.pins({ signal }), history, decision);
  const { checkpoints, entries } = decision;
  const kept = history.checkpoints.filter(({ dropped }) => dropped === undefined).length - checkpoints.length;
  return { drop: { root, checkpoints, kept, entries, pins }, history };
}

/**
 * The pins that keep what is dropped. Those of restores name their trees a second time, and go when nothing they name is
 * kept by them alone.
 */
export function pinsToRemove(
  pins: readonly (PinName & { readonly refs: readonly SnapshotRef[] })[],
  history: Pick<FoldedHistory, "sessions" | "checkpoints" | "restorations">,
  { checkpoints, calls }: Pick<DropDecision, "checkpoints" | "calls">,
): readonly PinName[] {
  const dropped = [...checkpoints, ...history.checkpoints.filter((each) => each.dropped !== undefined)];
  const gone = new Set(dropped.map(({ ref }) => ref));
  const stay = new Set(history.checkpoints.map(({ ref }) => ref).filter((ref) => !gone.has(ref)));
  const named = new Set([
    ...dropped.map(({ sessionId, number }) => `${sessionId}/c${number}`),
    ...calls.map(({ sessionId, callId }) => `${sessionId}/${callId}`),
  ]);
  const settled = new Set(history.restorations.map(({ sessionId, planId }) => `${sessionId}/p${planId}`));
  const ours = new Set<string>(history.sessions);
  const isSpare = (refs: readonly SnapshotRef[]): boolean =>
    refs.some((ref) => gone.has(ref)) && refs.every((ref) => gone.has(ref) || stay.has(ref));
  return pins
    .filter(({ owner, id, refs }) => {
      if (!ours.has(owner)) return false;
      const name = `${owner}/${id}`;
      return named.has(name) || (settled.has(name) && isSpare(refs));
    })
    .map(({ owner, id }) => ({ owner, id }));
}

async function record(
  { storage, clock }: RootReader,
  id: SessionId,
  drop: RootDrop,
  history: FoldedHistory | undefined,
  { signal }: Abortable,
): Promise<void> {
  const ofSession = (checkpoints: readonly Checkpoint[]): number[] =>
    checkpoints.filter(({ sessionId }) => sessionId === id).map(({ number }) => number);
  const numbers = new Set(ofSession(drop.checkpoints));
  if (numbers.size === 0) return;
  await recordDropped(storage.kv, id, { numbers, own: ofSession(history?.checkpoints ?? []), at: clock() }, { signal });
}
