/** The errors a definition is answered with (T3). Functions return the error; the caller throws it. */
import { LooprigError, ToolDefinitionError } from "../core/index.js";
import type { Capability } from "./capabilities.js";

/** What has no valid name yet is called by the function that it was given to. */
const functions = ["defineTool", "defineTools", "defineReadTools", "tool", "jsonSchema", "bindTools"];
const subject = (tool: string): string => (functions.includes(tool) ? `what ${tool} was given` : `"${tool}"`);

/** `tool` is the name of the definition, or the function it was given to while it has none. */
export const invalid = (tool: string, field: string, wanted: string, cause?: unknown): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.invalid",
    `Cannot define ${subject(tool)}: \`${field}\` is not ${wanted}`,
    { tool, field, wanted },
    { cause },
  );

export const invalidRequirement = (tool: string, requirement: string, problem: string): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.invalid_requirement",
    `Cannot define ${subject(tool)}: it requires ${requirement === "" ? "nothing" : JSON.stringify(requirement)}, ${problem}`,
    { tool, requirement },
  );

export const producedNames = (
  tool: string,
  problem: string,
  declared: readonly string[],
  built: readonly string[] = [],
): ToolDefinitionError =>
  new ToolDefinitionError("tool_definition.produced_names", `Cannot define ${subject(tool)}: ${problem}`, {
    tool,
    declared,
    built,
  });

export const missingTool = (tool: string, name: string): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.missing_tool",
    `Cannot build ${subject(tool)}: under the name "${name}" there is nothing; return a \`tool({ … })\` there`,
    { tool, name },
  );

export const buildFailed = (tool: string, cause: unknown): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.build_failed",
    `Cannot build ${subject(tool)}: its \`build\` failed${cause instanceof Error ? ` with ${cause.name}` : ""}; \`cause\` says how`,
    { tool },
    { cause },
  );

/** Capabilities that have a name and a type, and no source in any placement. */
const reserved: readonly string[] = ["delegate", "process"] satisfies readonly Capability[];

export const missingBinding = (tool: string, binding: string): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.missing_binding",
    `Cannot build ${subject(tool)}: it requires "${binding}", which ${
      reserved.includes(binding)
        ? "is reserved, and nothing supplies it yet; leave the tool out"
        : "its loop cannot give; choose a placement that has it, or leave the tool out"
    }`,
    { tool, binding },
  );

export const invalidBinding = (tool: string, field: string, wanted: string, cause?: unknown): ToolDefinitionError =>
  new ToolDefinitionError(
    "tool_definition.invalid_binding",
    `Cannot build ${subject(tool)}: the \`${field}\` to be bound is not ${wanted}`,
    { tool, field },
    { cause },
  );

export const bindingEnded = (binding: string): LooprigError<"tool_binding.ended"> =>
  new LooprigError(
    "tool_binding.ended",
    `Cannot use the "${binding}" binding of a tool: the loop it was built for has ended; keep no binding beyond it`,
    { binding },
  );
