/**
 * A session begins (E4): leases, a seed where there is one, `session-started`, the seed's checkpoint, the loops. Whatever
 * was taken is given back in reverse when a later step refuses.
 */
import path from "node:path";
import { LooprigError, errnoOf, isMissing, mintSessionId, toFsPath } from "../core/index.js";
import type { Abortable, CanonicalRoot, SessionId } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { Journal, SessionEvent } from "../session-store/index.js";
import { systemTimer } from "../loop/index.js";
import { RootReader, buildRoot, canonicalPath, takeRoot } from "../workspace/index.js";
import type { Tree } from "../workspace-store/index.js";
import { Boundaries } from "./boundaries.js";
import { ProgressFeed } from "./capture-progress.js";
import type { PlacementDefinition, Session, SessionDefinition, StartOptions } from "./contracts.js";
import { EventHub } from "./event-hub.js";
import { ForeignRestores } from "./foreign-restores.js";
import { Gates } from "./gates.js";
import { startLoops } from "./loop-actors.js";
import type { SessionTree } from "./parts.js";
import { Fault, sessionJournal } from "./session-journal.js";
import { RunningSession } from "./session.js";
import { SessionWorkspace } from "./session-workspace.js";
import { TurnRunner } from "./turn-runner.js";

type Undo = (() => Promise<void> | void)[];

/** What leases are shown to be held for. */
export const commandOf = ({ command, primers }: SessionDefinition): string => command ?? `rig ${primers.join(", ")}`;

export async function startSession(definition: SessionDefinition, options: StartOptions = {}): Promise<Session> {
  const undo: Undo = [];
  try {
    return await start(definition, mintSessionId(), options, undo);
  } catch (error) {
    await giveBack(undo);
    throw error;
  }
}

/** Runs the steps in reverse; why we stop matters more than what fails then. */
export async function giveBack(undo: Undo): Promise<void> {
  for (const step of undo.reverse()) await Promise.resolve(step()).catch(() => undefined);
}

async function start(
  definition: SessionDefinition,
  id: SessionId,
  { seed, root, signal }: StartOptions,
  undo: Undo,
): Promise<Session> {
  const ears = new SessionEars();
  const { placement, fingerprint, manifest, storage } = definition;
  const started = { fingerprint, manifest };
  const command = commandOf(definition);
  let tree: SessionTree | undefined;
  let journal: Journal;
  if (placement === undefined) {
    const opened = await createSessionStore(storage).create(id, { command }, { signal });
    undo.push(() => opened.close());
    journal = ears.wrap(opened);
    await journal.append([{ type: "session-started", placement: "none", command, ...started }]);
  } else {
    const reader = readerOf(definition, placement, id, ears.progress);
    const prepare = async (): Promise<void> => {
      if (placement.mode === "session") makeBase(reader, placement.baseDir);
      if (seed === undefined) return;
      assertSeedable(placement, reader.root);
      await plantSeed(placement, reader, await reader.store.open(seed, { signal }), { signal });
    };
    const session = { id, started, prepare, wrap: ears.wrap };
    const taking = { command, capture: placement.capture, session, signal, adoptRoot: root === "adopt" };
    const owned = await takeRoot(reader, taking, undo);
    tree = { owned, workspace: new SessionWorkspace(owned) };
    journal = owned.journal;
    if (seed !== undefined) await owned.checkpoint({ trigger: "seed", signal });
  }
  return assemble(definition, { journal, ears, tree, before: [], active: definition.activePrimer }, undo);
}

/** What hears of a session from its first event on, before there is a session. */
export class SessionEars {
  readonly hub = new EventHub();
  readonly fault = new Fault();
  readonly progress = new ProgressFeed(() => performance.now());

  readonly wrap = (journal: Journal): Journal => sessionJournal(journal, this.hub, this.fault);
}

/** The loops, and the session around everything. */
export async function assemble(
  definition: SessionDefinition,
  parts: {
    readonly journal: Journal;
    readonly ears: SessionEars;
    readonly tree: SessionTree | undefined;
    readonly before: readonly SessionEvent[];
    readonly active: string;
  },
  undo: Undo,
): Promise<RunningSession> {
  const { journal, ears, tree, before, active } = parts;
  const { hub, fault, progress } = ears;
  const { sessionId } = journal;
  const ended = new AbortController();
  undo.push(() => ended.abort());
  const primers = definition.loops.filter(({ name }) => definition.primers.includes(name));
  const { actors, started } = await startLoops(sessionId, primers, tree, ended.signal, before);
  if (started.length > 0) await journal.append(started);
  const gates = new Gates(sessionId, (event) => journal.append([event]), before);
  const timer = definition.world?.timer ?? systemTimer;
  const owned = tree?.owned;
  const captured = before.some(({ type }) => type === "workspace-checkpointed");
  const boundaries = new Boundaries({ journal, timer, owned, policy: definition.snapshots, progress, captured });
  const turns = before.filter(({ type }) => type === "turn-started").length;
  const runner = new TurnRunner({ journal, gates, owned, boundaries, progress, fault, timer, turns });
  const restores = owned === undefined ? undefined : new ForeignRestores(owned.reader, sessionId);
  for (const event of before) restores?.heard(event);
  const store = createSessionStore(definition.storage);
  return new RunningSession({
    ...{ fingerprint: definition.fingerprint, loops: actors, active, ended },
    ...{ journal, hub, gates, tree, fault, boundaries, progress, runner, restores },
    read: (from) => store.read(sessionId, { from }),
  });
}

export function readerOf(
  { world }: SessionDefinition,
  placement: PlacementDefinition,
  id: SessionId,
  progress: ProgressFeed,
): RootReader {
  const root = placement.mode === "session" ? sessionRoot(placement.baseDir, id) : placement.root;
  const { store: storage, mode, capture: settings } = placement;
  const { fileSystem } = world ?? {};
  return new RootReader({ storage, root, placement: mode, settings, fileSystem, onProgress: progress.report });
}

/** Ids are lowercase UUIDs, so the path is canonical where its base is, and no two sessions share one (R6). */
const sessionRoot = (baseDir: CanonicalRoot, id: SessionId): CanonicalRoot => path.join(baseDir, id) as CanonicalRoot;

/** Makes the base directory, one level of it, and sees that nobody put a link in its place since it was made canonical. */
export function makeBase({ fileSystem }: RootReader, baseDir: CanonicalRoot): void {
  try {
    fileSystem.mkdir(baseDir, 0o777);
  } catch {
    // It is there, or the next look says what is the matter.
  }
  const now = canonicalPath(baseDir, { fileSystem });
  if (now === baseDir) return;
  throw new LooprigError(
    "workspace_root.changed",
    `Cannot make session roots in "${baseDir}": it leads to "${now}" now; define the rig anew`,
    { root: baseDir, state: "replaced" },
  );
}

/** The root is built beside its place and put there in one step, so that a kill leaves no half of it (E4, U9). */
async function plantSeed(
  placement: PlacementDefinition,
  reader: RootReader,
  tree: Tree,
  options: Abortable,
): Promise<void> {
  const { fileSystem, root } = reader;
  let mode = 0o755;
  const assertFree = (): void => {
    const names = fileSystem.readdir(toFsPath(root));
    if (names.length > 0) throw unseedable(placement, root);
  };
  try {
    mode = Number(fileSystem.lstat(toFsPath(root)).mode) & 0o777;
    assertFree();
  } catch (error) {
    if (!isMissing(error)) throw errnoOf(error) === undefined ? error : unseedable(placement, root, error);
  }
  try {
    const built = await buildRoot(reader, tree, { ...options, mode, assertFree: () => undefined });
    built.close();
  } catch (error) {
    throw errnoOf(error) === undefined ? error : unseedable(placement, root, error);
  }
}

function assertSeedable(placement: PlacementDefinition, root: string): void {
  if (placement.mode === "shared") throw unseedable(placement, root);
}

const unseedable = (placement: PlacementDefinition, root: string, cause?: unknown): LooprigError =>
  new LooprigError(
    "workspace_seed.not_possible",
    `Cannot begin with a seed in "${root}": ${placement.mode === "shared" ? "others work in a shared root" : "it is not empty"}; use a session placement or an empty root`,
    { placement: placement.mode, root },
    { cause },
  );
