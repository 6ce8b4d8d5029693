export type {
  CaptureOptions,
  CaptureProgress,
  CaptureResult,
  CaptureRules,
  CollectOptions,
  CollectProgress,
  CollectReport,
  ContentId,
  DerivedTree,
  DeriveOptions,
  KeepOptions,
  KeptFile,
  LookOptions,
  MaterializeOptions,
  OmissionClass,
  OwnerStats,
  PresentPaths,
  ScanOptions,
  ScanResult,
  StoreStats,
  Tree,
  TreeChange,
  TreeEntry,
  TreeId,
  VerifyDamage,
  VerifyProgress,
  VerifyReport,
  WorkspaceStore,
} from "./contracts.js";
export { fileEntryOf } from "./keep-files.js";
export { createWorkspaceStore } from "./store.js";
export type { WorkspaceStoreOptions } from "./store.js";
export { defaultPrivatePatterns } from "./capture-rules.js";
export { isSameEntry } from "./diff.js";
export { contentIdOf, encodePieces, objectIdOf, pieceBytes } from "./object-ids.js";
export { bareBytesMax } from "./pack-codec.js";
export { visitTree } from "./tree.js";
export { withoutPins } from "./without-pins.js";
export { emptyDirectoryId } from "./tree-codec.js";
