/**
 * Taking a root for writing: its leases, the proof that it is the directory recorded, and what has to be settled before
 * anything else is done. The numbers are those of `open-workspace`.
 */
import {
  Directory,
  WorkspacePlacementError,
  WorkspaceRootLeaseLostError,
  errnoOf,
  isLooprigError,
  isMissing,
  mintSessionId,
} from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem, Json, SessionId } from "../core/index.js";
import type { Journal, StoredIdentity } from "../session-store/index.js";
import type { Lease } from "../storage/index.js";
import { mergeSettings } from "./capture-rules.js";
import type { OpenWorkspaceOptions } from "./contracts.js";
import { clearExchange } from "./clear-exchange.js";
import { createCoordinator } from "./coordinator.js";
import type { CoordinatorHealth } from "./coordinator.js";
import { foldName, foldingIn } from "./name-folding.js";
import { OwnedRoot } from "./owned-root.js";
import type { AttachedDirectory } from "./owned-root.js";
import {
  checkRecordedRoot,
  identify,
  identifyDirectory,
  identityFromStored,
  sameAcrossProcesses,
  storedIdentity,
} from "./root-identity.js";
import { acquireRootLease } from "./root-lease.js";
import type { RootReader } from "./root-reader.js";
import type { RootRecordData } from "./root-record.js";
import { isBuilt, withoutSwap } from "./root-record.js";
import { settlePlaces } from "./root-places.js";
import { settlePlans } from "./settle-plans.js";
import { commandRunning, findOrphans, settleSessions } from "./settle-sessions.js";

/** The session of a rig, which owns more than the root: its id, what its first event says besides, and who else hears its events. */
export interface SessionOfRoot {
  readonly id: SessionId;
  readonly resume?: boolean | undefined;
  readonly started?: { readonly fingerprint: string; readonly manifest: Json } | undefined;
  readonly wrap?: ((journal: Journal) => Journal) | undefined;
  /** Fills the root before it is looked at: the leases are held, nothing was journaled. */
  readonly prepare?: (() => Promise<void>) | undefined;
}

export interface TakeRootOptions
  extends Abortable, Pick<OpenWorkspaceOptions, "acceptRunning" | "adoptRoot" | "missingRoot" | "capture"> {
  readonly command: string;
  readonly session?: SessionOfRoot | undefined;
  /**
   * What becomes of a directory with content that is not the recorded one. "yield": it is taken as it is, for the caller to
   * put another in its place (`replaceStranger`) before anything else is done. Default "refuse".
   */
  readonly strangers?: "refuse" | "yield" | undefined;
}

/** Steps 2 to 5. What was taken is pushed on `undo`, for the caller to give back in reverse when something later refuses. */
export async function takeRoot(
  reader: RootReader,
  options: TakeRootOptions,
  undo: (() => Promise<void> | void)[],
): Promise<OwnedRoot> {
  const { root, storage } = reader;
  const { signal, command, session } = options;
  const sessionId = session?.id ?? mintSessionId();
  const claim = { command, subject: root };
  const opened =
    session?.resume === true
      ? await reader.sessions.open(sessionId, claim, { signal })
      : await reader.sessions.create(sessionId, claim, { signal });
  const journal = session?.wrap?.(opened) ?? opened;
  undo.push(() => journal.close());
  const rootLease =
    reader.placement === "exclusive"
      ? await acquireRootLease(storage.leaser, root, { sessionId, command }, { signal, fileSystem: reader.fileSystem })
      : undefined;
  if (rootLease !== undefined) undo.push(() => rootLease.release());

  const health = healthOf(root, journal, rootLease);
  // Of a build that was killed. In a shared root the holder of the lease that builds hold is who settles it.
  if (reader.placement !== "shared") await settlePlaces(reader, () => health.assertHeld(), { signal });
  await prepare(reader, options);
  const recorded = await reader.record.read({ signal });
  const directory = attachDirectory(reader, recorded, options);
  if (directory !== undefined) undo.push(() => directory.handle.close());
  const { orphans, running, newest } = await findOrphans(reader, { signal });
  if (running[0] !== undefined && options.acceptRunning !== true && reader.placement !== "shared") {
    throw commandRunning(reader, running[0]);
  }
  await reader.record.update(
    (data) => ({
      ...mergeSettings(directory === undefined ? data : attachedTo(data, directory), options.capture ?? {}),
      lastAt: reader.clock().toISOString(),
    }),
    { signal },
  );
  const fold = foldOf(reader, directory);
  const coordinator = createCoordinator({ root, health, fold });
  const disturbed = running.length > 0;
  const owned = new OwnedRoot({ reader, journal, rootLease, coordinator, fold, directory, disturbed });
  await announce(owned, recorded, directory, options);
  // Settling a session may add to its journal; what settling a plan adds is in ours.
  if (orphans.length === 0) owned.noteNewest(newest);
  undo.push(async () => {
    await owned.append({ type: "session-closed" });
  });
  if (!owned.missing && owned.stranger === undefined) {
    if (reader.placement !== "shared") await clearExchange(owned, { signal });
    await settlePlans(owned, { signal });
    // Who dies from here on is settled by the next to take the root, as whoever dies later is.
    if (orphans.length > 0) await settleSessions(owned, { signal });
  }
  return owned;
}

/** A stranger is not recorded: who was recorded is what tells that it is one. */
function attachedTo(data: RootRecordData, { identity, stranger }: AttachedDirectory): RootRecordData {
  if (stranger === true) return data;
  return { ...(isBuilt(data, identity) ? data : withoutSwap(data)), identity: storedIdentity(identity) };
}

/** What fills the root may put another directory in its place; the one it finds has to be the recorded one (R7). */
async function prepare(reader: RootReader, { session, adoptRoot, signal }: TakeRootOptions): Promise<void> {
  if (session?.prepare === undefined) return;
  const { fileSystem, root } = reader;
  const identity = (await reader.record.read({ signal }))?.identity;
  if (identity !== undefined && adoptRoot !== true && identify(fileSystem, root) !== undefined) {
    checkRecordedRoot(fileSystem, root, identityFromStored(identity));
  }
  await session.prepare();
}

async function announce(
  owned: OwnedRoot,
  recorded: RootRecordData | undefined,
  directory: AttachedDirectory | undefined,
  { command, session }: TakeRootOptions,
): Promise<void> {
  const { root, placement } = owned.reader;
  const identity =
    directory === undefined || directory.stranger === true ? undefined : storedIdentity(directory.identity);
  if (session?.resume !== true) {
    await owned.append({
      type: "session-started",
      ...{ placement, root, command, ...session?.started },
      ...(identity === undefined ? {} : { identity }),
    });
  }
  const before = recorded?.identity;
  if (
    before === undefined ||
    identity === undefined ||
    (before.ino === identity.ino && before.birthtimeNs === identity.birthtimeNs)
  )
    return;
  await owned.append({
    type: "configuration-adopted",
    changes: [{ field: "root.identity", stored: { ...before }, live: { ...identity } }],
  });
}

/** Step 3. The directory held open, so that it is known wherever it goes; undefined only when a rebuild was asked for. */
function attachDirectory(
  reader: RootReader,
  recorded: RootRecordData | undefined,
  options: TakeRootOptions,
): AttachedDirectory | undefined {
  const { fileSystem, root } = reader;
  let stranger = false;
  if (recorded?.identity === undefined) createFirst(fileSystem, root);
  else if (options.missingRoot === "recreate" && isVacant(fileSystem, root, recorded.identity)) return undefined;
  else if (options.adoptRoot !== true || identify(fileSystem, root) === undefined) {
    if (options.strangers === "yield" && isStranger(fileSystem, root, recorded.identity)) stranger = true;
    else checkRecordedRoot(fileSystem, root, identityFromStored(recorded.identity));
  }
  const handle = Directory.open(fileSystem, root);
  // Of the directory that is held: if another one took its place since the check, the next look at the path finds it.
  return { handle, identity: identifyDirectory(fileSystem, handle), stranger };
}

function isStranger(fileSystem: FileSystem, root: CanonicalRoot, recorded: StoredIdentity): boolean {
  const found = identify(fileSystem, root);
  return found !== undefined && !sameAcrossProcesses(found, identityFromStored(recorded));
}

/** Whether nothing stands there, or an empty directory that is not the recorded one: that makes way (P1). */
function isVacant(fileSystem: FileSystem, root: CanonicalRoot, recorded: StoredIdentity): boolean {
  const found = identify(fileSystem, root);
  if (found === undefined) return isAbsent(fileSystem, root);
  if (sameAcrossProcesses(found, identityFromStored(recorded))) return false;
  try {
    // Succeeds only where there is nothing in it.
    fileSystem.rmdir(root);
    return true;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}

/** A file or a link stands for no directory either, and makes way for none. */
function isAbsent(fileSystem: FileSystem, root: CanonicalRoot): boolean {
  try {
    fileSystem.lstat(root);
    return false;
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

/** A root that never was is made by its first session, one level: its parent is not ours to invent. */
function createFirst(fileSystem: FileSystem, root: CanonicalRoot): void {
  if (identify(fileSystem, root) !== undefined) return;
  try {
    fileSystem.mkdir(root, 0o777);
  } catch (error) {
    const what =
      errnoOf(error) === "EEXIST" ? "something that is no directory stands there" : "it cannot be made there";
    throw new WorkspacePlacementError(
      "workspace_placement.canonicalize_failed",
      `Cannot use "${root}" as a workspace: ${what}; give the path of a directory`,
      { option: "root", path: root },
      { cause: error },
    );
  }
}

/** Where the root's volume takes several spellings for one name, they are one path to permits and observations too (R1, C1, C8). */
function foldOf(reader: RootReader, directory: AttachedDirectory | undefined): ((name: string) => string) | undefined {
  const folding = directory === undefined ? undefined : foldingIn(reader.fileSystem, reader.root);
  return folding?.case === true || folding?.composition === true ? (name) => foldName(name, folding) : undefined;
}

/** The session is ours while both leases are (C5, C7). */
function healthOf(root: CanonicalRoot, journal: Journal, rootLease: Lease | undefined): CoordinatorHealth {
  const leases = rootLease === undefined ? [journal.lease] : [journal.lease, rootLease];
  return {
    lost: AbortSignal.any(leases.map((lease) => lease.lost)),
    assertHeld: () => {
      try {
        for (const lease of leases) lease.assertHeld();
      } catch (error) {
        if (!isLooprigError(error, "lease.lost")) throw error;
        throw new WorkspaceRootLeaseLostError(
          "workspace_root.lease_lost",
          `Cannot go on in "${root}": its lease was lost; open it again`,
          { root },
          { cause: error },
        );
      }
    },
  };
}
