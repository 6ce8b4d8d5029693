/**
 * Where the sessions of a rig get their roots (P1): which placement was asked for, and the one canonical path it means.
 * A base directory may be broad where a root may not (P4): only its own `<session id>` directories are ever captured.
 */
import { WorkspacePlacementError } from "../core/index.js";
import type { CanonicalRoot, FileSystem } from "../core/index.js";
import type { PlacementDefinition } from "../session/index.js";
import type { Storage } from "../storage/index.js";
import {
  assertNarrowRoot,
  assertOutside,
  canonicalHomes,
  canonicalPath,
  captureProblem,
  captureSettingNames,
} from "../workspace/index.js";
import type { CaptureSettings } from "../workspace/index.js";
import { flagOf, invalid, membersOf, within } from "./refusals.js";
import type { Members } from "./refusals.js";

const kinds = {
  exclusiveWorkspace: {
    mode: "exclusive",
    place: "root",
    members: ["root", "store", "leaser", "allowBroadRoot", "capture"],
  },
  sessionWorkspaces: { mode: "session", place: "baseDir", members: ["baseDir", "store", "capture"] },
  sharedWorkspace: { mode: "shared", place: "root", members: ["root", "store", "allowBroadRoot", "capture"] },
} as const;

export type PlacementOption = keyof typeof kinds;
export const placementOptions = Object.keys(kinds) as readonly PlacementOption[];

/** A placement as it was asked for: nothing has been looked at on disk yet. */
export interface PlacementRequest {
  readonly option: PlacementOption;
  readonly mode: PlacementDefinition["mode"];
  /** The option the path came from, for messages. */
  readonly pathOption: string;
  readonly path: string;
  readonly allowBroadRoot: boolean;
  readonly capture: CaptureSettings;
  /** As given; `chooseStorage` reads them. */
  readonly store: unknown;
  readonly leaser: unknown;
}

/** Throws `workspace_placement.multiple_placements` or `.empty_root`, or `rig_definition.invalid`. */
export function placementRequestOf(options: Members): PlacementRequest | undefined {
  const given = placementOptions.filter((option) => options[option] !== undefined);
  if (given.length > 1) {
    throw new WorkspacePlacementError(
      "workspace_placement.multiple_placements",
      `Cannot define the rig: it has ${given.join(" and ")}, wanted one placement; leave out the others`,
      { given },
    );
  }
  const [option] = given;
  if (option === undefined) return undefined;
  const { mode, place, members } = kinds[option];
  const { store, leaser, capture, allowBroadRoot, [place]: path } = membersOf(options[option], option, members);
  const pathOption = within(option, place);
  if (path !== undefined && path !== null && typeof path !== "string") throw invalid(pathOption, path, "a path");
  return {
    ...{ option, mode, pathOption, store, leaser },
    path: nonBlank(path ?? "", pathOption),
    allowBroadRoot: flagOf(allowBroadRoot, within(option, "allowBroadRoot")),
    capture: captureOf(capture, within(option, "capture")),
  };
}

export interface PlacementWorld {
  readonly fileSystem: FileSystem;
  /** What relative paths start from. Default the process's current directory. */
  readonly cwd: string | undefined;
  readonly homes: readonly string[];
}

/**
 * Makes the path canonical and checks it against breadth (P4) and against everything the storage writes (B1). Reads the file
 * system and changes nothing. Throws `workspace_placement.canonicalize_failed`, `.root_too_broad`, `persistence.overlap`.
 */
export function placementOf(request: PlacementRequest, store: Storage, world: PlacementWorld): PlacementDefinition {
  const { mode, capture, pathOption } = request;
  const { fileSystem, cwd, homes } = world;
  const place: CanonicalRoot = canonicalPath(request.path, { fileSystem, cwd, option: pathOption });
  if (mode !== "session" && !request.allowBroadRoot) {
    assertNarrowRoot(place, { homes: canonicalHomes(homes, fileSystem) });
  }
  const { spoolDir } = store;
  assertOutside([...store.persistencePaths(), ...(spoolDir === undefined ? [] : [spoolDir])], place, { fileSystem });
  return Object.freeze(
    mode === "session" ? { mode, baseDir: place, store, capture } : { mode, root: place, store, capture },
  );
}

function nonBlank(path: string, option: string): string {
  if (path.trim() !== "") return path;
  throw new WorkspacePlacementError(
    "workspace_placement.empty_root",
    `Cannot define the rig: "${option}" is blank; name a directory`,
    { option },
  );
}

/** A frozen copy of the settings that were given; those that were not are not in it. */
function captureOf(given: unknown = {}, field: string): CaptureSettings {
  const settings = membersOf(given, field, captureSettingNames);
  const problem = captureProblem(settings);
  if (problem !== undefined) throw invalid(within(field, problem.field), problem.given, problem.wanted);
  return Object.freeze(
    Object.fromEntries(
      Object.entries(settings)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => [name, Array.isArray(value) ? Object.freeze(Array.from<unknown>(value)) : value]),
    ),
  );
}
