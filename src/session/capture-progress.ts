/**
 * How far the capture of a turn or boundary is. Shown as live parts, a few a second at most (E1), and what a time limit goes
 * by where it bounds the time without progress (K5).
 */
import type { CaptureProgress } from "../workspace-store/index.js";

type Listener = (progress: CaptureProgress) => void;

/** A quarter of a second: enough to see that something moves. */
const everyMs = 250;

export class ProgressFeed {
  readonly #now: () => number;
  readonly #listeners = new Set<Listener>();
  #show: Listener = () => undefined;
  #shownAt = -Infinity;
  #walking = 0;

  /** `now`: milliseconds that never go back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What a reader of the root is given: it reports of all its walks, also of those that are nobody's turn. */
  readonly report = (progress: CaptureProgress): void => {
    if (this.#walking === 0) return;
    for (const listener of this.#listeners) listener(progress);
    const now = this.#now();
    if (now - this.#shownAt < everyMs) return;
    this.#shownAt = now;
    this.#show(progress);
  };

  /** Where progress is shown; not throttled listeners are those of `during`. */
  showOn(show: Listener): void {
    this.#show = show;
  }

  /** Runs a capture of the session: its progress is shown, and told to `listener` each time it is heard of. */
  async during<T>(capture: () => Promise<T>, listener: Listener = () => undefined): Promise<T> {
    this.#walking++;
    this.#listeners.add(listener);
    try {
      return await capture();
    } finally {
      this.#walking--;
      this.#listeners.delete(listener);
    }
  }
}
