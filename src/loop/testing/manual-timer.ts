/** Time that stands still until a test moves it. */
import type { Timer } from "../timer.js";

export class ManualTimer implements Timer {
  readonly #waiting = new Set<{ readonly at: number; readonly callback: () => void }>();
  #now = 0;
  #watchers: (() => void)[] = [];

  after(ms: number, callback: () => void): () => void {
    const entry = { at: this.#now + ms, callback };
    this.#waiting.add(entry);
    for (const watcher of this.#watchers.splice(0)) watcher();
    return () => {
      this.#waiting.delete(entry);
    };
  }

  /** How long the waits still have, shortest first. */
  get pending(): readonly number[] {
    return [...this.#waiting].map(({ at }) => at - this.#now).sort((a, b) => a - b);
  }

  /** Resolves when a wait of exactly `ms` is pending. */
  async waitsFor(ms: number): Promise<void> {
    while (!this.pending.includes(ms)) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const entry of [...this.#waiting].sort((a, b) => a.at - b.at)) {
      if (entry.at <= this.#now && this.#waiting.delete(entry)) entry.callback();
    }
  }
}
