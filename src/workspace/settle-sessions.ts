/**
 * Sessions that died with a turn open are settled by whoever next takes the root for writing (G5): first it is made sure
 * that nothing of theirs runs any more, then the windows left open are closed and the turn ends as interrupted, so that it
 * can be undone like any other. Groups of shell commands are ended; the command of `exec` is never signalled here: the
 * caller waits for it, or accepts it.
 */
import { LooprigError, isLooprigError } from "../core/index.js";
import type { Abortable, SessionId, SnapshotRef } from "../core/index.js";
import type { EventOf, Journal } from "../session-store/index.js";
import { closeTurn } from "./close-turn.js";
import { openTurn } from "./history.js";
import type { OpenTurn } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import { settleGroup } from "./process-group.js";
import { isSameProcess } from "./process-identity.js";
import type { RootReader } from "./root-reader.js";

/** A command of a dead session that may still run. */
export interface RunningOrphan {
  readonly sessionId: SessionId;
  readonly process: EventOf<"process-started">;
}

/** The dead sessions of a root, and which commands of theirs still run. */
export interface Orphans {
  readonly orphans: readonly SessionId[];
  readonly running: readonly RunningOrphan[];
  /** The newest checkpoint of the root, which the same reading tells. */
  readonly newest: SnapshotRef | undefined;
}

/** Ends the process groups of dead sessions, and names the commands of theirs that still run. */
export async function findOrphans(reader: RootReader, options: Abortable = {}): Promise<Orphans> {
  const { orphans, checkpoints } = await reader.history(options);
  const running: RunningOrphan[] = [];
  for (const sessionId of orphans) {
    const turn = openTurn((await reader.trace(sessionId, false, options)).events);
    for (const process of turn?.processes ?? []) {
      if (await mayRun(reader, process)) running.push({ sessionId, process });
    }
  }
  return { orphans, running, newest: checkpoints.at(-1)?.ref };
}

/**
 * What a session that is resumed left running: its groups are ended; a command that still runs refuses with
 * `workspace_root.command_running`.
 */
export async function assertEnded(reader: RootReader, sessionId: SessionId, { processes }: OpenTurn): Promise<void> {
  for (const process of processes) {
    if (await mayRun(reader, process)) throw commandRunning(reader, { sessionId, process });
  }
}

/** Whether it may still run, after what may be done about it: a group of ours is ended, the command of `exec` is not (G5). */
async function mayRun({ fileSystem }: RootReader, process: EventOf<"process-started">): Promise<boolean> {
  return process.group === true ? !(await settleGroup(fileSystem, process)) : isSameProcess(fileSystem, process);
}

export function commandRunning(
  reader: RootReader,
  { sessionId, process: { pid, command } }: RunningOrphan,
): LooprigError<"workspace_root.command_running"> {
  return new LooprigError(
    "workspace_root.command_running",
    `Cannot take the root "${reader.root}": "${command}" (pid ${pid}) still runs there, though the session that started it is gone; ` +
      "wait for it, or end it",
    { root: reader.root, pid, command, sessionId },
    { hint: `kill ${pid}`, retryable: true },
  );
}

/** Settles every orphan whose command is gone. */
export async function settleSessions(owned: OwnedRoot, options: Abortable = {}): Promise<void> {
  const { orphans } = await owned.reader.history(options);
  for (const id of orphans) if (id !== owned.sessionId) await settleSession(owned, id, options);
}

async function settleSession(owned: OwnedRoot, id: SessionId, options: Abortable): Promise<void> {
  const { reader } = owned;
  let journal: Journal;
  try {
    journal = await reader.sessions.open(id, { command: "settling after a crash", subject: reader.root }, options);
  } catch (error) {
    // Live again, or being settled by another (shared roots have several writers); damaged ones stay as they are.
    if (isLooprigError(error, "lease.held", "journal.damaged", "session.unknown")) return;
    throw error;
  }
  await using _journal = journal;
  // Read again under its lease: this is what no other settler can change any more.
  const trace = await reader.trace(id, false, options);
  const turn = openTurn(trace.events);
  for (const process of turn?.processes ?? []) if (await mayRun(reader, process)) return;
  const events = turn === undefined ? [] : await closeTurn(owned, trace, turn, options);
  await journal.append([...events, { type: "session-closed" }]);
}
