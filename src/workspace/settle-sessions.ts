/**
 * Sessions that died with a turn open are settled by whoever next takes the root for writing (G5): first it is made sure
 * that their command no longer runs, then the window it left open is closed and the turn ends as interrupted, so that it
 * can be undone like any other. A command that still runs is never signalled here: the caller waits, or accepts it.
 */
import { LooprigError, isLooprigError, mintCallId } from "../core/index.js";
import type { Abortable, SessionId } from "../core/index.js";
import type { Journal, NewEvent } from "../session-store/index.js";
import { openTurn, windowCall } from "./history.js";
import type { OpenTurn, SessionTrace } from "./history.js";
import type { OwnedRoot } from "./owned-root.js";
import { isSameProcess } from "./process-identity.js";
import type { RootReader } from "./root-reader.js";

/** Commands of dead sessions that still run. */
export async function runningOrphans(reader: RootReader, options: Abortable = {}): Promise<readonly OpenTurn[]> {
  const { orphans } = await reader.history(options);
  const running: OpenTurn[] = [];
  for (const id of orphans) {
    const turn = openTurn((await reader.trace(id, false, options)).events);
    if (turn?.process !== undefined && isSameProcess(reader.fileSystem, turn.process)) running.push(turn);
  }
  return running;
}

export function commandRunning(reader: RootReader, turn: OpenTurn): LooprigError<"workspace_root.command_running"> {
  const { pid, command } = turn.process ?? { pid: 0, command: turn.started.input };
  return new LooprigError(
    "workspace_root.command_running",
    `Cannot take the root "${reader.root}": "${command}" (pid ${pid}) still runs there, though the session that started it is gone; ` +
      "wait for it, or end it",
    { root: reader.root, pid, command, sessionId: turn.started.sessionId },
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
  if (turn?.process !== undefined && isSameProcess(reader.fileSystem, turn.process)) return;
  const events = turn === undefined ? [] : await closeTurn(owned, trace, turn, options);
  await journal.append([...events, { type: "session-closed" }]);
}

async function closeTurn(
  owned: OwnedRoot,
  trace: SessionTrace,
  turn: OpenTurn,
  options: Abortable,
): Promise<readonly NewEvent[]> {
  const { reader } = owned;
  const { turnId } = turn.started;
  const of = turnId === undefined ? {} : { turnId };
  const callId = windowCall(turn, mintCallId());
  const from = turn.baseline?.ref;
  // A root that is gone has no tree to close the window with; the turn then has a beginning and no end.
  const taken =
    from === undefined || owned.missing
      ? undefined
      : await owned.take({
          trigger: "window",
          turnId,
          countedFrom: from,
          unlessEqual: from,
          owner: trace.id,
          ...options,
        });
  const { order } = await reader.record.draw({}, reader.clock(), options);
  const exited: NewEvent[] = turn.process === undefined ? [] : [{ type: "process-exited", callId, ...of }];
  const changed: NewEvent[] =
    taken?.event === undefined || from === undefined
      ? []
      : [
          taken.event,
          {
            ...{ type: "workspace-changed", kind: "window", callId, from, to: taken.result.ref, opened: true },
            ...{ openOrder: turn.started.order, closeOrder: order, settled: true, ...of },
          },
        ];
  return [
    ...exited,
    ...changed,
    { type: "turn-interrupted", order, changed: taken?.event?.changed ?? 0, reason: "looprig was killed", ...of },
  ];
}
