/** The exit status of every outcome. Scripts branch on these: a number never changes its meaning. */
import { isLooprigError } from "../core/index.js";
import type { ErrorCode } from "../core/index.js";
import { Interrupted } from "./interrupt.js";

export const exit = {
  done: 0,
  failed: 1,
  /** The command line is wrong, or consent is needed and there is no terminal. */
  usage: 2,
  nothing: 3,
  /** Paths changed since; nothing was written. */
  conflict: 4,
  busy: 5,
  /** Refused for safety: root changed, too broad, too large, unprotected. */
  refused: 6,
  /** `exec`: any refusal or failure of ours, and what `env` uses. */
  execFailed: 125,
  execNotExecutable: 126,
  execNotFound: 127,
  interrupted: 130,
} as const;
export type ExitCode = (typeof exit)[keyof typeof exit];

type AreaOf<C> = C extends `${infer Area}.${string}` ? Area : never;
type Area = AreaOf<ErrorCode>;

/** By area, complete by type: a new area does not compile until it has its status. */
const byArea: Readonly<Record<Area, ExitCode>> = {
  platform: exit.refused,
  option: exit.usage,
  session_id: exit.usage,
  ref: exit.usage,
  path: exit.usage,
  workspace_placement: exit.refused,
  persistence: exit.refused,
  workspace_root: exit.refused,
  workspace: exit.failed,
  session: exit.usage,
  checkpoint: exit.failed,
  journal: exit.failed,
  rig_definition: exit.usage,
  snapshot_policy: exit.usage,
  configuration: exit.refused,
  workspace_seed: exit.refused,
  tool_definition: exit.failed,
  tool_binding: exit.failed,
  file: exit.failed,
  search: exit.failed,
  loop_definition: exit.usage,
  model: exit.failed,
  coordinator: exit.failed,
  lease: exit.busy,
  ledger: exit.failed,
  kv: exit.failed,
  blob: exit.failed,
  storage: exit.failed,
  capture: exit.failed,
  snapshot: exit.failed,
  restore: exit.failed,
  undo: exit.refused,
  exec: exit.failed,
  usage: exit.usage,
  consent: exit.usage,
};

/** Where a case differs from its area. */
const byCode: Readonly<Partial<Record<ErrorCode, ExitCode>>> = {
  "path.escapes": exit.refused,
  "workspace_placement.empty_root": exit.usage,
  "workspace_placement.canonicalize_failed": exit.usage,
  "workspace_root.busy": exit.busy,
  "workspace_root.command_running": exit.busy,
  "workspace_root.lease_lost": exit.failed,
  "session.busy": exit.busy,
  "coordinator.acquire_canceled": exit.interrupted,
  "model.not_chosen": exit.usage,
  "model.script_invalid": exit.usage,
  "lease.lost": exit.failed,
  "storage.busy": exit.busy,
  "storage.network_file_system": exit.refused,
  "storage.foreign_owner": exit.refused,
  "storage.unsupported_version": exit.refused,
  "capture.too_large": exit.refused,
  "capture.incomplete": exit.refused,
  "capture.canceled": exit.interrupted,
  "snapshot.path_missing": exit.usage,
  "snapshot.dest_not_empty": exit.refused,
  "snapshot.limit": exit.refused,
  "snapshot.name_collision": exit.refused,
  "restore.nothing": exit.nothing,
  "restore.tree_moved": exit.conflict,
  "restore.unprotected": exit.refused,
  "undo.needs_consent": exit.usage,
};

const byExec: Readonly<Partial<Record<ErrorCode, ExitCode>>> = {
  "exec.not_found": exit.execNotFound,
  "exec.not_executable": exit.execNotExecutable,
};

export const exitCodeOf = (code: ErrorCode): ExitCode => byCode[code] ?? byArea[areaOf(code)];

/** The status a command that ended with `error` exits with. */
export function exitCodeFor(error: unknown, command: string | undefined): number {
  if (error instanceof Interrupted) return error.exitCode;
  if (command === "exec") return (isLooprigError(error) ? byExec[error.code] : undefined) ?? exit.execFailed;
  return isLooprigError(error) ? exitCodeOf(error.code) : exit.failed;
}

const areaOf = (code: ErrorCode): Area => code.slice(0, code.indexOf(".")) as Area;
