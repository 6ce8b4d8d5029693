export { rigDefiner } from "./define-rig.js";
export type { DefineRig, RigWorld } from "./define-rig.js";
export { compareManifests } from "./drift.js";
export type { LoopManifest, PlacementManifest, RigManifest, ToolManifest } from "./manifest.js";
export type {
  ExclusiveWorkspace,
  LeaserParts,
  RigOptions,
  SessionStoreParts,
  SessionWorkspaces,
  SharedSnapshotPolicyOptions,
  SharedWorkspace,
  SnapshotPolicyOptions,
  SnapshotTrigger,
  WithPlacement,
  WithoutPlacement,
  WorkspaceStoreParts,
} from "./options.js";
export type { ResumeSessionOptions, Rig, RigSession, SessionRuntime, StartSessionOptions } from "./rig.js";
