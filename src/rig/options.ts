/**
 * What `defineRig` is given. The types allow one placement (P2), want `snapshots` with it and refuse them without (S1), and
 * know the names of the loops; whatever they say is checked again when the program runs, since not everybody compiles.
 */
import type { LoopDefinition } from "../loop/index.js";
import type { SnapshotPolicy } from "../session/index.js";
import type { Storage } from "../storage/index.js";
import type { CaptureSettings } from "../workspace/index.js";

/** What of a storage keeps sessions: journals, their leases, the catalog. Any storage will do. */
export type SessionStoreParts = Pick<Storage, "ledger" | "leaser" | "kv" | "blobs" | "persistencePaths">;
/** What of a storage keeps captured trees, and what else belongs to a root. Any storage will do. */
export type WorkspaceStoreParts = Pick<Storage, "kv" | "blobs" | "locality" | "persistencePaths" | "spoolDir" | "disk">;
/** What of a storage hands out the leases of roots. Any storage will do; it also says where they lie (B1). */
export type LeaserParts = Pick<Storage, "leaser" | "persistencePaths">;

/** Which boundaries capture the tree by themselves. Captures that protect happen under every trigger (S3). */
export type SnapshotTrigger = SnapshotPolicy["trigger"];

/** When the tree is captured besides the captures that protect turns, and what a failure of it means (S2). */
export interface SnapshotPolicyOptions {
  /** Default "idle". */
  readonly trigger?: SnapshotTrigger | undefined;
  /** Default "best-effort". "required" waits for the capture, and stops the session when it fails. */
  readonly priority?: SnapshotPolicy["priority"] | undefined;
  /** Milliseconds a capture may take; absent and 0 mean 60 000. */
  readonly timeoutMs?: number | undefined;
}
/** Others write to a shared workspace, so no boundary of it can be required. */
export interface SharedSnapshotPolicyOptions extends SnapshotPolicyOptions {
  readonly priority?: "best-effort" | undefined;
}

interface FixedRoot {
  /** The directory. It need not exist: the first session makes it. */
  readonly root: string;
  /** Allows a file system root, a home directory or a directory above one. Default false. */
  readonly allowBroadRoot?: boolean | undefined;
}
interface WithStore {
  /** Keeps the captured trees. Default: the rig's `storage`. */
  readonly store?: WorkspaceStoreParts | undefined;
  readonly capture?: CaptureSettings | undefined;
}
/** One directory, which one session at a time may write to. */
export interface ExclusiveWorkspace extends FixedRoot, WithStore {
  /** Hands out the lease of the root. Default: the rig's `storage`. */
  readonly leaser?: LeaserParts | undefined;
}
/** A directory for each session, `baseDir/<session id>`. */
export interface SessionWorkspaces extends WithStore {
  readonly baseDir: string;
}
/** One directory, which sessions, people and other tools write to at the same time. */
export interface SharedWorkspace extends FixedRoot, WithStore {}

/** One placement, and when its tree is captured. */
export type WithPlacement =
  | {
      readonly exclusiveWorkspace: ExclusiveWorkspace;
      readonly sessionWorkspaces?: undefined;
      readonly sharedWorkspace?: undefined;
      readonly snapshots: SnapshotTrigger | SnapshotPolicyOptions;
    }
  | {
      readonly sessionWorkspaces: SessionWorkspaces;
      readonly exclusiveWorkspace?: undefined;
      readonly sharedWorkspace?: undefined;
      readonly snapshots: SnapshotTrigger | SnapshotPolicyOptions;
    }
  | {
      readonly sharedWorkspace: SharedWorkspace;
      readonly exclusiveWorkspace?: undefined;
      readonly sessionWorkspaces?: undefined;
      readonly snapshots: SnapshotTrigger | SharedSnapshotPolicyOptions;
    };

/** Not satisfiable: its name is what the compiler prints. */
interface SnapshotsNeedAPlacement {
  readonly exclusiveWorkspace_or_sessionWorkspaces_or_sharedWorkspace: never;
}

/** No placement, and so no workspace and no `snapshots`. */
export interface WithoutPlacement {
  readonly exclusiveWorkspace?: undefined;
  readonly sessionWorkspaces?: undefined;
  readonly sharedWorkspace?: undefined;
  readonly snapshots?: SnapshotsNeedAPlacement | undefined;
}

/** @expand */
interface AnyRig<Name extends string> {
  /** One or more, each with a name of its own. */
  readonly loops: readonly LoopDefinition<Name>[];
  /** The loops that every session starts. Default: the first. */
  readonly primers?: readonly NoInfer<Name>[] | undefined;
  /** The primer that input goes to first. Default: the first of them. */
  readonly activePrimer?: NoInfer<Name> | undefined;
  /** Supplies `sessionStore`, and the placement's `store` and `leaser`, where they are not given. The rig does not close it. */
  readonly storage?: Storage | undefined;
  /** Keeps the sessions. Default: `storage`. */
  readonly sessionStore?: SessionStoreParts | undefined;
}

/** `W`: whether there is a placement, and so a workspace in every session. */
export type RigOptions<Name extends string = string, W extends boolean = boolean> = AnyRig<Name> &
  (W extends true ? WithPlacement : WithoutPlacement);
