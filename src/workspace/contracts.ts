/**
 * The workspace as its users see it: a read-only view that takes no lease, and the workspace itself, which holds one.
 * What is public of these types is exported by the package's entry; `cli` uses nothing else.
 */
import type {
  Abortable,
  CanonicalRoot,
  LeaseHolder,
  LooprigError,
  SessionId,
  SnapshotRef,
  TurnId,
  WorkspacePath,
} from "../core/index.js";
import type { CheckpointTrigger, UndoEntryName } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import type { CaptureProgress, Tree } from "../workspace-store/index.js";
import type { ChangedBy } from "./changed-by.js";
import type { KeptReason } from "./restore/plan.js";

/** What may be written where a snapshot is meant (G7): a ref, `c12`, `t4`, `t4^`, `last`, `now`, a label, eight or more hex digits. */
export type RefLike = SnapshotRef | (string & {});

/** A capture on record. `ref` is durable and stays so; `omitted` counts what was left out, by class (U14). */
export interface Checkpoint {
  readonly ref: SnapshotRef;
  /** Per root, from 1, never reused: `c<number>`. */
  readonly number: number;
  /** Place on the root's clock, shared by all its sessions. */
  readonly order: number;
  readonly at: Date;
  readonly sessionId: SessionId;
  readonly turn?: number;
  readonly trigger: CheckpointTrigger;
  readonly label?: string;
  readonly consistency: "quiescent" | "fuzzy";
  readonly completeness: "complete" | "partial";
  /** Only the paths of an undo or restore were looked at for it; everything else is as the checkpoint before it says (U8). */
  readonly derived?: boolean;
  readonly files: number;
  /** Files and links that differ from the tree its window began with. */
  readonly changed?: number;
  readonly omitted: { readonly [cls: string]: number };
  /** What led to a `post-restore` checkpoint. */
  readonly restored?: { readonly action: "undo" | "redo" | "restore"; readonly entry: UndoEntryName };
  /** When a policy let it go. Its tree is not to be had any more; that it was taken stays on record. */
  readonly dropped?: Date;
}

/** A turn of the root, of whatever session, as its journals tell it. */
export interface TurnSummary {
  readonly number: number;
  readonly turnId: TurnId;
  readonly sessionId: SessionId;
  readonly order: number;
  readonly input: string;
  readonly kind: "prompt" | "command";
  readonly startedAt: Date;
  readonly endedAt?: Date;
  /** "unsettled": its session died in the middle; whoever next opens the root for writing settles it. */
  readonly state: "running" | "done" | "failed" | "interrupted" | "unsettled";
  /** The tree at its start and at its end, as far as they were captured. */
  readonly from?: SnapshotRef;
  readonly to?: SnapshotRef;
  /** Files and links it changed; directories are not counted. */
  readonly changed: number;
  /** False when its opening capture was not complete before it began, or one of its two captures failed: undo is refused. */
  readonly protected: boolean;
  readonly exitCode?: number;
  /** git's HEAD at its start, where there is one. */
  readonly head?: string;
  readonly endHead?: string;
  readonly undone?: "undone" | "partly";
  readonly undoneAt?: Date;
  readonly redoneAt?: Date;
  /** When a policy let one of its trees go: it can be neither shown nor taken back. */
  readonly dropped?: Date;
}

/** An entry of the root's undo list (U3): a turn or a restore, each once, in order of their ends. */
export interface UndoEntry {
  readonly name: UndoEntryName;
  readonly kind: "turn" | "restore";
  readonly sessionId: SessionId;
  readonly order: number;
  readonly at: Date;
  /** The prompt, the command line, or what was restored. */
  readonly title: string;
  readonly state: "applied" | "undone" | "partly";
  readonly from: SnapshotRef;
  readonly to: SnapshotRef;
  /** When a policy let one of its trees go: undo and redo refuse it with `snapshot.dropped`. */
  readonly dropped?: Date;
}

/** Everything that sessions did to a root, in the order of the root's own clock. */
export interface RootHistory {
  readonly root: CanonicalRoot;
  /** Whether any session was ever attached here. */
  readonly known: boolean;
  /** Oldest first. */
  readonly checkpoints: readonly Checkpoint[];
  readonly turns: readonly TurnSummary[];
  readonly entries: readonly UndoEntry[];
  readonly sessions: readonly SessionId[];
  /** Turns and checkpoints of sessions whose journal is damaged are missing; this names them. */
  readonly damaged: readonly SessionId[];
}

/** What stands at a path. */
export type EntryKind = "file" | "directory" | "symlink";

/** One path that differs, and who made the difference. */
export interface Change {
  readonly path: WorkspacePath;
  readonly kind: "added" | "edited" | "deleted";
  /** What stands there, or stood there if it was deleted. */
  readonly entry: EntryKind;
  /** False when what was there before or after was left out of the capture: undo cannot bring it back. */
  readonly captured: boolean;
  readonly by: ChangedBy;
}

/** The difference of one file. Its text is computed when it is asked for. */
export interface FileDiff {
  readonly path: WorkspacePath;
  readonly kind: Change["kind"];
  readonly entry: EntryKind;
  /** Lines; 0 and 0 for binary files, directories and links. */
  readonly added: number;
  readonly removed: number;
  /** Whether either side is not text. */
  readonly binary: boolean;
  /** A unified diff, at most 1 MiB of it; a line for what has none. */
  text(): Promise<string>;
}

/** What an undo takes back, and what it may do about conflicts (U3). */
export interface UndoOptions {
  /** `t4`; absent: the newest entry that has something left to take back. */
  readonly turn?: string | undefined;
  /** Only these paths and what lies below them. */
  readonly paths?: readonly string[] | undefined;
  /** Default "stop": with a conflict nothing is written. */
  readonly onConflict?: "stop" | "skip" | undefined;
  /** U1's consent to take back window changes in a shared root. */
  readonly includeWindow?: boolean | undefined;
  /** Only entries of this session. */
  readonly session?: SessionId | undefined;
}
/** How the newest undo is put back. */
export interface RedoOptions {
  readonly onConflict?: "stop" | "skip" | undefined;
  readonly includeWindow?: boolean | undefined;
  /** Only entries of this session. */
  readonly session?: SessionId | undefined;
}
/** What a restore covers, and what it may overwrite (U7). */
export interface RestoreOptions {
  readonly paths?: readonly string[] | undefined;
  /** Also overwrites and deletes what no record of ours explains (U7). Default false in fixed roots, true in a root of the session's own. */
  readonly exact?: boolean | undefined;
  readonly includeWindow?: boolean | undefined;
}
/** An undo, redo or restore as data, for `plan`. */
export type RestoreAction =
  | ({ readonly kind: "undo" } & UndoOptions)
  | ({ readonly kind: "redo" } & RedoOptions)
  | ({ readonly kind: "restore"; readonly ref: RefLike } & RestoreOptions);

/** What an action would do, computed and not done (U5). Paths are sorted; directories count like files. */
export interface RestorePlan {
  readonly action: RestoreAction["kind"];
  /** The entry undone or redone; for a restore the ref as it was written. Absent: there is nothing to do. */
  readonly entry?: string;
  /** The prompt, command line or label behind `entry`. */
  readonly title?: string;
  readonly entryAt?: Date;
  readonly entrySession?: SessionId;
  /** Entries that changed nothing and were passed over on the way. */
  readonly passedOver: readonly UndoEntryName[];
  readonly writes: readonly WorkspacePath[];
  readonly deletes: readonly WorkspacePath[];
  readonly kept: readonly { readonly path: WorkspacePath; readonly reason: KeptReason }[];
  readonly conflicts: readonly { readonly path: WorkspacePath; readonly by: ChangedBy }[];
  readonly omitted: readonly WorkspacePath[];
  /** Paths whose present bytes no record of ours explains and that would be replaced all the same (`exact`). */
  readonly foreign: readonly WorkspacePath[];
  /** Of the paths it would touch those that changed in a window and are not proven ours (U1); their bytes are kept as `safety`. */
  readonly unproven: readonly WorkspacePath[];
  /** Window changes in a shared root: `apply` refuses them without `includeWindow`. */
  readonly window: readonly WorkspacePath[];
  /** Set when HEAD moved between the entry and now: from, to. */
  readonly headMoved?: readonly [from: string, to: string];
}

/** What an action did. With `result` "conflict", "nothing" or "refused" nothing was written. */
export interface RestoreReceipt extends Omit<RestorePlan, "writes" | "deletes" | "conflicts"> {
  /** Those of the plan, then paths that somebody wrote while it was done: what they wrote is kept at `storedAs` (C10). */
  readonly conflicts: readonly {
    readonly path: WorkspacePath;
    readonly by: ChangedBy;
    readonly storedAs?: WorkspacePath;
  }[];
  /** "refused": what the entry changed was not captured, so none of it can be brought back. */
  readonly result: "done" | "partly" | "conflict" | "nothing" | "refused";
  readonly written: readonly WorkspacePath[];
  readonly deleted: readonly WorkspacePath[];
  /** The tree before, in which everything overwritten or deleted is kept. Null when nothing was written. */
  readonly safety: SnapshotRef | null;
  /** The checkpoint of the tree it left. */
  readonly checkpoint?: Checkpoint;
  /** The command that reverses it: `looprig redo`, `looprig undo`. */
  readonly reverse: string | null;
}

export interface ExecOptions extends Abortable {
  /** Called once, when the baseline is complete and right before the command begins. */
  readonly onSpawn?: (() => void) | undefined;
  /** Undoes the turn unless the command exits 0. Default false. */
  readonly undoOnFailure?: boolean | undefined;
  /** Period of the checkpoints taken while it runs, if anything changed; 0 is off. Default 60 000. */
  readonly everyMs?: number | undefined;
  /** Default "inherit". */
  readonly stdio?: "inherit" | "ignore" | undefined;
  /** Added to the command's environment, which is this process's with LOOPRIG_ROOT and LOOPRIG_SESSION. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Directory the command starts in, inside the root. Default: the root. */
  readonly cwd?: string | undefined;
  readonly includeWindow?: boolean | undefined;
  /**
   * The command owns the terminal: while it runs SIGINT and SIGQUIT are ignored here (the terminal sends them to the command
   * itself), SIGTERM and SIGHUP are passed on to it. Default false: this process keeps its own signals.
   */
  readonly foreground?: boolean | undefined;
}
/** How a command ended, and what changed while it ran. */
export interface ExecResult {
  /** The command's own status; 128 + n when signal n ended it. */
  readonly exitCode: number;
  readonly signal: string | undefined;
  /** `t<number>`. */
  readonly turn: number;
  readonly changes: readonly Change[];
  /** Checkpoints taken from baseline to end. */
  readonly checkpoints: readonly Checkpoint[];
  readonly durationMs: number;
  readonly protected: boolean;
  readonly undone: boolean;
  /** Why `undoOnFailure` did not undo. */
  readonly undoFailure?: LooprigError | undefined;
}

/** Reading, without a lease; nothing is written but a private cache. Works beside a live session. */
export interface WorkspaceView extends AsyncDisposable {
  readonly root: CanonicalRoot;
  /** Folded anew from the journals at each call. */
  history(options?: Abortable): Promise<RootHistory>;
  /** Newest last; `limit` keeps the newest. */
  checkpoints(options?: Abortable & { readonly limit?: number | undefined }): AsyncIterable<Checkpoint>;
  /** Who has the root for writing now: an exclusive holder of it, of a directory above or below. */
  holder(options?: Abortable): Promise<(LeaseHolder & { readonly root: string }) | undefined>;
  /**
   * What differs between `since` (default: the last checkpoint) and the live tree, and who did it: the newest record, of
   * whatever session of the root, that left the path as it is now.
   */
  changes(options?: Abortable & { readonly since?: RefLike | undefined }): Promise<readonly Change[]>;
  /**
   * `turn`: what that turn itself changed, without what others wrote meanwhile; not together with `from` or `to`. Default:
   * the newest turn that changed something. `from` alone compares with `now`.
   */
  diff(
    options?: Abortable & {
      readonly turn?: string | undefined;
      /** From the end of the turn to its start, as undo goes. */
      readonly reverse?: boolean | undefined;
      readonly from?: RefLike | undefined;
      readonly to?: RefLike | undefined;
      readonly paths?: readonly string[] | undefined;
    },
  ): AsyncIterable<FileDiff>;
  /** What a name means (G7). `ref.unknown`, `ref.ambiguous`. */
  resolve(ref: RefLike, options?: Abortable): Promise<ResolvedRef>;
  /** The tree of a ref; `now` scans the live one. */
  tree(ref: RefLike, options?: Abortable): Promise<Tree>;
  /** The verified bytes of one file in a ref. `snapshot.path_missing`, `snapshot.path_omitted`. */
  readFile(ref: RefLike, path: string, options?: Abortable): AsyncIterable<Uint8Array>;
  /** Bytes of the whole store's packs and indexes, of all roots together: they share content. */
  storedBytes(options?: Abortable): Promise<number>;
  /**
   * Writes the tree of `ref` into `dest`, absent or empty (`snapshot.dest_not_empty`); with `paths`, only these and what lies
   * below them. At most 2^20 entries and 8 GiB (`snapshot.limit`). After a failure or an abort what was made is removed.
   * Verified but not synced, as `cp` leaves it: a power cut soon afterwards may leave files empty.
   */
  materialize(
    ref: RefLike,
    dest: string,
    options?: Abortable & { readonly paths?: readonly string[] | undefined },
  ): Promise<{ readonly entries: number; readonly bytes: number }>;
  /** What an action would do, without doing it. Rejects with `ref.unknown`, `ref.ambiguous`, `undo.unprotected`. */
  plan(action: RestoreAction, options?: Abortable): Promise<RestorePlan>;
  /** A restore plan that was cut short and waits for the next writer (U9). */
  unsettled(options?: Abortable): Promise<{ readonly planId: string; readonly action: string } | undefined>;
  /** Gives back what is held: leases, after the work in hand has ended. Idempotent. A storage that was handed in stays open. */
  close(): Promise<void>;
}

/** What a name of a snapshot means at this moment. */
export interface ResolvedRef {
  readonly ref: SnapshotRef | "now";
  /** The checkpoint that was named, or the newest one with that ref. */
  readonly checkpoint?: Checkpoint;
  readonly turn?: TurnSummary;
  /** As it was written. */
  readonly given: string;
}

/** The workspace half of a session, and the whole of a session that has no loops. */
export interface Workspace extends WorkspaceView {
  readonly sessionId: SessionId;
  /**
   * Captures the tree by hand and names it, where a `label` is given. Needs an idle session (`session.busy`). Never coalesced.
   * Rejects with `option.invalid` (a label that could not be asked for again), `capture.*`, `storage.*`, `workspace_root.*`; an
   * abort gives no checkpoint, and what was stored by then helps the next one.
   */
  checkpoint(
    options?: Abortable & { readonly label?: string | undefined },
  ): Promise<Checkpoint & { readonly unchanged: boolean }>;
  /**
   * Does a plan of this workspace. Rejects with `restore.tree_moved` when a path it would touch moved since the plan was made;
   * otherwise as the verb it was planned for.
   */
  apply(plan: RestorePlan, options?: Abortable): Promise<RestoreReceipt>;
  /**
   * Takes back what one entry of the undo list changed, where the bytes are still what it left (U3). Needs an idle session
   * (`session.busy`). A conflict is a result, not an error. Rejects with `undo.unprotected` and `undo.needs_consent`, `restore.*`,
   * `ref.unknown`; the tree is then as it was, or the next writer settles it (U9). An abort before the first visible change leaves the
   * tree as it was; later ones are not heeded.
   */
  undo(options?: Abortable & UndoOptions): Promise<RestoreReceipt>;
  /** Puts back what the newest undo took. Otherwise as `undo`. */
  redo(options?: Abortable & RedoOptions): Promise<RestoreReceipt>;
  /**
   * Makes files as they were in `ref`. In a fixed root, content that no record of ours explains is kept and listed unless `exact` (U7).
   * The present tree is stored first, so that `undo` takes it back (U4). Otherwise as `undo`.
   */
  restore(ref: RefLike, options?: Abortable & RestoreOptions): Promise<RestoreReceipt>;
  /** True exactly once per root, after its first change: when to say what is covered and what is not. */
  firstChangeNotice(): Promise<boolean>;
  /**
   * Runs a command between two checkpoints; its changes are one turn. An abort ends the command (SIGTERM, SIGKILL after 5 s),
   * captures what it changed, records the turn as interrupted and rejects with the signal's reason. Rejects with
   * `exec.not_found`, `exec.not_executable`, `session.busy`, `capture.*`, `storage.*` before the command has run, and with
   * `exec.unrecorded` when it ran and that could not be recorded.
   */
  exec(command: readonly [string, ...string[]], options?: ExecOptions): Promise<ExecResult>;
}

/** What of a root is captured (U11–U13). Settings that are given are kept with the root; those that are not stay as they were. */
export interface CaptureSettings {
  /** gitignore lines that stay out of every capture; kept with the root. Default: as before, else none. */
  readonly exclude?: readonly string[] | undefined;
  /** "auto" includes `.git` in session placements and omits it in fixed ones. */
  readonly vcs?: "auto" | "include" | "omit" | undefined;
  readonly private?: readonly string[] | undefined;
  readonly allowPrivateRemote?: boolean | undefined;
  readonly maxFileBytes?: number | undefined;
  readonly strict?: boolean | undefined;
  /** Consent to more than 4 GiB or 500 000 files; kept with the root. */
  readonly allowLarge?: boolean | undefined;
}

/** What `readWorkspace` is given. */
export interface ReadWorkspaceOptions extends Abortable {
  readonly root: string;
  /** Default: the local state directory, opened and owned. */
  readonly storage?: Storage | undefined;
  /** Called at most every 100 ms while a tree is looked at or captured. */
  readonly onProgress?: ((progress: CaptureProgress) => void) | undefined;
  /** Accepts the directory that stands at the root although it is not the one recorded (R7). Default false. */
  readonly adoptRoot?: boolean | undefined;
}

/** What `openWorkspace` is given. */
export interface OpenWorkspaceOptions extends ReadWorkspaceOptions {
  /** Shared placement: no root lease, fuzzy captures, others may write at the same time. Default false. */
  readonly shared?: boolean | undefined;
  /** Allows a file system root, a home directory or a directory above one. Default false. */
  readonly allowBroadRoot?: boolean | undefined;
  /** Goes on although a command of a killed session still runs here (G5); captures are then fuzzy. Default false. */
  readonly acceptRunning?: boolean | undefined;
  /** Opens a root that is gone, for a restore that builds it anew. Default false: `workspace_root.changed`. */
  readonly missingRoot?: "refuse" | "recreate" | undefined;
  readonly capture?: CaptureSettings | undefined;
  /** Takes a checkpoint on opening, so that `undo()` can take back what this program does by itself. Default true. */
  readonly baseline?: boolean | undefined;
  /** What people are shown as the holder. Default: the program's name and arguments, at most 1 000 characters. */
  readonly command?: string | undefined;
}
