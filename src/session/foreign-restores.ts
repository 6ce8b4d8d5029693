/**
 * Undos and restores that other sessions did to this session's root: while it was closed, or beside it in a shared root.
 * Its loops have to hear of them (U8), once, and say the same after a restart; so each is put on record here as
 * `restore-noticed`, which the conversation is folded from. What this session did itself is in its own `workspace-restored`.
 */
import type { SessionId } from "../core/index.js";
import { isLooprigError } from "../core/index.js";
import type { EventOf, NewEvent, SessionEvent } from "../session-store/index.js";
import type { RootReader } from "../workspace/index.js";

export interface Noticed {
  readonly records: readonly EventOf<"workspace-restored">[];
  /** To be appended before the next turn, or the next step of the one that runs, begins. */
  readonly events: readonly NewEvent[];
}

/** Paths kept of one restore: as many as a model is told. */
const pathsMax = 50;
/** Restores put on record at once; of more, the newest are told, since what they left is what is there. */
const restoresMax = 100;

export class ForeignRestores {
  readonly #reader: RootReader;
  readonly #sessionId: SessionId;
  /** Where each other session's journal was read to. */
  readonly #readTo = new Map<SessionId, number>();
  readonly #known = new Set<string>();
  /** The root's clock at this session's first turn: nobody here saw anything before. */
  #since: number | undefined;

  constructor(reader: RootReader, sessionId: SessionId) {
    this.#reader = reader;
    this.#sessionId = sessionId;
  }

  heard(event: SessionEvent): void {
    if (event.type === "turn-started") this.#since ??= event.order;
    else if (event.type === "restore-noticed") this.#known.add(event.planId);
  }

  /** Those that are not on record yet, oldest first. */
  async look(): Promise<Noticed> {
    if (this.#since === undefined) return { records: [], events: [] };
    const found: EventOf<"workspace-restored">[] = [];
    for (const { id, state } of await this.#reader.sessions.list({ root: this.#reader.root })) {
      if (id !== this.#sessionId && state !== "deleting") found.push(...(await this.#restoresOf(id)));
    }
    const records = found
      .filter(({ planId, order }) => !this.#known.has(planId) && order > (this.#since ?? Infinity))
      .sort((a, b) => a.order - b.order)
      .slice(-restoresMax);
    return { records, events: records.map(noticed) };
  }

  async #restoresOf(id: SessionId): Promise<readonly EventOf<"workspace-restored">[]> {
    const found: EventOf<"workspace-restored">[] = [];
    let next = this.#readTo.get(id) ?? 1;
    try {
      for await (const event of this.#reader.sessions.read(id, { from: next })) {
        if (event.type === "workspace-restored") found.push(event);
        next = event.seq + 1;
      }
    } catch (error) {
      // What cannot be read of another session, or is gone, tells nothing; what stands before it does.
      if (!isLooprigError(error, "journal.damaged", "journal.newer", "session.unknown")) throw error;
    }
    this.#readTo.set(id, next);
    return found;
  }
}

function noticed({
  sessionId,
  planId,
  action,
  entry,
  order,
  written,
  deleted,
}: EventOf<"workspace-restored">): NewEvent {
  const kept = { written: written.slice(0, pathsMax), deleted: deleted.slice(0, pathsMax) };
  return {
    ...{ type: "restore-noticed", by: sessionId, planId, action, entry, order, ...kept },
    more: written.length + deleted.length - kept.written.length - kept.deleted.length,
  };
}
