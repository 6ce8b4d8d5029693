/** The commands by name. Each module is loaded when its command is called: a start costs what the command costs. */
import type { Command } from "./command.js";

export const commands: Readonly<Record<string, () => Promise<{ readonly command: Command }>>> = {
  run: () => import("./commands/run.js"),
  exec: () => import("./commands/exec.js"),
  status: () => import("./commands/status.js"),
  log: () => import("./commands/log.js"),
  diff: () => import("./commands/diff.js"),
  show: () => import("./commands/show.js"),
  undo: () => import("./commands/undo.js"),
  redo: () => import("./commands/redo.js"),
  restore: () => import("./commands/restore.js"),
  snapshot: () => import("./commands/snapshot.js"),
  sessions: () => import("./commands/sessions.js"),
  gc: () => import("./commands/gc.js"),
  verify: () => import("./commands/verify.js"),
  doctor: () => import("./commands/doctor.js"),
};
