/**
 * A directory with content that is not the recorded one makes way for the session's tree (P1, U7): it is captured in its
 * place first, and the whole root is exchanged. docs/formats/roots.md has the order and what a kill leaves; `root-places`
 * moves the directories, `clear-exchange` sees to what the stranger leaves behind.
 */
import path from "node:path";
import { Directory, WorkspaceRootChangedError, errnoOf, invariant, isLooprigError, mintPlanId } from "../core/index.js";
import type { Abortable, SnapshotRef } from "../core/index.js";
import { removeStaging, stageRoot } from "./build-root.js";
import { clearExchange } from "./clear-exchange.js";
import type { OwnedRoot, TakenCheckpoint } from "./owned-root.js";
import { identifyIn, storedIdentity } from "./root-identity.js";
import { exchange } from "./root-places.js";
import type { ReadySwap } from "./root-places.js";
import type { RootReader } from "./root-reader.js";
import { withoutSwap } from "./root-record.js";
import type { RootSwap } from "./root-record.js";
import { assertEnded } from "./settle-sessions.js";
import { openTurn } from "./history.js";
import type { NewEvent } from "../session-store/index.js";

/** The tree the session goes on from: its newest checkpoint, unless that is of a stranger whose exchange was cut short. */
export async function treeToGoOnFrom(reader: RootReader, options: Abortable = {}): Promise<SnapshotRef | undefined> {
  const { checkpoints, restorations } = await reader.history(options);
  const swap = (await reader.record.read(options))?.swap;
  const open = swap !== undefined && !restorations.some(({ planId }) => planId === swap.planId);
  return open ? swap.target : checkpoints.at(-1)?.ref;
}

/**
 * Rejects with `workspace_root.changed` when the stranger cannot be captured completely, or its directory cannot be moved:
 * it stands there as before then. What was begun is gone on with by the next call, in this process or another.
 */
export async function replaceStranger(owned: OwnedRoot, options: Abortable = {}): Promise<void> {
  const { reader, stranger } = owned;
  invariant(stranger !== undefined, "BUG: there is no stranger to be replaced");
  await assertNothingRuns(owned, options);
  const target = (await treeToGoOnFrom(reader, options)) ?? (await reader.store.keep([], options));
  {
    using permit = await owned.coordinator.acquire({ operation: "checkpoint" }, options);
    const { result, event } = await captured(owned, options);
    const planId = mintPlanId();
    await reader.store.pin({ owner: owned.sessionId, id: `p${planId}` }, [result.ref, target], options);
    const swap: RootSwap = {
      ...{ phase: "staging", planId, target, from: result.ref, stranger: storedIdentity(stranger) },
    };
    const { identity } = await reader.record.update((data) => ({ ...withoutSwap(data), swap }), options);
    await owned.append(event);
    const tree = await reader.store.open(target, options);
    const staging = await stageRoot(reader, tree, { mode: identity?.mode ?? 0o755, signal: options.signal });
    await putInPlace(owned, swap, staging, () => {
      permit.assertHeld();
      owned.directory();
    });
  }
  await clearExchange(owned, options);
}

/** What the session left running when it was killed could write into the stranger while it is captured. */
async function assertNothingRuns({ reader, sessionId }: OwnedRoot, options: Abortable): Promise<void> {
  const turn = openTurn((await reader.trace(sessionId, true, options)).events);
  if (turn !== undefined) await assertEnded(reader, sessionId, turn);
}

async function captured(
  owned: OwnedRoot,
  options: Abortable,
): Promise<TakenCheckpoint<NewEvent<"workspace-checkpointed">>> {
  try {
    return await owned.takeAlways({ trigger: "pre-restore", complete: true, signal: options.signal });
  } catch (error) {
    if (!isLooprigError(error, "capture.incomplete", "capture.too_large", "capture.root_unreadable")) throw error;
    throw refused(owned, "what is in it cannot be captured completely first", error);
  }
}

/** Steps 5 to 8. */
async function putInPlace(owned: OwnedRoot, begun: RootSwap, staging: string, assertReady: () => void): Promise<void> {
  const { reader } = owned;
  const { fileSystem, root, record } = reader;
  using parent = Directory.open(fileSystem, path.dirname(root));
  const identity = identifyIn(fileSystem, parent, staging);
  invariant(identity !== undefined, "BUG: what was staged is not there");
  const built = storedIdentity(identity);
  const backup = `.${path.basename(root)}.${begun.planId}.backup`;
  const swap: ReadySwap = { ...begun, phase: "renaming", backup, built };
  await record.update((data) => ({ ...data, swap }));
  try {
    exchange(reader, staging, swap, assertReady);
  } catch (error) {
    await takeBack(owned, begun, backup);
    throw errnoOf(error) === undefined ? error : refused(owned, `it cannot be moved (${errnoOf(error) ?? ""})`, error);
  }
  const handle = parent.child(path.basename(root));
  await record.update((data) => ({
    ...data,
    identity: built,
    staging: undefined,
    swap: { ...swap, phase: "swapped" },
  }));
  await owned.attach(handle);
}

/** Unless the root is not ours any more, or the stranger could not be moved back: then the next opener does it. */
async function takeBack({ reader, coordinator }: OwnedRoot, begun: RootSwap, backup: string): Promise<void> {
  coordinator.assertHealthy();
  using parent = Directory.open(reader.fileSystem, path.dirname(reader.root));
  if (identifyIn(reader.fileSystem, parent, backup) !== undefined) return;
  await reader.record.update((data) => ({ ...data, swap: begun }));
  await removeStaging(reader);
}

function refused({ reader: { root } }: OwnedRoot, why: string, cause: unknown): WorkspaceRootChangedError {
  return new WorkspaceRootChangedError(
    "workspace_root.changed",
    `Cannot go on in "${root}": another directory stands there now, and ${why}; move it away, or adopt it`,
    { root, state: "replaced" },
    { cause },
  );
}
