/**
 * The end of a turn whose process was killed: what it changed by itself is closed and counted, so that it can be undone like
 * any other. Used by the session itself when it is resumed, and by whoever takes the root next.
 */
import type { BigIntStats } from "node:fs";
import { baseName, errnoOf, mintCallId, openBelow, parentOf, parseWorkspacePath } from "../core/index.js";
import type { Abortable, Directory, SessionId, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import { fileEntryOf, isSameEntry } from "../workspace-store/index.js";
import { parseEntryId } from "./entry-id.js";
import { entryKind } from "./file-diff.js";
import { foldHistory } from "./history.js";
import type { FoldedHistory, OpenTurn, OpenWindow, RecordedWrite } from "./history.js";
import type { OwnedRoot, TakenCheckpoint } from "./owned-root.js";
import { readSmallBytes } from "./small-file.js";
import { netChanges } from "./turn-record.js";

interface ClosedSession {
  readonly id: SessionId;
  readonly events: readonly SessionEvent[];
}

/** The events that close what was open in it, its processes and windows; the caller has made sure that nothing runs. */
export async function closeWindows(
  owned: OwnedRoot,
  session: ClosedSession,
  turn: OpenTurn,
  options: Abortable = {},
): Promise<readonly NewEvent[]> {
  return (await close(owned, session, turn, options)).events;
}

/** The same, and the event that ends the turn as interrupted. */
export async function closeTurn(
  owned: OwnedRoot,
  session: ClosedSession,
  turn: OpenTurn,
  options: Abortable = {},
): Promise<readonly NewEvent[]> {
  const { started } = turn;
  const { events, changed } = await close(owned, session, turn, options);
  const { order } = await owned.reader.record.draw({}, owned.reader.clock(), options);
  const end = { order, changed, reason: "looprig was killed" };
  return [...events, { type: "turn-interrupted", ...end, ...scopeOf(started) }];
}

interface Closed {
  readonly events: readonly NewEvent[];
  readonly changed: number;
}

async function close(owned: OwnedRoot, session: ClosedSession, turn: OpenTurn, options: Abortable): Promise<Closed> {
  const { reader } = owned;
  const { started, processes } = turn;
  const of = scopeOf(started);
  const exited = processes.map(({ callId }): NewEvent => ({ type: "process-exited", callId, ...of }));
  const history = foldHistory(reader.root, true, [{ ...session, live: false, damaged: false }]);
  const windows = openSpans(history, turn);
  const writes = history.writes.filter((write) => write.turnId === started.turnId);
  if (!owned.missing) for (const write of writes) if (!write.finished) removeStaged(owned, write);
  // A root that is gone has no tree to close a window with; the turn then has a beginning and no end.
  if (owned.missing || (windows.length === 0 && writes.length === 0)) {
    return { events: [...exited, ...windows.flatMap(({ marker }) => closing(marker, of))], changed: 0 };
  }
  const latest = windows.at(-1)?.from ?? latestRef(session.events, started.turnId);
  const taken = await owned.take({
    trigger: "window",
    turnId: started.turnId,
    unlessEqual: latest,
    countedFrom: latest,
    owner: session.id,
    ...options,
  });
  const { order: closeOrder } = await reader.record.draw({}, reader.clock(), options);
  const closed = windows.flatMap(({ from, openOrder, opened, marker }): NewEvent[] => [
    ...(from === taken.result.ref
      ? []
      : [
          {
            ...{
              type: "workspace-changed" as const,
              kind: "window" as const,
              callId: marker?.opened.callId ?? callOf(turn),
            },
            ...{ from, to: taken.result.ref, opened, openOrder, closeOrder, settled: true, ...of },
          },
        ]),
    ...closing(marker, of),
  ]);
  const events = [...exited, ...(taken.event === undefined ? [] : [taken.event]), ...closed];
  return { events, changed: await countChanged(owned, history, started.number, taken, options) };
}

/**
 * What a write that was cut short left beside its paths: exactly the names that were recorded, never one like them (U9). The
 * second name of a file that was replaced goes only if nobody wrote into it (C10).
 */
function removeStaged(owned: OwnedRoot, { staged = [], replaced, changes }: RecordedWrite): void {
  for (const path of staged) removeFile(owned, path, () => true);
  const before = parseEntryId(changes.at(-1)?.before ?? null);
  if (replaced === undefined || before?.kind !== "file") return;
  removeFile(owned, replaced, (directory, name, stat) => {
    // One of another size was written into, and need not be read.
    if (stat.size !== BigInt(before.size)) return false;
    const bytes = readSmallBytes(owned.reader.fileSystem, directory.at(name), before.size);
    return isSameEntry(fileEntryOf(bytes, Number(stat.mode) & 0o777), before);
  });
}

function removeFile(
  owned: OwnedRoot,
  given: string,
  isOurs: (directory: Directory, name: string, stat: BigIntStats) => boolean,
): void {
  const path = parseWorkspacePath(given);
  const name = baseName(path);
  try {
    using directory = openBelow(owned.directory(), parentOf(path));
    const stat = directory.lstat(name);
    if (stat.isFile() && isOurs(directory, name, stat)) owned.reader.fileSystem.unlink(directory.at(name));
  } catch (error) {
    // Not there, or not to be had now: it is a name too many, and no byte of anybody's is lost with it.
    if (errnoOf(error) === undefined) throw error;
  }
}

interface OpenSpan {
  readonly from: SnapshotRef;
  readonly openOrder: number;
  readonly opened: boolean;
  /** Absent for the one window of a command of `exec`, which is its turn. */
  readonly marker: OpenWindow | undefined;
}

function openSpans(history: FoldedHistory, { started, baseline }: OpenTurn): readonly OpenSpan[] {
  if (started.kind === "command") {
    return baseline === undefined
      ? []
      : [{ from: baseline.ref, openOrder: started.order, opened: true, marker: undefined }];
  }
  return history.openWindows
    .filter(({ turnId }) => turnId === started.turnId)
    .flatMap((marker) => {
      const { from, order, opened } = marker.opened;
      return from === undefined ? [] : [{ from, openOrder: order, opened, marker }];
    });
}

type Scope = Pick<NewEvent, "turnId" | "loopId">;

const scopeOf = ({ turnId, loopId }: SessionEvent): Scope => ({
  ...(turnId === undefined ? {} : { turnId }),
  ...(loopId === undefined ? {} : { loopId }),
});

const closing = (marker: OpenWindow | undefined, of: Scope): NewEvent[] =>
  marker === undefined ? [] : [{ type: "window-closed", callId: marker.opened.callId, ...of }];

const callOf = ({ processes }: OpenTurn): ReturnType<typeof mintCallId> => processes.at(-1)?.callId ?? mintCallId();

function latestRef(events: readonly SessionEvent[], turnId: SessionEvent["turnId"]): SnapshotRef | undefined {
  const last = events.findLast((event) => event.type === "workspace-checkpointed" && event.turnId === turnId);
  return last?.type === "workspace-checkpointed" ? last.ref : undefined;
}

/** Files and links, with the windows closed at the tree that was just taken. */
async function countChanged(
  owned: OwnedRoot,
  history: FoldedHistory,
  number: number,
  { result }: TakenCheckpoint,
  options: Abortable,
): Promise<number> {
  const turn = history.turns.find((each) => each.number === number);
  if (turn === undefined) return 0;
  const { tree } = result;
  const present = { tree: async () => tree, lookup: (path: WorkspacePath) => tree.lookup(path) };
  const changes = await netChanges(owned.reader.store, history, turn, present, options);
  return changes.filter((change) => entryKind(change) !== "directory").length;
}
