/**
 * Opening a workspace for writing, and looking at one without.
 *
 * Order of opening, each step undone in reverse when a later one refuses:
 * 1. every option checked, the root canonicalized, the boundary to our own storage checked (B1) – nothing was touched
 * 2. session lease, then root lease (R2, R3) – on contention nothing was written
 * 3. identity of the directory against the recorded one (R7)
 * 4. `session-started`
 * 5. an unsettled plan of the root is settled (U9), then sessions that died are (G5)
 * 6. the baseline, unless the caller does without
 */
import {
  Directory,
  WorkspacePlacementError,
  WorkspaceRootLeaseLostError,
  errnoOf,
  isLooprigError,
  mintSessionId,
  nodeFileSystem,
} from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem } from "../core/index.js";
import type { Journal } from "../session-store/index.js";
import type { Lease, Storage } from "../storage/index.js";
import { assertNarrowRoot, canonicalHomes } from "./broad-root.js";
import { canonicalPath } from "./canonical-path.js";
import { checkOpenOptions, defaultCommand, mergeSettings } from "./capture-rules.js";
import type { OpenWorkspaceOptions, ReadWorkspaceOptions, Workspace, WorkspaceView } from "./contracts.js";
import { createCoordinator } from "./coordinator.js";
import type { CoordinatorHealth } from "./coordinator.js";
import { OwnedRoot } from "./owned-root.js";
import type { AttachedDirectory } from "./owned-root.js";
import { OwnedWorkspace } from "./owned-workspace.js";
import { foldName, foldingIn } from "./name-folding.js";
import { assertOutside } from "./persistence-boundary.js";
import { settlePlans } from "./settle-plans.js";
import { checkRecordedRoot, identify, identifyDirectory, identityFromStored, storedIdentity } from "./root-identity.js";
import { acquireRootLease } from "./root-lease.js";
import { RootReader } from "./root-reader.js";
import type { RootRecordData } from "./root-record.js";
import { commandRunning, runningOrphans, settleSessions } from "./settle-sessions.js";
import { RootView } from "./view.js";

/** What a program is put together from at its edge; tests put in their own. */
export interface WorkspaceWorld {
  readonly fileSystem?: FileSystem | undefined;
  readonly clock?: (() => Date) | undefined;
  /** Opens the storage of callers that give none. It is closed with the workspace. */
  readonly openDefaultStorage?: ((options: Abortable) => Promise<Storage>) | undefined;
  /** Where that storage would be made: a root that holds the place is refused before it is. */
  readonly defaultStorageDir?: (() => Promise<string>) | undefined;
  /** Home directories, which are too broad to be roots without consent. */
  readonly homes?: readonly string[] | undefined;
  readonly argv?: readonly string[] | undefined;
}

/** A root for reading only: no lease, nothing written but a private cache. */
export async function readWorkspace(options: ReadWorkspaceOptions, world: WorkspaceWorld = {}): Promise<WorkspaceView> {
  checkOpenOptions(options);
  const root = canonicalPath(options.root, { fileSystem: world.fileSystem });
  const { storage, close } = await storageFor(options, world);
  const { adoptRoot, onProgress } = options;
  const reader = new RootReader({ storage, root, placement: "exclusive", onProgress, adoptRoot, ...world });
  return new RootView(reader, close);
}

/**
 * A session without loops: lease, baseline, undo. Rejects with `option.invalid`, `workspace_placement.*`,
 * `persistence.overlap`, `workspace_root.busy`, `.changed`, `.command_running`, `capture.*`, `storage.*`; nothing is held
 * then. An abort rejects with the signal's reason, and nothing is held either.
 */
export async function openWorkspace(options: OpenWorkspaceOptions, world: WorkspaceWorld = {}): Promise<Workspace> {
  checkOpenOptions(options);
  const fileSystem = world.fileSystem ?? nodeFileSystem;
  const root = canonicalPath(options.root, { fileSystem });
  if (options.allowBroadRoot !== true) assertNarrowRoot(root, { homes: canonicalHomes(world.homes ?? [], fileSystem) });
  if (options.storage === undefined && world.defaultStorageDir !== undefined) {
    assertOutside([await world.defaultStorageDir()], root, { fileSystem });
  }
  const { storage, close: closeStorage } = await storageFor(options, world);
  const undo: (() => Promise<void> | void)[] = [closeStorage];
  try {
    const reader = new RootReader({
      ...{ storage, root, fileSystem, settings: options.capture, onProgress: options.onProgress, clock: world.clock },
      placement: options.shared === true ? "shared" : "exclusive",
    });
    assertOutside(reader.store.persistencePaths(), root, { fileSystem });
    const owned = await own(reader, options, world, undo);
    const workspace = new OwnedWorkspace(owned, closeStorage);
    if (options.baseline !== false && !owned.missing) await workspace.takeBaseline(options);
    return workspace;
  } catch (error) {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined);
    throw error;
  }
}

/** Steps 2 to 5. */
async function own(
  reader: RootReader,
  options: OpenWorkspaceOptions,
  world: WorkspaceWorld,
  undo: (() => Promise<void> | void)[],
): Promise<OwnedRoot> {
  const { root, storage } = reader;
  const { signal } = options;
  const sessionId = mintSessionId();
  const command = options.command ?? defaultCommand(world.argv ?? []);
  const journal = await reader.sessions.create(sessionId, { command, subject: root }, { signal });
  undo.push(() => journal.close());
  const rootLease =
    reader.placement === "shared"
      ? undefined
      : await acquireRootLease(storage.leaser, root, { sessionId, command }, { signal, fileSystem: reader.fileSystem });
  if (rootLease !== undefined) undo.push(() => rootLease.release());

  const recorded = await reader.record.read({ signal });
  const directory = attachDirectory(reader, recorded, options);
  if (directory !== undefined) undo.push(() => directory.handle.close());
  const running = await runningOrphans(reader, { signal });
  if (running[0] !== undefined && options.acceptRunning !== true && reader.placement !== "shared") {
    throw commandRunning(reader, running[0]);
  }
  await reader.record.update(
    (data) => ({
      ...mergeSettings(data, options.capture ?? {}),
      identity: directory === undefined ? data.identity : storedIdentity(directory.identity),
      lastAt: reader.clock().toISOString(),
    }),
    { signal },
  );
  const coordinator = createCoordinator({
    root,
    health: healthOf(root, journal, rootLease),
    fold: foldOf(reader, directory),
  });
  const disturbed = running.length > 0;
  const owned = new OwnedRoot({ reader, journal, rootLease, coordinator, directory, disturbed });
  await announce(owned, recorded, directory, command);
  undo.push(async () => {
    await owned.append({ type: "session-closed" });
  });
  if (!owned.missing) {
    await settlePlans(owned, { signal });
    await settleSessions(owned, { signal });
  }
  return owned;
}

async function announce(
  owned: OwnedRoot,
  recorded: RootRecordData | undefined,
  directory: AttachedDirectory | undefined,
  command: string,
): Promise<void> {
  const { root, placement } = owned.reader;
  const identity = directory === undefined ? undefined : storedIdentity(directory.identity);
  await owned.append({
    type: "session-started",
    placement,
    root,
    command,
    ...(identity === undefined ? {} : { identity }),
  });
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
  options: OpenWorkspaceOptions,
): AttachedDirectory | undefined {
  const { fileSystem, root } = reader;
  if (recorded?.identity === undefined) createFirst(fileSystem, root);
  else if (identify(fileSystem, root) === undefined && options.missingRoot === "recreate") return undefined;
  else if (options.adoptRoot !== true || identify(fileSystem, root) === undefined) {
    checkRecordedRoot(fileSystem, root, identityFromStored(recorded.identity));
  }
  const handle = Directory.open(fileSystem, root);
  // Of the directory that is held: if another one took its place since the check, the next look at the path finds it.
  return { handle, identity: identifyDirectory(fileSystem, handle) };
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

/** Where the root's volume takes several spellings for one name, they are one path to the coordinator too (R1, C1). */
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

async function storageFor(
  options: ReadWorkspaceOptions,
  world: WorkspaceWorld,
): Promise<{ storage: Storage; close: () => Promise<void> }> {
  if (options.storage !== undefined) return { storage: options.storage, close: async () => undefined };
  if (world.openDefaultStorage === undefined) {
    throw new WorkspacePlacementError(
      "workspace_placement.missing_store",
      "Cannot open the workspace: no `storage` was given; use `openLocalStorage()` of looprig/storage/local",
      { placement: "exclusiveWorkspace" },
    );
  }
  const storage = await world.openDefaultStorage({ signal: options.signal });
  return { storage, close: () => storage.close() };
}
