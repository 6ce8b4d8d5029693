/**
 * The tree around a turn: captured before its first model call, so that whatever its tools change can be shown and taken
 * back (K4, S3); what they change is on record by its end.
 */
import { isLooprigError } from "../core/index.js";
import type { LoopId, TurnId } from "../core/index.js";
import type { NewEvent, SessionEvent } from "../session-store/index.js";
import type { OwnedRoot } from "../workspace/index.js";

export class TurnWindow {
  readonly #owned: OwnedRoot;
  readonly #of: { readonly turnId: TurnId; readonly loopId: LoopId };

  constructor(owned: OwnedRoot, of: { readonly turnId: TurnId; readonly loopId: LoopId }) {
    this.#owned = owned;
    this.#of = of;
  }

  /** The baseline. When it fails the turn goes on and is visibly unprotected (K5): `take` journals why. */
  async open(signal: AbortSignal): Promise<void> {
    const { recorder, coordinator } = this.#owned;
    recorder.begin(this.#of, undefined);
    using _permit = await coordinator.acquire({ operation: "checkpoint" }, { signal });
    try {
      const { turnId } = this.#of;
      const { result, event } = await this.#owned.takeAlways({ trigger: "baseline", turnId, signal });
      await this.#owned.append(event);
      recorder.begin(this.#of, result.tree);
    } catch (error) {
      if (signal.aborted || !isLooprigError(error)) throw error;
    }
  }

  /** Instead of `open`, for a turn of before a restart. */
  goOn(before: readonly SessionEvent[]): Promise<void> {
    return this.#owned.recorder.resume(this.#of, before);
  }

  /** What the append that ends the turn takes along. */
  async close(
    drawOrder: () => Promise<number>,
  ): Promise<{ readonly events: readonly NewEvent[]; readonly changed: number; readonly order: number }> {
    const closed = await this.#owned.recorder.end();
    return { ...closed, order: await drawOrder() };
  }
}
