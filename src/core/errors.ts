/**
 * The one table of errors (design, section 3). A code is `area.case`; its row says which fields a caller finds in `details`.
 * `docs/errors.md` is generated from this file: the comment above a row is its text there.
 * Details and messages are safe to log: identities, digests, paths; never file content, prompts or secrets.
 */
import type { Json } from "./encoding.js";
import type { CanonicalRoot, SessionId, SnapshotRef } from "./ids.js";

/** Who holds a lease, as shown to people. Never consulted to decide whether it is held. */
export interface LeaseHolder {
  readonly sessionId: SessionId;
  readonly command: string;
  readonly host: string;
  readonly pid: number;
  readonly since: Date;
  readonly epoch: number;
}

/** A row without fields. */
type NoDetails = Readonly<Record<string, never>>;

/** Code to fields: what `details` of an error with that code holds. Codes are stable; fields may be added. */
export interface ErrorDetails {
  // ── platform and options ──────────────────────────────────────────────────────────────────────────────────────
  /** looprig does not run on this platform yet. Use Linux or macOS. */
  "platform.unsupported": { readonly platform: string };
  /** An option has the wrong type or value. `field` names it; nothing was read or written. */
  "option.invalid": { readonly field: string; readonly given: string; readonly wanted: string };

  // ── ids and refs ──────────────────────────────────────────────────────────────────────────────────────────────
  /** The text is not a session id: a lowercase UUID that is not nil. */
  "session_id.invalid": { readonly given: string };
  /** The text is not a full snapshot ref. */
  "ref.invalid": { readonly given: string };
  /** No checkpoint, turn, label or ref of this root is called that. */
  "ref.unknown": { readonly given: string };
  /** The text fits several snapshots; write more of it. */
  "ref.ambiguous": { readonly given: string; readonly candidates: readonly string[] };
  /** The path is not a clean relative path inside the workspace. */
  "path.invalid": { readonly path: string; readonly reason: string };
  /** The path would be reached through a symbolic link, or leave the root. Nothing was touched. */
  "path.escapes": { readonly path: string; readonly component: string };

  // ── placement and roots ───────────────────────────────────────────────────────────────────────────────────────
  /** More than one placement was given; choose one. */
  "workspace_placement.multiple_placements": { readonly given: readonly string[] };
  /** A placement needs a workspace store and neither it nor `storage` supplies one. */
  "workspace_placement.missing_store": { readonly placement: string };
  /** An exclusive placement needs a leaser and neither it nor `storage` supplies one. */
  "workspace_placement.missing_leaser": { readonly placement: string };
  /** The root is empty or blank. */
  "workspace_placement.empty_root": { readonly option: string };
  /** The root could not be resolved to one canonical path. */
  "workspace_placement.canonicalize_failed": { readonly option: string; readonly path: string };
  /** A lease name is not of the form that was derived from the root. */
  "workspace_placement.lease_name_invalid": { readonly name: string };
  /** A tool needs a workspace and the rig has no placement. */
  "workspace_placement.tool_without_placement": { readonly tool: string };
  /** The root is a file system root, a home directory or above one. Choose a directory inside it, or allow it expressly. */
  "workspace_placement.root_too_broad": { readonly root: CanonicalRoot; readonly reason: string };
  /** Journal, leases, blobs or spool lie inside the region that is captured. Move the state directory out of it. */
  "persistence.overlap": { readonly persistencePath: string; readonly root: CanonicalRoot };
  /** Another live session holds this root, one above it or one below it. Wait for it, or end it. */
  "workspace_root.busy": {
    readonly root: CanonicalRoot;
    /** Of our root to the held one: "inside" when the held one contains ours. */
    readonly relation: "same" | "inside" | "contains";
    /** Undefined in the moment between a lease being taken and its holder being recorded. */
    readonly holder: LeaseHolder | undefined;
  };
  /** Another directory stands at the root's path now, or none does. Adopt it, rebuild it, or choose the one that moved. */
  "workspace_root.changed": {
    readonly root: CanonicalRoot;
    readonly state: "replaced" | "moved" | "missing";
    readonly movedTo?: string;
  };
  /** The root lease was lost while work was under way. Nothing was committed after the loss. */
  "workspace_root.lease_lost": { readonly root: CanonicalRoot };
  /** A command of an earlier, killed session still runs in this root. Wait for it or end it. */
  "workspace_root.command_running": {
    readonly root: CanonicalRoot;
    readonly pid: number;
    readonly command: string;
    readonly sessionId: SessionId;
  };
  /** The session has no workspace. */
  "workspace.unavailable": NoDetails;
  /** The workspace was closed already. */
  "workspace.closed": { readonly root: CanonicalRoot };

  // ── sessions ──────────────────────────────────────────────────────────────────────────────────────────────────
  /** The session is at work; the call needs it idle. */
  "session.busy": { readonly sessionId: SessionId; readonly doing: string };
  /** No session has this id, or the prefix fits none. */
  "session.unknown": { readonly given: string };
  /** The prefix fits several sessions; write more of it. */
  "session.ambiguous": { readonly given: string; readonly candidates: readonly string[] };
  /** The session was closed already. */
  "session.closed": { readonly sessionId: SessionId };
  /** A required checkpoint failed, so nothing new is admitted (K1). Take a checkpoint; when it succeeds the session goes on. */
  "session.faulted": { readonly sessionId: SessionId; readonly code: string };
  /** A best-effort capture found the tree in use and did not wait; its boundary is on record without a checkpoint (K2). */
  "checkpoint.tree_busy": NoDetails;
  /** A capture took longer than the policy's `timeoutMs`. What it stored is used by the next one (K5). */
  "checkpoint.timed_out": NoDetails;
  /** No open question of this session has that id: it was answered, or its turn has ended. */
  "session.unknown_gate": { readonly sessionId: SessionId; readonly gateId: string };
  /** The session has no loop of that name. */
  "session.unknown_loop": { readonly loop: string; readonly known: readonly string[] };
  /** A seed can only fill a root that is new or empty, and never a shared one. */
  "workspace_seed.not_possible": { readonly placement: string; readonly root: string };
  /** A deletion of this session was begun and cut short. Delete it again to finish. */
  "session.deleting": { readonly sessionId: SessionId };
  /** A record of the journal is damaged. What stands before it can be read. */
  "journal.damaged": { readonly sessionId: SessionId; readonly seq: number; readonly readable: number };
  /** A record of the journal was written by a newer looprig. What stands before it can be read; nothing is written. */
  "journal.newer": { readonly sessionId: SessionId; readonly seq: number; readonly readable: number };
  /** The storage failed during an append and could not be asked what became of it. Open the session again and read. */
  "journal.outcome_unknown": { readonly sessionId: SessionId; readonly seq: number };
  /** The event is larger than a record may be. Nothing was appended. */
  "journal.record_too_large": {
    readonly sessionId: SessionId;
    readonly type: string;
    readonly bytes: number;
    readonly bytesMax: number;
  };

  // ── rigs ──────────────────────────────────────────────────────────────────────────────────────────────────────
  /** An option of the rig is misspelt, missing or wrong. `field` names it; nothing was written. */
  "rig_definition.invalid": { readonly field: string; readonly wanted: string };
  /** The rig has no loops. Give at least one. */
  "rig_definition.no_loops": NoDetails;
  /** Two loops of the rig have one name. Rename one. */
  "rig_definition.repeated_loop": { readonly loop: string };
  /** A primer is no loop of the rig. */
  "rig_definition.unknown_primer": { readonly primer: string; readonly loops: readonly string[] };
  /** The loop that is to be active first is none of the primers. */
  "rig_definition.active_primer": { readonly given: string; readonly primers: readonly string[] };
  /** Neither `storage` nor `sessionStore` says where sessions are kept. */
  "rig_definition.missing_session_store": NoDetails;
  /** A placement needs `snapshots`: say when the tree is captured. */
  "snapshot_policy.required": { readonly placement: string };
  /** Snapshots were configured and there is no placement, so there is nothing to capture. Add one, or leave them out. */
  "snapshot_policy.without_workspace": NoDetails;
  /** The trigger of the snapshots is none there is. */
  "snapshot_policy.invalid_trigger": { readonly given: string; readonly known: readonly string[] };
  /** The priority of the snapshots is none there is. */
  "snapshot_policy.invalid_priority": { readonly given: string; readonly known: readonly string[] };
  /** The time-out of the snapshots is no number, negative or not finite. */
  "snapshot_policy.invalid_timeout": { readonly given: string };
  /** Snapshots of a shared workspace cannot be required: others write to it, so no boundary holds still. */
  "snapshot_policy.shared_required": NoDetails;
  /** The rig is not the one the session was stored with. Resume with that one, or accept the changes with `onDrift`. */
  "configuration.drift": {
    readonly changes: readonly {
      /** Which part of the manifest: `placement.root`, `loops.operator.model`. */
      readonly field: string;
      readonly stored: Json;
      readonly live: Json;
      readonly severity: "breaking" | "notable";
    }[];
  };

  // ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────
  /** A definition of tools, or a tool it built, has a member that is missing or wrong. `field` names it. */
  "tool_definition.invalid": { readonly tool: string; readonly field: string; readonly wanted: string };
  /** A definition requires what is no capability, requires it twice, or may not require it. */
  "tool_definition.invalid_requirement": { readonly tool: string; readonly requirement: string };
  /** The names a definition declares are none, repeated, or not those of the tools it built. */
  "tool_definition.produced_names": {
    readonly tool: string;
    readonly declared: readonly string[];
    /** Empty while nothing was built yet. */
    readonly built: readonly string[];
  };
  /** A definition built nothing under a name it declares. */
  "tool_definition.missing_tool": { readonly tool: string; readonly name: string };
  /** The `build` of a definition failed. `cause` is what it threw. */
  "tool_definition.build_failed": { readonly tool: string };
  /** A definition requires a capability that its loop cannot give. */
  "tool_definition.missing_binding": { readonly tool: string; readonly binding: string };
  /** What would be bound to a tool is not in order: `field` names the id, root or object. Nothing was built. */
  "tool_definition.invalid_binding": { readonly tool: string; readonly field: string };
  /** The loop that a tool was built for has ended; what the tool kept of its bindings grants nothing any more. */
  "tool_binding.ended": { readonly binding: string };

  // ── built-in tools ────────────────────────────────────────────────────────────────────────────────────────────
  /** The file is not as it was last seen, or was not seen whole. Nothing was written; read it and write again. */
  "file.stale": { readonly path: string; readonly seen: "nothing" | "part" | "absent" | "other" };
  /** There is no file at that path. */
  "file.missing": { readonly path: string };
  /** At that path stands what is no regular file. Nothing was read or written. */
  "file.not_regular": { readonly path: string; readonly kind: string };
  /** The path lies in `.git`, which captures leave out and restores never write: a change there could not be taken back. */
  "file.vcs": { readonly path: string };
  /** The file is larger than the tool takes. */
  "file.too_large": { readonly path: string; readonly bytes: number; readonly bytesMax: number };
  /** The file is not text in UTF-8, so it cannot be edited as text. */
  "file.not_text": { readonly path: string };
  /** The text to be replaced is not in the file exactly once. Nothing was written. */
  "file.no_unique_match": { readonly path: string; readonly matches: number };
  /**
   * The file was written, and somebody else wrote to it between the last look and the commit. Their bytes are kept: under
   * `ref` in the store, or in the file `kept` beside it.
   */
  "file.written_meanwhile": { readonly path: string; readonly ref?: string; readonly kept?: string };
  /** The operating system refused to read or write at that path. */
  "file.failed": { readonly path: string; readonly operation: string; readonly errno?: string };
  /** The search could not run, or its pattern is wrong. */
  "search.failed": { readonly reason: string };

  // ── loops and models ──────────────────────────────────────────────────────────────────────────────────────────
  /** A member of a loop's definition is missing or wrong. `field` names it. */
  "loop_definition.invalid": { readonly loop: string; readonly field: string; readonly wanted: string };
  /** Two definitions of tools of one loop produce the same name, so the model could not tell them apart. Leave one out. */
  "loop_definition.repeated_tool": { readonly loop: string; readonly tool: string };
  /** The model is no AI SDK language model of specification v3 or v4 (AI SDK 6 or 7). */
  "model.unsupported_specification": { readonly given: string };
  /** The provider refused the call or could not be reached. `status` is its HTTP status, where there was one. */
  "model.call_failed": { readonly model: string; readonly status?: number };
  /** The provider reported an error in the middle of its answer. */
  "model.stream_failed": { readonly model: string };
  /** The connection ended before the answer did. */
  "model.stream_cut": { readonly model: string };
  /** Nothing came from the provider for too long, so the call was given up. */
  "model.stalled": { readonly model: string; readonly idleMs: number };
  /** The provider's answer is not what its specification says, or has no end. */
  "model.invalid_response": { readonly model: string; readonly reason: string };
  /** A script for the scripted model is not what `field` must be. */
  "model.script_invalid": { readonly field: string; readonly wanted: string };
  /** The scripted model was called more often than its script has steps. Add the missing ones. */
  "model.script_exhausted": { readonly steps: number };
  /** No model was chosen on the command line, nor in the environment. Name one. */
  "model.not_chosen": NoDetails;
  /** The package of the model's provider is not installed beside looprig. Install it there. */
  "model.provider_missing": { readonly provider: string; readonly package: string };
  /** The package of the provider is there and gives no model: it cannot be loaded, or exports no provider of its name. */
  "model.provider_unusable": { readonly provider: string; readonly package: string; readonly reason: string };

  // ── coordinator ───────────────────────────────────────────────────────────────────────────────────────────────
  /** The mutation scope has a wrong shape. */
  "coordinator.invalid_operation": { readonly given: string };
  /** A path of the mutation scope is empty or not canonical. */
  "coordinator.invalid_path": { readonly path: string };
  /** The wait for a permit was cancelled; nothing is held. `cause` is the signal's reason. */
  "coordinator.acquire_canceled": { readonly operation: string };
  /** The call asked for a permit that conflicts with one it holds itself. */
  "coordinator.reentry": { readonly operation: string; readonly held: string };
  /** Calls would wait for each other for ever: each holds a permit the other waits for. Ask for all paths of a call at once. */
  "coordinator.deadlock": { readonly operation: string; readonly held: string };
  /** The permit was revoked or released before the commit. Nothing was written. */
  "coordinator.revoked": { readonly operation: string };

  // ── storage ───────────────────────────────────────────────────────────────────────────────────────────────────
  /** The lease is held by another. */
  "lease.held": { readonly name: string; readonly holder: LeaseHolder | undefined };
  /** The lease was lost: released, or its store went away. */
  "lease.lost": { readonly name: string };
  /** The ledger already holds a record at that sequence: another writer was faster. */
  "ledger.conflict": { readonly ledger: string; readonly expected: number; readonly head: number };
  /** A writer with a higher epoch has taken the ledger over. */
  "ledger.fenced": { readonly ledger: string; readonly epoch: number; readonly current: number };
  /** A stored record does not match its checksum. */
  "ledger.damaged": { readonly ledger: string; readonly seq: number };
  /** The value's revision is not the expected one: another writer was faster. */
  "kv.conflict": { readonly key: string; readonly expected: number; readonly actual: number };
  /** No blob has that key. */
  "blob.missing": { readonly key: string };
  /** A key, name or value breaks the contract's limits. */
  "storage.invalid_key": { readonly key: string; readonly reason: string };
  /** The disk or quota is full. Nothing of the call remains; free some space and repeat it. */
  "storage.full": { readonly path: string };
  /** The disk has less left than is kept in reserve for restores and for freeing space. Nothing was written; free some space. */
  "storage.reserve": { readonly path: string; readonly free: number; readonly wanted: number };
  /** The storage answered with an error of the operating system. */
  "storage.failed": { readonly operation: string; readonly path?: string; readonly errno?: string };
  /** The storage was busy for longer than it may be. Repeat the call. */
  "storage.busy": { readonly operation: string };
  /** The storage was closed already. */
  "storage.closed": { readonly operation: string };
  /** The state directory lies on a network file system, where locks cannot be trusted. Choose a local one, or allow it. */
  "storage.network_file_system": { readonly dir: string; readonly type: string };
  /** The state directory, or a file in it, belongs to another user. */
  "storage.foreign_owner": { readonly path: string; readonly uid: number };
  /** A file of the state directory is damaged or missing. Nothing was changed; copy the directory away before repairing it. */
  "storage.damaged": { readonly path: string; readonly reason: string };
  /** The state directory was removed or replaced while it was open. Nothing is written to what stands there now; open it anew. */
  "storage.missing": { readonly dir: string };
  /** The directory named as state directory holds something else. Nothing was changed; choose an empty or absent one. */
  "storage.not_a_store": { readonly dir: string; readonly entry: string };
  /** The state directory was written by a newer looprig. Nothing was changed. */
  "storage.unsupported_version": { readonly dir: string; readonly found: number; readonly supported: number };

  // ── snapshots ─────────────────────────────────────────────────────────────────────────────────────────────────
  /** The tree is larger than is captured without being asked. Exclude what need not be kept, or allow it. */
  "capture.too_large": {
    readonly files: number;
    readonly bytes: number;
    readonly largest: readonly { readonly path: string; readonly bytes: number }[];
  };
  /** Strict capture met paths it could not capture. */
  "capture.incomplete": { readonly paths: readonly { readonly path: string; readonly class: string }[] };
  /** The capture was cancelled. What it stored is kept for the next one. */
  "capture.canceled": NoDetails;
  /** The directory to be captured is missing or no directory. */
  "capture.root_unreadable": { readonly root: string };
  /** An object the snapshot names is not in the store. The files it belongs to cannot be restored. */
  "snapshot.object_missing": { readonly ref?: SnapshotRef; readonly object: string; readonly path?: string };
  /** An object does not match its digest. It is never restored. */
  "snapshot.object_damaged": { readonly object: string; readonly path?: string };
  /** The store holds no snapshot of that ref. */
  "snapshot.unknown": { readonly ref: SnapshotRef };
  /** A policy let the tree go (`looprig gc`). What was taken stays on record; its bytes are kept no more. */
  "snapshot.dropped": { readonly name: string; readonly at: string };
  /** The destination of a materialization exists and is not empty. */
  "snapshot.dest_not_empty": { readonly dest: string };
  /** The destination of a materialization cannot be made or opened. Nothing was written. */
  "snapshot.dest_unusable": { readonly dest: string; readonly reason: string };
  /** A write of a materialization failed. What it had made was removed again. */
  "snapshot.materialize_failed": {
    readonly dest: string;
    readonly path: string;
    readonly operation: string;
    readonly errno?: string;
  };
  /** A pin cannot be read, so what it keeps alive is not known. Nothing may be collected meanwhile. */
  "snapshot.pin_damaged": { readonly owner: string; readonly id: string };
  /** A list of what a collection is about to remove cannot be read, so nothing stored may be relied on. Collect (`looprig gc`). */
  "snapshot.condemned_unreadable": { readonly key: string };
  /** Directories of pinned snapshots are damaged, so what they keep alive is not known. Nothing was collected. */
  "snapshot.not_collected": {
    readonly damaged: readonly {
      readonly object: string;
      readonly path?: string;
      readonly owner: string;
      readonly id: string;
    }[];
  };
  /** The snapshot exceeds the limits of the materialization. */
  "snapshot.limit": { readonly limit: "maxEntries" | "maxBytes"; readonly allowed: number };
  /** Two names of the snapshot are one name on the destination's volume. Nothing was written. */
  "snapshot.name_collision": { readonly pairs: readonly (readonly [string, string])[] };
  /** There is nothing at that path in the snapshot. */
  "snapshot.path_missing": { readonly ref: SnapshotRef; readonly path: string };
  /** The path was left out of the snapshot, so its bytes are not there. */
  "snapshot.path_omitted": { readonly ref: SnapshotRef; readonly path: string; readonly class: string };

  // ── restore, undo, redo ───────────────────────────────────────────────────────────────────────────────────────
  /** There is nothing (more) to undo, redo or restore here. */
  "restore.nothing": { readonly action: string };
  /** The tree moved between plan and commit. Nothing was written; make a new plan. */
  "restore.tree_moved": { readonly paths: readonly string[] };
  /** Bytes that would be overwritten could not be made safe first. Nothing was written. */
  "restore.unprotected": { readonly paths: readonly string[]; readonly bytesNeeded: number };
  /** A write failed; everything done so far was taken back and the tree is as before. */
  "restore.failed": { readonly path: string; readonly operation: string; readonly errno?: string };
  /**
   * A write failed and so did taking it back; or the tree is as planned, and that could not be recorded. The plan is kept: the
   * next command on this root goes on with it, and `looprig status` tells then which of both it came to.
   */
  "restore.unsettled": { readonly root: CanonicalRoot; readonly planId: string };
  /** The record of a restore that was cut short cannot be read, so it can be neither completed nor taken back. Nothing was changed. */
  "restore.plan_damaged": { readonly root: CanonicalRoot; readonly planId: string };
  /**
   * A capture at the turn's start or end failed, so what differs since `since` (its start, or the last checkpoint before it)
   * is listed but cannot be undone. Without `since` nothing was captured before it.
   */
  "undo.unprotected": { readonly turn: string; readonly paths: readonly string[]; readonly since?: string | undefined };
  /** Window changes in a shared root may be somebody else's; they need consent. */
  "undo.needs_consent": { readonly turn: string; readonly paths: readonly string[] };

  // ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────
  /** The command to run does not exist. */
  "exec.not_found": { readonly command: string };
  /** The command to run exists but cannot be run. */
  "exec.not_executable": { readonly command: string };
  /** The command ran to its end, but that could not be recorded. Do not run it again; the next command here settles its turn. */
  "exec.unrecorded": { readonly turn: number; readonly exitCode: number };
  /** The command line is wrong; `field` names the option or argument. */
  "usage.invalid": { readonly field: string; readonly wanted: string };
  /** The action needs a yes, and there is no terminal to ask on. Repeat it with --yes. */
  "consent.needed": { readonly action: string };
}
/** Every code there is: `area.case`. */
export type ErrorCode = keyof ErrorDetails;

/** What an error may say besides code, message and details. */
export interface ErrorOptions {
  readonly cause?: unknown;
  /** One line: what to type or do next. */
  readonly hint?: string | undefined;
  /** Whether the same call can succeed later without a change by the caller. Default false. */
  readonly retryable?: boolean;
}

/** The base of every error we throw on purpose. Branch on `code`; show `message`; act on `details`. */
export class LooprigError<C extends ErrorCode = ErrorCode> extends Error {
  readonly code: C;
  readonly details: ErrorDetails[C];
  readonly hint: string | undefined;
  readonly retryable: boolean;
  /** Marks our errors across duplicate installs, where `instanceof` fails. */
  readonly "~looprig" = true as const;

  constructor(code: C, message: string, details: ErrorDetails[C], options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = details;
    this.hint = options.hint;
    this.retryable = options.retryable ?? false;
  }

  /** A stable, log-safe form. `cause` and the stack are not in it. */
  toJSON(): { name: string; code: C; message: string; details: ErrorDetails[C]; hint?: string } {
    const { name, code, message, details, hint } = this;
    return { name, code, message, details, ...(hint === undefined ? {} : { hint }) };
  }
}
/** The error of one code; of several codes, a union that `code` tells apart. */
export type LooprigErrorOf<C extends ErrorCode> = C extends unknown ? LooprigError<C> : never;

/** True for errors of ours, also from a duplicate install; with codes, narrows `details` to theirs. */
export function isLooprigError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: readonly C[]
): error is LooprigErrorOf<C> {
  return (
    error instanceof Error &&
    "~looprig" in error &&
    (codes.length === 0 || codes.includes((error as unknown as LooprigError<C>).code))
  );
}

type CodesOf<Area extends string> = Extract<ErrorCode, `${Area}.${string}`>;

// A class of its own exists where people catch a whole area.
/** A placement that cannot be: codes `workspace_placement.*` (P4). */
export class WorkspacePlacementError extends LooprigError<CodesOf<"workspace_placement">> {}
/** A rig whose loops, primers or options cannot be: codes `rig_definition.*`. */
export class RigDefinitionError extends LooprigError<CodesOf<"rig_definition">> {}
/** A policy that is missing, not wanted or not possible: codes `snapshot_policy.*` (S1, S2). */
export class SnapshotPolicyError extends LooprigError<CodesOf<"snapshot_policy">> {}
/** A rig that is not the one its session was stored with (R5). */
export class ConfigurationDriftError extends LooprigError<"configuration.drift"> {}
/** Storage that would lie inside of what is captured (B1). */
export class PersistenceOverlapError extends LooprigError<"persistence.overlap"> {}
/** A workspace was asked for where there is none (P2). */
export class WorkspaceUnavailableError extends LooprigError<"workspace.unavailable"> {}
/** Another session holds the root, one above or below it (R3); `details.holder` says who. */
export class WorkspaceRootBusyError extends LooprigError<"workspace_root.busy"> {}
/** Another directory stands at the root, or none (R7). */
export class WorkspaceRootChangedError extends LooprigError<"workspace_root.changed"> {}
/** The root is no longer surely ours; nothing more may be committed (C5). */
export class WorkspaceRootLeaseLostError extends LooprigError<"workspace_root.lease_lost"> {}
/** A turn or a command is at work; wait until the session is idle. */
export class SessionBusyError extends LooprigError<"session.busy"> {}
/** A tool that cannot be defined or bound: codes `tool_definition.*` (T3). */
export class ToolDefinitionError extends LooprigError<CodesOf<"tool_definition">> {}
/** A file is not as it was last seen (C9). Read it, and write again. */
export class StaleFileError extends LooprigError<"file.stale"> {}
/** A loop that cannot be defined: codes `loop_definition.*`. */
export class LoopDefinitionError extends LooprigError<CodesOf<"loop_definition">> {}
/** A model that cannot be used, or failed: codes `model.*`. */
export class ModelError extends LooprigError<CodesOf<"model">> {}
/** A permit that was not given, or is gone: codes `coordinator.*` (C1–C6). */
export class CoordinatorError extends LooprigError<CodesOf<"coordinator">> {}
/** Storage that fails, is full, damaged or held: codes `storage.*`, `ledger.*`, `kv.*`, `blob.*`, `lease.*`. */
export class StorageError extends LooprigError<CodesOf<"storage" | "ledger" | "kv" | "blob" | "lease">> {}
/** A tree that cannot be captured, read or written: codes `snapshot.*`, `capture.*`. */
export class SnapshotError extends LooprigError<CodesOf<"snapshot" | "capture">> {}
/** An undo, redo or restore that was refused or failed: codes `restore.*`, `undo.*`. */
export class RestoreError extends LooprigError<CodesOf<"restore" | "undo">> {}
