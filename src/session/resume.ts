/**
 * A stored session goes on in a new process: its configuration is compared (R5), its root is the recorded one or is
 * adopted or rebuilt (R7), and a turn that was cut short is settled, unless it waits for an answer: then it goes on.
 */
import type { SessionId } from "../core/index.js";
import { ConfigurationDriftError, Directory, LooprigError, canonicalJson } from "../core/index.js";
import { openTurn } from "../loop/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import { assertEnded, closeTurn, closeWindows, openTurnOf, replaceStranger } from "../workspace/index.js";
import { takeRoot, treeToGoOnFrom } from "../workspace/index.js";
import type { OwnedRoot } from "../workspace/index.js";
import type { DriftChange, ResumeOptions, Session, SessionDefinition } from "./contracts.js";
import { ForeignRestores } from "./foreign-restores.js";
import { activeLoop } from "./loop-actors.js";
import type { SessionTree } from "./parts.js";
import type { RunningSession } from "./session.js";
import { SessionWorkspace } from "./session-workspace.js";
import { SessionEars, assemble, commandOf, giveBack, makeBase, readerOf } from "./start.js";
import { TurnWindow } from "./turn-window.js";

type Undo = (() => Promise<void> | void)[];

export async function resumeSession(
  definition: SessionDefinition,
  id: SessionId,
  options: ResumeOptions = {},
): Promise<Session> {
  const undo: Undo = [];
  try {
    return await resume(definition, id, options, undo);
  } catch (error) {
    await giveBack(undo);
    throw error;
  }
}

async function resume(
  definition: SessionDefinition,
  id: SessionId,
  options: ResumeOptions,
  undo: Undo,
): Promise<Session> {
  const { signal } = options;
  const sessions = createSessionStore(definition.storage);
  // Compared before anything is taken: a session that does not fit is left as it is.
  const stored = await readAll(sessions.read(id, { signal }));
  const drift = decideDrift(definition, stored, options);
  const ears = new SessionEars();
  const command = commandOf(definition);
  let tree: SessionTree | undefined;
  let journal: Journal;
  if (definition.placement === undefined) {
    const opened = await sessions.open(id, { command }, { signal });
    undo.push(() => opened.close());
    journal = ears.wrap(opened);
  } else {
    tree = await takeTree(definition, id, options, ears, undo);
    journal = tree.owned.journal;
  }
  // Read again: whoever settled the session meanwhile wrote to its journal, and so did taking its root.
  const before = [...(await readAll(sessions.read(id, { signal })))];
  for (const event of before) ears.fault.heard(event);
  const cut = openTurnOf(before);
  if (tree !== undefined && cut !== undefined) await assertEnded(tree.owned.reader, id, cut);
  const append = async (events: readonly NewEvent[]): Promise<void> => {
    before.push(...(await journal.append(events)));
  };
  if (drift.length > 0) {
    const changes = drift.map(({ field, stored: was, live }) => ({ field, stored: was, live }));
    await append([{ type: "configuration-adopted", changes }]);
  }
  if (tree !== undefined) {
    await append(await restoresMeanwhile(tree, before));
    if (definition.placement?.mode === "session") await tree.owned.checkpoint({ trigger: "resume", signal });
  }
  const active = activeLoop(before, definition.primers, definition.activePrimer);
  const session = await assemble(definition, { journal, ears, tree, before, active }, undo);
  await settleTurn(definition, session, { journal, tree, before, faulted: ears.fault.code !== undefined });
  // Where the loop that had the input is gone, another one has it from here on, and that is on record.
  if (activeLoop(before, allLoops(before), active) !== active) await session.recordActiveLoop();
  return session;
}

/** What others undid or restored in the root since this session was last at work: its loops are told. */
async function restoresMeanwhile(
  { owned }: SessionTree,
  before: readonly SessionEvent[],
): Promise<readonly NewEvent[]> {
  const restores = new ForeignRestores(owned.reader, owned.sessionId);
  for (const event of before) restores.heard(event);
  return (await restores.look()).events;
}

const allLoops = (events: readonly SessionEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === "loop-started" ? [event.name] : []));

async function takeTree(
  definition: SessionDefinition,
  id: SessionId,
  { root, signal }: ResumeOptions,
  ears: SessionEars,
  undo: Undo,
): Promise<SessionTree> {
  const { placement } = definition;
  if (placement === undefined) throw new Error("BUG: a session without a placement has no tree");
  const reader = readerOf(definition, placement, id, ears.progress);
  if (placement.mode === "session") makeBase(reader, placement.baseDir);
  // A session root that is gone is ours to build anew (P1); a fixed one only when that was asked for.
  const recreate = root === "recreate" || placement.mode === "session";
  const owned = await takeRoot(
    reader,
    {
      ...{ command: commandOf(definition), capture: placement.capture, signal },
      adoptRoot: root === "adopt",
      missingRoot: recreate ? "recreate" : "refuse",
      strangers: placement.mode === "session" ? "yield" : "refuse",
      session: { id, resume: true, wrap: ears.wrap },
    },
    undo,
  );
  const workspace = new SessionWorkspace(owned);
  if (owned.missing) await rebuild(owned, workspace);
  else if (owned.stranger !== undefined) await replaceStranger(owned, { signal });
  return { owned, workspace };
}

/**
 * From the newest checkpoint of the root. A session that died before its first begins in an empty directory, as it did then;
 * of a fixed root nobody says what was in it.
 */
async function rebuild(owned: OwnedRoot, workspace: SessionWorkspace): Promise<void> {
  const { root, fileSystem, placement } = owned.reader;
  const tree = await treeToGoOnFrom(owned.reader);
  if (tree !== undefined) {
    await workspace.restore(tree);
    return;
  }
  if (placement !== "session") {
    throw new LooprigError("workspace_root.changed", `Cannot build "${root}" anew: no checkpoint of it was taken`, {
      root,
      state: "missing",
    });
  }
  fileSystem.mkdir(root, 0o777);
  await owned.attach(Directory.open(fileSystem, root));
}

/** R5. Returns what was adopted. */
function decideDrift(
  definition: SessionDefinition,
  stored: readonly SessionEvent[],
  { drift, onDrift }: ResumeOptions,
): readonly DriftChange[] {
  const started = stored.find((event) => event.type === "session-started");
  if (started?.manifest === undefined || started.fingerprint === definition.fingerprint) return [];
  const usedLoops = stored.flatMap((event) => (event.type === "loop-started" ? [event.name] : []));
  const changes = drift?.(started.manifest, definition.manifest, usedLoops) ?? [];
  if (changes.length === 0 || wasAdopted(stored, changes)) return [];
  const accepted =
    onDrift === undefined
      ? !changes.some(({ severity }) => severity === "breaking")
      : onDrift({ changes }) === "accept";
  if (accepted) return changes;
  throw new ConfigurationDriftError(
    "configuration.drift",
    `Cannot resume session ${started.sessionId}: its configuration differs in ${changes.map(({ field }) => field).join(", ")}; resume it with the rig it was started with, or accept the difference`,
    { changes },
  );
}

/** The very differences that were accepted at an earlier resume are not asked about again. */
function wasAdopted(stored: readonly SessionEvent[], changes: readonly DriftChange[]): boolean {
  const adopted = stored.findLast((event) => event.type === "configuration-adopted");
  const plain = changes.map(({ field, stored: before, live }) => ({ field, stored: before, live }));
  return adopted !== undefined && canonicalJson(adopted.changes) === canonicalJson(plain);
}

async function readAll(events: AsyncIterable<SessionEvent>): Promise<readonly SessionEvent[]> {
  const all: SessionEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** A turn that was cut short ends as interrupted, with its window; one that waits for an answer goes on. */
async function settleTurn(
  definition: SessionDefinition,
  session: RunningSession,
  {
    journal,
    tree,
    before,
    faulted,
  }: {
    readonly journal: Journal;
    readonly tree: SessionTree | undefined;
    readonly before: readonly SessionEvent[];
    readonly faulted: boolean;
  },
): Promise<void> {
  const turn = openTurnOf(before);
  if (turn?.started.turnId === undefined) return;
  const { turnId, loopId, number, input } = turn.started;
  const owned = tree?.owned;
  const self = { id: session.id, events: before };
  const loop = definition.loops.find(({ name }) =>
    before.some((event) => event.type === "loop-started" && event.name === name && event.loopId === loopId),
  );
  const open = loopId === undefined || loop === undefined ? undefined : openTurn(before, loopId, loop.limits);
  if (open !== undefined && loop !== undefined && loopId !== undefined && session.waitsForAnswer && !faulted) {
    let window: TurnWindow | undefined;
    if (owned !== undefined) {
      // Calls that ran beside the one that asks may have been cut short.
      const closed = await journal.append(await closeWindows(owned, self, turn));
      window = new TurnWindow(owned, { turnId, loopId });
      await window.goOn([...before, ...closed]);
    }
    session.continueTurn({ open, loop: loop.name, number, input, window });
    return;
  }
  const interrupted: NewEvent = {
    ...{ type: "turn-interrupted", turnId, order: journal.head + 1, changed: 0, reason: "looprig was killed" },
    ...(loopId === undefined ? {} : { loopId }),
  };
  const ended = owned === undefined ? [interrupted] : await closeTurn(owned, self, turn);
  await journal.append([...ended, { type: "session-idle" }]);
}
