/** The loops of a rig, and which of them every session starts with. */
import { RigDefinitionError, WorkspacePlacementError } from "../core/index.js";
import { defineLoop } from "../loop/index.js";
import type { LoopDefinition } from "../loop/index.js";
import { invalid, shown } from "./refusals.js";

/** Throws `rig_definition.*`, and `loop_definition.*` for a loop that was not made by `defineLoop` and is not as it would be. */
export function loopsOf(given: unknown): readonly LoopDefinition[] {
  if (!Array.isArray(given)) throw invalid("loops", given, "a list of loops made by defineLoop");
  if (given.length === 0) {
    throw new RigDefinitionError(
      "rig_definition.no_loops",
      'Cannot define the rig: "loops" is empty, wanted at least one loop; make it with defineLoop',
      {},
    );
  }
  // Defined again: a definition comes out equal, an imitation is checked, and neither can be changed afterwards.
  const loops = Array.from(given as readonly LoopDefinition[], (loop) => defineLoop(loop));
  const names = loops.map(({ name }) => name);
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated !== undefined) {
    throw new RigDefinitionError(
      "rig_definition.repeated_loop",
      `Cannot define the rig: two of its loops are called ${JSON.stringify(repeated)}, wanted each name once; rename one`,
      { loop: repeated },
    );
  }
  return Object.freeze(loops);
}

/** Default: the first loop. */
export function primersOf(given: unknown, loops: readonly LoopDefinition[]): readonly string[] {
  const names = loops.map(({ name }) => name);
  if (given === undefined) return Object.freeze(names.slice(0, 1));
  if (!Array.isArray(given) || given.length === 0 || new Set(given).size !== given.length) {
    throw invalid("primers", given, "one or more names of loops, each once");
  }
  const primers = Array.from(given as readonly unknown[]);
  const unknown = primers.findIndex((primer) => !names.some((name) => name === primer));
  if (unknown !== -1) {
    throw new RigDefinitionError(
      "rig_definition.unknown_primer",
      `Cannot define the rig: primer ${shown(primers[unknown])} is none of its loops, wanted one of ${names.join(", ")}`,
      { primer: shown(primers[unknown]), loops: names },
    );
  }
  return Object.freeze(primers as string[]);
}

/** Default: the first primer. */
export function activePrimerOf(given: unknown, primers: readonly string[]): string {
  const active = given === undefined ? primers[0] : primers.find((primer) => primer === given);
  if (active !== undefined) return active;
  throw new RigDefinitionError(
    "rig_definition.active_primer",
    `Cannot define the rig: ${shown(given)} cannot be active first, wanted one of the primers (${primers.join(", ")}); add it to them`,
    { given: shown(given), primers },
  );
}

/** P3: a tool that is to be bound to a workspace needs one. For rigs without a placement. */
export function assertNoWorkspaceTools(loops: readonly LoopDefinition[]): void {
  for (const loop of loops) {
    const tool = loop.tools.find(({ requires }) =>
      requires.some((capability) => capability === "workspace" || capability === "workspace-read"),
    );
    if (tool === undefined) continue;
    throw new WorkspacePlacementError(
      "workspace_placement.tool_without_placement",
      `Cannot define the rig: tool "${tool.name}" of loop "${loop.name}" needs a workspace and there is no placement; add exclusiveWorkspace, sessionWorkspaces or sharedWorkspace`,
      { tool: tool.name },
    );
  }
}
