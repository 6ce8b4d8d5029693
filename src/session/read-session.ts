/**
 * A session for reading: what was said, what was captured, what changed. No lease, no rig, nothing written but a private
 * cache of the walk; the session may be at work in another process meanwhile, and everything is folded anew at each call.
 */
import { WorkspaceUnavailableError, parseSessionId, signalOf } from "../core/index.js";
import type { Abortable, CanonicalRoot, SessionId } from "../core/index.js";
import { createSessionStore } from "../session-store/index.js";
import type { EventOf, Placement, SessionEvent, SessionStore } from "../session-store/index.js";
import type { Storage } from "../storage/index.js";
import { RootReader, RootView, captureProblem } from "../workspace/index.js";
import type { CaptureSettings, Change, Checkpoint, FileDiff, RefLike, WorkspaceView } from "../workspace/index.js";
import type { SessionWorld } from "./parts.js";
import { foldSession } from "./session-history.js";
import type { SessionHistory } from "./session-history.js";

/** A stored session as `readSession` shows it. It holds nothing: there is nothing to close. */
export interface SessionView {
  readonly id: SessionId;
  readonly placement: Placement;
  readonly startedAt: Date;
  /** What people call it: the command line, or the program that started it. */
  readonly command: string;
  /** The events from `from` (default 1) to the last one that is on record now. */
  events(options?: Abortable & { readonly from?: number | undefined }): AsyncIterable<SessionEvent>;
  /** Its loops with what was said in them, its turns, what it waits for. */
  history(options?: Abortable): Promise<SessionHistory>;
  /** Those that this session took, oldest first. */
  checkpoints(options?: Abortable): Promise<readonly Checkpoint[]>;
  /** What differs between `since` (default: the root's last checkpoint) and the live tree, and who did it. */
  changes(options?: Abortable & { readonly since?: RefLike | undefined }): Promise<readonly Change[]>;
  /** Default: this session's newest turn that changed something, from its start to its end. `from` alone compares with `now`. */
  diff(
    options?: Abortable & {
      readonly from?: RefLike | undefined;
      readonly to?: RefLike | undefined;
      readonly paths?: readonly string[] | undefined;
    },
  ): AsyncIterable<FileDiff>;
  /** Its root, for everything else that can be looked at. Throws `workspace.unavailable` where it has none (P2). */
  readonly workspace: WorkspaceView;
}

/**
 * A session of this storage for reading. Rejects with `session_id.invalid`, `session.unknown`; what it is asked later
 * rejects with `journal.damaged` after everything that can be read, `workspace_root.changed` where the live tree is not there.
 */
export async function readSession(
  storage: Storage,
  id: SessionId | (string & {}),
  { signal }: Abortable = {},
  { fileSystem }: SessionWorld = {},
): Promise<SessionView> {
  const sessions = createSessionStore(storage);
  const sessionId = parseSessionId(id);
  const started = await firstOf(sessions, sessionId, { signal });
  const { placement, root, manifest } = started;
  const settings = settingsOf(manifest);
  // Journals hold what sessions made canonical.
  const reading = { storage, root: root as CanonicalRoot, placement, settings, fileSystem };
  const view = root === undefined ? undefined : new OwnView(new RootReader(reading), sessionId);
  return new StoredSession(sessions, started, view);
}

class StoredSession implements SessionView {
  readonly id: SessionId;
  readonly placement: Placement;
  readonly startedAt: Date;
  readonly command: string;
  readonly #sessions: SessionStore;
  readonly #view: OwnView | undefined;

  constructor(sessions: SessionStore, started: EventOf<"session-started">, view: OwnView | undefined) {
    this.id = started.sessionId;
    this.placement = started.placement;
    this.startedAt = started.at;
    this.command = started.command;
    this.#sessions = sessions;
    this.#view = view;
  }

  get workspace(): OwnView {
    if (this.#view !== undefined) return this.#view;
    throw new WorkspaceUnavailableError(
      "workspace.unavailable",
      `Cannot look at the workspace of session ${this.id}: it has none`,
      {},
    );
  }

  events(options: Abortable & { readonly from?: number | undefined } = {}): AsyncIterable<SessionEvent> {
    return this.#sessions.read(this.id, options);
  }

  async history(options: Abortable = {}): Promise<SessionHistory> {
    const { state } = await this.#sessions.find(this.id, signalOf(options));
    const events: SessionEvent[] = [];
    for await (const event of this.events(signalOf(options))) events.push(event);
    return foldSession(events, state);
  }

  async checkpoints(options: Abortable = {}): Promise<readonly Checkpoint[]> {
    const { checkpoints } = await this.workspace.history(options);
    return checkpoints.filter(({ sessionId }) => sessionId === this.id);
  }

  async changes(options: Abortable & { readonly since?: RefLike | undefined } = {}): Promise<readonly Change[]> {
    return this.workspace.changes(options);
  }

  async *diff(options: Parameters<SessionView["diff"]>[0] = {}): AsyncIterable<FileDiff> {
    if (options.from !== undefined || options.to !== undefined) {
      yield* this.workspace.diff(options);
      return;
    }
    const { turns } = await this.workspace.history(signalOf(options));
    const last = turns.findLast(({ sessionId, from, to }) => sessionId === this.id && to !== undefined && from !== to);
    if (last?.from !== undefined) yield* this.workspace.diff({ ...options, from: last.from, to: last.to });
  }
}

/** The root as this session sees it: its own changes are told apart from those of others. */
class OwnView extends RootView {
  readonly #asker: SessionId;

  constructor(reader: RootReader, asker: SessionId) {
    super(reader, async () => undefined);
    this.#asker = asker;
  }

  protected override asker(): SessionId {
    return this.#asker;
  }
}

async function firstOf(sessions: SessionStore, id: SessionId, options: Abortable): Promise<EventOf<"session-started">> {
  for await (const event of sessions.read(id, options)) if (event.type === "session-started") return event;
  throw new Error("BUG: a journal without a beginning was read to its end");
}

/** What of the stored configuration says how the tree is walked; the rest is kept with the root. */
function settingsOf(manifest: unknown): CaptureSettings {
  const capture = (manifest as { readonly capture?: unknown } | undefined)?.capture ?? {};
  return captureProblem(capture) === undefined ? capture : {};
}
