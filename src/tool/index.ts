export type { NeedsApproval } from "./approval.js";
export type { AvailableBindings, AvailableWorkspace } from "./attenuation.js";
export { bindTools } from "./bind.js";
export type { BoundCall, BoundTool, Validation } from "./bind.js";
export type {
  ChangeRecords,
  DelegateController,
  FileChange,
  FileState,
  KeptOutputs,
  Observation,
  PathObservation,
  ProcessBinding,
  ReadWorkspaceBinding,
  RecordedPermit,
  WorkspaceBinding,
  WorkspaceObservations,
} from "./bindings.js";
export type { BindingsFor, Capability, CapabilityBindings } from "./capabilities.js";
export { builtIn, contractOf, defineReadTools, defineTool, defineTools } from "./definition.js";
export type {
  DefineReadToolsOptions,
  DefineToolOptions,
  DefineToolsOptions,
  ToolContract,
  ToolDefinition,
} from "./definition.js";
export { jsonSchema } from "./json-schema.js";
export type { ToolOutput, ToolResult } from "./output.js";
export type { InferInput, JsonSchema, ToolSchema } from "./schema.js";
export { tool } from "./tool.js";
export type { CallContext, Tool, ToolOptions } from "./tool.js";
