/**
 * The journal of a session as everything in it knows it. Two things hold of every append, whoever made it:
 *
 * 1. The hub hears the events as soon as they are durable, never before.
 * 2. The manual checkpoint that clears a fault and the word that it did are one append (K1), so no crash comes between.
 */
import type { Abortable } from "../core/index.js";
import type { Journal, NewEvent, SessionEvent } from "../session-store/index.js";
import type { EventHub } from "./event-hub.js";

/** Whether a required checkpoint failed and none was taken by hand since (K1): a fold over the session's events. */
export class Fault {
  #code: string | undefined;

  /** Why the checkpoint failed; undefined when nothing is the matter. */
  get code(): string | undefined {
    return this.#code;
  }

  heard(event: SessionEvent): void {
    if (event.type === "session-faulted") this.#code = event.code;
    else if (event.type === "session-recovered") this.#code = undefined;
  }
}

export function sessionJournal(journal: Journal, hub: EventHub, fault: Fault): Journal {
  hub.listen((events) => {
    for (const event of events) fault.heard(event);
  });
  return {
    sessionId: journal.sessionId,
    lease: journal.lease,
    get head() {
      return journal.head;
    },
    append: async (events: readonly NewEvent[], options?: Abortable) => {
      const recovers = fault.code !== undefined && events.some(isManualCheckpoint);
      const appended = await journal.append(recovers ? [...events, { type: "session-recovered" }] : events, options);
      hub.publish(appended);
      return appended;
    },
    close: () => journal.close(),
    [Symbol.asyncDispose]: () => journal.close(),
  };
}

const isManualCheckpoint = (event: NewEvent): boolean =>
  event.type === "workspace-checkpointed" && event.trigger === "manual";
