/**
 * Opening a workspace for writing, and looking at one without.
 *
 * Order of opening, each step undone in reverse when a later one refuses:
 * 1. every option checked, the root canonicalized, the boundary to our own storage checked (B1) – nothing was touched
 * Steps 2 to 5 are `take-root`:
 * 2. session lease, then root lease (R2, R3) – on contention nothing was written
 * 3. identity of the directory against the recorded one (R7)
 * 4. `session-started`
 * 5. an unsettled plan of the root is settled (U9), then sessions that died are (G5)
 * 6. the baseline, unless the caller does without
 */
import { WorkspacePlacementError, nodeFileSystem } from "../core/index.js";
import type { Abortable, FileSystem } from "../core/index.js";
import type { Storage } from "../storage/index.js";
import { assertNarrowRoot, canonicalHomes } from "./broad-root.js";
import { canonicalPath } from "./canonical-path.js";
import { checkOpenOptions, defaultCommand } from "./capture-rules.js";
import type { OpenWorkspaceOptions, ReadWorkspaceOptions, Workspace, WorkspaceView } from "./contracts.js";
import { OwnedWorkspace } from "./owned-workspace.js";
import { assertOutside } from "./persistence-boundary.js";
import { RootReader } from "./root-reader.js";
import { takeRoot } from "./take-root.js";
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
    const command = options.command ?? defaultCommand(world.argv ?? []);
    const owned = await takeRoot(reader, { ...options, command }, undo);
    const workspace = new OwnedWorkspace(owned, closeStorage);
    if (options.baseline !== false && !owned.missing) await workspace.takeBaseline(options);
    return workspace;
  } catch (error) {
    for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined);
    throw error;
  }
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
