/**
 * Where a session's events go once they are durable (E1). A reader starts anywhere in the journal and goes on with what
 * comes, without gap or repeat: what it reads from the journal and what it is told meanwhile overlap, and `seq` says where.
 * A slow reader never holds up a turn, and no memory either: one that falls behind goes back to the journal.
 */
import type { Abortable } from "../core/index.js";
import { onAbort } from "../core/index.js";
import type { SessionEvent } from "../session-store/index.js";

type Listener = (events: readonly SessionEvent[]) => void;

/** Events kept for a reader that does not take them; beyond, it reads them from the journal. */
const queuedEventsMax = 1_000;

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
    const told = new Told();
    const stopListening = this.listen((events) => told.push(events));
    const wake = (): void => told.wake();
    this.#enders.add(wake);
    const forget = signal === undefined || signal.aborted ? () => undefined : onAbort(signal, wake);
    const aborted = (): boolean => signal?.aborted === true;
    let next = from;
    try {
      while (!aborted()) {
        // Whatever was told until here is in the journal too.
        told.clear();
        const ended = this.#ended;
        for await (const event of stored(next)) {
          if (aborted()) return;
          yield event;
          next = event.seq + 1;
        }
        if (ended) return;
        while (!aborted() && !told.overflowed) {
          const event = told.take();
          if (event === undefined) {
            // What came with the end, or was missed before it, is looked up once more.
            if (this.#ended) break;
            await told.more();
          } else if (event.seq >= next) {
            yield event;
            next = event.seq + 1;
          }
        }
      }
    } finally {
      stopListening();
      this.#enders.delete(wake);
      forget();
    }
  }
}

/** What one reader was told and has not taken. */
class Told {
  overflowed = false;
  #events: SessionEvent[] = [];
  #wake = (): void => undefined;

  push(events: readonly SessionEvent[]): void {
    if (this.#events.length + events.length > queuedEventsMax) {
      this.overflowed = true;
      this.#events = [];
    } else if (!this.overflowed) this.#events.push(...events);
    this.#wake();
  }

  take(): SessionEvent | undefined {
    return this.#events.shift();
  }

  clear(): void {
    this.overflowed = false;
    this.#events = [];
  }

  wake(): void {
    this.#wake();
  }

  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
