/**
 * A session begins (E4): leases, a seed where there is one, `session-started`, the seed's checkpoint, the loops. Whatever
 * was taken is given back in reverse when a later step refuses.
 */
import path from "node:path";
import { LooprigError, isLooprigError, mintSessionId } from "../core/index.js";
import type { CanonicalRoot, SessionId } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { Journal, SessionEvent } from "../session-store/index.js";
import { OwnedWorkspace, RootReader, canonicalPath, takeRoot } from "../workspace/index.js";
import type { PlacementDefinition, Session, SessionDefinition, StartOptions } from "./contracts.js";
import { EventHub, publishing } from "./event-hub.js";
import { Gates } from "./gates.js";
import { startLoops } from "./loop-actors.js";
import { RunningSession } from "./session.js";
import type { SessionTree } from "./session.js";

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
  const hub = new EventHub();
  const { placement, fingerprint, manifest, storage } = definition;
  const started = { fingerprint, manifest };
  const command = commandOf(definition);
  let tree: SessionTree | undefined;
  let journal: Journal;
  if (placement === undefined) {
    const opened = await createSessionStore(storage).create(id, { command }, { signal });
    undo.push(() => opened.close());
    journal = publishing(opened, hub);
    await journal.append([{ type: "session-started", placement: "none", command, ...started }]);
  } else {
    const reader = readerOf(placement, id);
    const prepare = async (): Promise<void> => {
      if (placement.mode === "session") makeBase(reader, placement.baseDir);
      if (seed === undefined) return;
      assertSeedable(placement, reader.root);
      const stored = await reader.store.open(seed, { signal });
      await reader.store.materialize(stored, reader.root, { signal }).catch((error: unknown) => {
        throw isLooprigError(error, "snapshot.dest_not_empty") ? unseedable(placement, reader.root, error) : error;
      });
    };
    const session = { id, started, prepare, wrap: (each: Journal) => publishing(each, hub) };
    const taking = { command, capture: placement.capture, session, signal, adoptRoot: root === "adopt" };
    const owned = await takeRoot(reader, taking, undo);
    tree = { owned, workspace: new OwnedWorkspace(owned, async () => undefined) };
    journal = owned.journal;
    if (seed !== undefined) await owned.checkpoint({ trigger: "seed", signal });
  }
  return assemble(definition, { journal, hub, tree, before: [] }, undo);
}

/** The loops, and the session around everything. */
export async function assemble(
  definition: SessionDefinition,
  parts: {
    readonly journal: Journal;
    readonly hub: EventHub;
    readonly tree: SessionTree | undefined;
    readonly before: readonly SessionEvent[];
    readonly active?: string | undefined;
  },
  undo: Undo,
): Promise<RunningSession> {
  const { journal, before } = parts;
  const ended = new AbortController();
  undo.push(() => ended.abort());
  const primers = definition.loops.filter(({ name }) => definition.primers.includes(name));
  const { actors, started } = await startLoops(journal.sessionId, primers, parts.tree, ended.signal, before);
  if (started.length > 0) await journal.append(started);
  const store = createSessionStore(definition.storage);
  return new RunningSession({
    ...{ definition, journal, hub: parts.hub, tree: parts.tree, ended },
    loops: actors,
    active: parts.active ?? definition.activePrimer,
    gates: new Gates(journal.sessionId, (event) => journal.append([event]), before),
    turns: before.filter(({ type }) => type === "turn-started").length,
    read: (from) => store.read(journal.sessionId, { from }),
  });
}

export function readerOf(placement: PlacementDefinition, id: SessionId): RootReader {
  const root = placement.mode === "session" ? sessionRoot(placement.baseDir, id) : placement.root;
  return new RootReader({ storage: placement.store, root, placement: placement.mode, settings: placement.capture });
}

/** Ids are lowercase UUIDs, so the path is canonical where its base is, and no two sessions share one (R6). */
const sessionRoot = (baseDir: CanonicalRoot, id: SessionId): CanonicalRoot => path.join(baseDir, id) as CanonicalRoot;

/** Makes the base directory, one level of it, and sees that nobody put a link in its place since it was made canonical. */
function makeBase({ fileSystem }: RootReader, baseDir: CanonicalRoot): void {
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
