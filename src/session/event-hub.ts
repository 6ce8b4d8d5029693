/**
 * Where a session's events go once they are durable (E1). A reader starts anywhere in the journal and goes on with what
 * comes, without gap or repeat: what it reads from the journal and what it is told meanwhile overlap, and `seq` says where.
 * A slow reader holds its own queue of events, never a turn.
 */
import type { Abortable } from "../core/index.js";
import { onAbort } from "../core/index.js";
import type { Journal, NewEvent, SessionEvent } from "../session-store/index.js";

type Listener = (events: readonly SessionEvent[]) => void;

export class EventHub {
  readonly #listeners = new Set<Listener>();
  readonly #enders = new Set<() => void>();
  #ended = false;

  publish(events: readonly SessionEvent[]): void {
    for (const listener of this.#listeners) listener(events);
  }

  /** Nothing more will come: readers end when they have read what there is. */
  end(): void {
    this.#ended = true;
    for (const end of this.#enders) end();
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** `stored` reads the journal from a sequence on. Ends with the session, or when the signal aborts. */
  async *read(
    from: number,
    stored: (from: number) => AsyncIterable<SessionEvent>,
    { signal }: Abortable,
  ): AsyncIterable<SessionEvent> {
    const queue: SessionEvent[] = [];
    let wake = (): void => undefined;
    const stopListening = this.listen((events) => {
      queue.push(...events);
      wake();
    });
    const end = (): void => wake();
    this.#enders.add(end);
    const forget = signal === undefined ? () => undefined : onAbort(signal, () => wake());
    let next = from;
    try {
      for await (const event of stored(from)) {
        if (signal?.aborted === true) return;
        yield event;
        next = event.seq + 1;
      }
      for (;;) {
        const event = queue.shift();
        if (signal?.aborted === true) return;
        if (event === undefined) {
          if (this.#ended) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if (event.seq >= next) {
          yield event;
          next = event.seq + 1;
        }
      }
    } finally {
      stopListening();
      this.#enders.delete(end);
      forget();
    }
  }
}

/** A journal whose events are heard by the hub as soon as they are durable, whoever appended them. */
export function publishing(journal: Journal, hub: EventHub): Journal {
  return {
    sessionId: journal.sessionId,
    lease: journal.lease,
    get head() {
      return journal.head;
    },
    append: async (events: readonly NewEvent[], options?: Abortable) => {
      const appended = await journal.append(events, options);
      hub.publish(appended);
      return appended;
    },
    close: () => journal.close(),
    [Symbol.asyncDispose]: () => journal.close(),
  };
}
