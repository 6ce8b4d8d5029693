/**
 * The manifest of a rig (R4): what the caller configured, as data that can be stored, compared and hashed. It is stored with
 * every session and read for ever: a member may be added, and is left out where it has nothing to say; none is renamed.
 * Log-safe: names, numbers and paths; of what loops are told the digest alone. Stores are no part of it, since a session
 * is found wherever it is kept.
 */
import { canonicalJson, sha256Hex } from "../core/index.js";
import type { LoopDefinition } from "../loop/index.js";
import type { PlacementDefinition, SnapshotPolicy } from "../session/index.js";
import { contractOf } from "../tool/index.js";
import type { ToolDefinition } from "../tool/index.js";
import type { CaptureSettings } from "../workspace/index.js";

// Type aliases and not interfaces: only those are assignable to `Json`.

/** The placement of a rig, by mode and canonical path. */
export type PlacementManifest =
  | { readonly mode: "none" }
  | { readonly mode: "exclusive" | "shared"; readonly root: string }
  | { readonly mode: "session"; readonly baseDir: string };

/**
 * A definition of tools by what it is called and what it may do; which schemas it has is known once it is built. Looprig's
 * own ones are named by their contract instead, so that another release of looprig is no other configuration.
 */
export type ToolManifest =
  | { readonly name: string; readonly produces: readonly string[]; readonly requires: readonly string[] }
  | {
      readonly name: string;
      readonly contract: number;
      readonly settings?: { readonly [setting: string]: boolean | number | string };
    };

/** A loop as it was configured. What it is told enters by its digest alone. */
export type LoopManifest = {
  readonly model: { readonly specification: string; readonly provider: string; readonly modelId: string };
  /** `sha256:<hex>` of the text. */
  readonly system?: string;
  readonly tools: readonly ToolManifest[];
  readonly limits: { readonly steps: number; readonly toolCalls: number };
};

/** What the caller configured, as stored with every session and compared when it is resumed (R4, R5). */
export type RigManifest = {
  readonly placement: PlacementManifest;
  /** The settings that were given; the others are kept with the root. */
  readonly capture?: { readonly [setting: string]: boolean | number | string | readonly string[] };
  readonly snapshots?: { readonly trigger: string; readonly priority: string; readonly timeoutMs: number };
  readonly loops: { readonly [name: string]: LoopManifest };
  readonly primers: readonly string[];
  readonly activePrimer: string;
};

export interface DescribedRig {
  readonly loops: readonly LoopDefinition[];
  readonly primers: readonly string[];
  readonly activePrimer: string;
  readonly placement: PlacementDefinition | undefined;
  readonly snapshots: SnapshotPolicy | undefined;
}

/** The manifest, frozen through and through. The order in which loops, primers and tools were given makes no difference. */
export function manifestOf({ loops, primers, activePrimer, placement, snapshots }: DescribedRig): RigManifest {
  const capture = captureManifest(placement?.capture ?? {});
  return deepFreeze({
    placement: placementManifest(placement),
    ...(capture === undefined ? {} : { capture }),
    ...(snapshots === undefined ? {} : { snapshots: { ...snapshots } }),
    loops: Object.fromEntries(inOrder(loops, ({ name }) => name).map((loop) => [loop.name, loopManifest(loop)])),
    primers: [...primers].sort(),
    activePrimer,
  });
}

/** Equal for equal manifests, in every process and release. */
export const fingerprintOf = (manifest: RigManifest): string => sha256Hex(canonicalJson(manifest));

function placementManifest(placement: PlacementDefinition | undefined): PlacementManifest {
  if (placement === undefined) return { mode: "none" };
  return placement.mode === "session"
    ? { mode: placement.mode, baseDir: placement.baseDir }
    : { mode: placement.mode, root: placement.root };
}

function captureManifest(settings: CaptureSettings): RigManifest["capture"] {
  const given = Object.entries(settings) as [string, boolean | number | string | readonly string[] | undefined][];
  const members = given.flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === "object" ? [...value] : value] as const],
  );
  return members.length === 0 ? undefined : Object.fromEntries(inOrder(members, ([name]) => name));
}

function loopManifest({ model, system, tools, limits }: LoopDefinition): LoopManifest {
  return {
    model: { specification: model.specificationVersion, provider: model.provider, modelId: model.modelId },
    ...(system === undefined ? {} : { system: `sha256:${sha256Hex(system)}` }),
    tools: inOrder(tools.map(toolManifest), canonicalJson),
    limits: { steps: limits.steps, toolCalls: limits.toolCalls },
  };
}

function toolManifest(tool: ToolDefinition): ToolManifest {
  const { name, produces, requires } = tool;
  const contract = contractOf(tool);
  if (contract === undefined) return { name, produces: [...produces].sort(), requires: [...requires].sort() };
  const { version, settings } = contract;
  return { name, contract: version, ...(settings === undefined ? {} : { settings: { ...settings } }) };
}

const inOrder = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
  [...items].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}
