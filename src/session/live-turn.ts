/** A turn as its submitter sees it: parts as they come, and an end that never rejects. */
import type { TurnId } from "../core/index.js";
import type { SessionEvent } from "../session-store/index.js";
import type { SessionDelta, Turn, TurnResult } from "./contracts.js";

type Part = SessionEvent | SessionDelta;

/** Live parts a reader may be behind; older ones are dropped, events never are (E1). */
const livePartsMax = 1_000;

export class LiveTurn implements Turn {
  readonly id: TurnId;
  readonly done: Promise<TurnResult>;
  #number = 0;
  readonly #readers = new Set<Reader>();
  /** Kept until somebody reads, so that a reader that comes a moment later misses no event. */
  readonly #events: SessionEvent[] = [];
  #finish!: (result: TurnResult) => void;
  #ended = false;

  constructor(id: TurnId) {
    this.id = id;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  get number(): number {
    return this.#number;
  }

  begin(number: number): void {
    this.#number = number;
  }

  /** Whether anything of it is on record. */
  get hasEvents(): boolean {
    return this.#events.length > 0;
  }

  /**
   * An event of the session. Those of the turn are kept and shown, and so are those they caused. An answer to a question is
   * the session's, not the turn's; those who watch the turn want to see it all the same.
   */
  heard(event: SessionEvent): void {
    const { turnId, cause, type } = event;
    const ours =
      turnId === this.id ||
      (turnId === undefined && type === "gate-resolved") ||
      (cause !== undefined && this.#events.some(({ id }) => id === cause));
    if (!ours) return;
    this.#events.push(event);
    for (const reader of this.#readers) reader.push(event);
  }

  live(part: SessionDelta): void {
    for (const reader of this.#readers) reader.push(part);
  }

  end(result: TurnResult): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#finish(result);
    for (const reader of this.#readers) reader.end();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Part> {
    const reader = new Reader(this.#events);
    this.#readers.add(reader);
    if (this.#ended) reader.end();
    try {
      yield* reader.parts();
    } finally {
      this.#readers.delete(reader);
    }
  }
}

class Reader {
  readonly #queue: Part[];
  #live = 0;
  #ended = false;
  #wake = (): void => undefined;

  constructor(before: readonly Part[]) {
    this.#queue = [...before];
  }

  push(part: Part): void {
    if (isLive(part) && ++this.#live > livePartsMax) {
      this.#queue.splice(this.#queue.findIndex(isLive), 1);
      this.#live--;
    }
    this.#queue.push(part);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *parts(): AsyncIterable<Part> {
    for (;;) {
      const part = this.#queue.shift();
      if (part !== undefined) {
        if (isLive(part)) this.#live--;
        yield part;
      } else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

const isLive = (part: Part): part is SessionDelta => !("seq" in part);
