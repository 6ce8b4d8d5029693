/**
 * Defining a rig: everything is checked here, so that a session meets no mistake of its configuration. Reads the file
 * system to make paths canonical; writes and acquires nothing. What happens to the options later changes nothing.
 */
import { LooprigError, nodeFileSystem } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import type { Timer } from "../loop/index.js";
import { resumeSession, startSession } from "../session/index.js";
import type { SessionDefinition } from "../session/index.js";
import { chooseStorage } from "./choose-storage.js";
import { activePrimerOf, assertNoWorkspaceTools, loopsOf, primersOf } from "./loops.js";
import { fingerprintOf, manifestOf } from "./manifest.js";
import type { RigOptions } from "./options.js";
import { placementOf, placementOptions, placementRequestOf } from "./placement.js";
import { membersOf, unreadable } from "./refusals.js";
import { createRig } from "./rig.js";
import type { Rig, SessionRuntime } from "./rig.js";
import { snapshotPolicyOf } from "./snapshot-policy.js";

/** What a program is put together from at its edge; tests put in their own. */
export interface RigWorld {
  readonly fileSystem?: FileSystem | undefined;
  /** Home directories, which are too broad to be roots without consent. */
  readonly homes?: readonly string[] | undefined;
  /** What relative paths start from. Default the process's current directory. */
  readonly cwd?: string | undefined;
  readonly sessions?: SessionRuntime | undefined;
  /** What people are shown as the holder of what its sessions hold. Default: "rig" and the names of its primers. */
  readonly command?: string | undefined;
  /** What time limits of its sessions go by. Default the system's. */
  readonly timer?: Timer | undefined;
}

const optionNames = [
  ...["loops", "primers", "activePrimer", "storage", "sessionStore", "snapshots"],
  ...placementOptions,
];

/** `defineRig` as programs call it. */
export interface DefineRig {
  /**
   * A validated, frozen rig. Throws `rig_definition.*`, `loop_definition.*`, `workspace_placement.*`, `snapshot_policy.*`,
   * `persistence.overlap`; nothing was written.
   */
  <const Name extends string>(options: RigOptions<Name, true>): Rig<Name, true>;
  /** Without a placement its sessions have no workspace. */
  <const Name extends string>(options: RigOptions<Name, false>): Rig<Name, false>;
  /** Where it is known only when the program runs. */
  <const Name extends string>(options: RigOptions<Name>): Rig<Name>;
}

/** `defineRig` in a world that is looked at anew for each rig. */
export function rigDefiner(world: () => RigWorld): DefineRig {
  // The names of the loops and the presence of a workspace are known to the types alone.
  return (options: unknown) => assembleRig(options, world());
}

/** The whole of it, for options of any origin. */
export function assembleRig(options: unknown, world: RigWorld = {}): Rig {
  try {
    return assemble(options, world);
  } catch (error) {
    throw isOurs(error) ? error : unreadable(error);
  }
}

/** What was thrown may be anything, a proxy too. */
function isOurs(error: unknown): boolean {
  try {
    return error instanceof LooprigError;
  } catch {
    return false;
  }
}

function assemble(options: unknown, world: RigWorld): Rig {
  const given = membersOf(options, "", optionNames);
  const request = placementRequestOf(given);
  const loops = loopsOf(given["loops"]);
  const primers = primersOf(given["primers"], loops);
  const activePrimer = activePrimerOf(given["activePrimer"], primers);
  if (request === undefined) assertNoWorkspaceTools(loops);
  const snapshots = snapshotPolicyOf(given["snapshots"], request);
  const storage = chooseStorage(given, request);
  const { fileSystem = nodeFileSystem, homes = [], cwd, command, timer } = world;
  const placement = request === undefined ? undefined : placementOf(request, storage, { fileSystem, homes, cwd });
  const manifest = manifestOf({ loops, primers, activePrimer, placement, snapshots });
  const definition: SessionDefinition = Object.freeze({
    ...{ loops, primers, activePrimer, storage, placement, snapshots, manifest, command },
    world: Object.freeze({ fileSystem, timer }),
    fingerprint: fingerprintOf(manifest),
  });
  return createRig(definition, manifest, world.sessions ?? { startSession, resumeSession });
}
