/**
 * The tree around a turn: captured before its first model call and after its last step, so that whatever its tools changed
 * can be shown and taken back (K4, S3). One window covers the whole turn.
 */
import { isLooprigError, mintCallId } from "../core/index.js";
import type { SnapshotRef, TurnId } from "../core/index.js";
import type { NewEvent } from "../session-store/index.js";
import type { OwnedRoot } from "../workspace/index.js";

export class TurnWindow {
  readonly #owned: OwnedRoot;
  readonly #turnId: TurnId;
  readonly #openOrder: number;
  #from: SnapshotRef | undefined;

  constructor(owned: OwnedRoot, turnId: TurnId, openOrder: number, from?: SnapshotRef) {
    this.#owned = owned;
    this.#turnId = turnId;
    this.#openOrder = openOrder;
    this.#from = from;
  }

  /** The baseline. When it fails the turn goes on and is visibly unprotected (K5): `take` journals why. */
  async open(signal: AbortSignal): Promise<void> {
    using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" }, { signal });
    try {
      const { result, event } = await this.#owned.takeAlways({ trigger: "baseline", turnId: this.#turnId, signal });
      await this.#owned.append(event);
      this.#from = result.ref;
    } catch (error) {
      if (signal.aborted || !isLooprigError(error)) throw error;
    }
  }

  /** The events that close it, for the append that ends the turn; none when nothing changed. */
  async close(
    closeOrder: () => Promise<number>,
    { settled = false }: { readonly settled?: boolean } = {},
  ): Promise<{
    readonly events: readonly NewEvent[];
    readonly changed: number;
    readonly order: number;
  }> {
    const from = this.#from;
    const of = { turnId: this.#turnId };
    if (from === undefined) return { events: [], changed: 0, order: await closeOrder() };
    using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" });
    try {
      const { result, event } = await this.#owned.take({
        ...{ trigger: "window", turnId: this.#turnId, countedFrom: from, unlessEqual: from },
      });
      const order = await closeOrder();
      if (event === undefined) return { events: [], changed: 0, order };
      const window: NewEvent<"workspace-changed"> = {
        ...{ type: "workspace-changed", kind: "window", callId: mintCallId(), from, to: result.ref, opened: true },
        ...{ openOrder: this.#openOrder, closeOrder: order, ...of },
        ...(settled ? { settled } : {}),
      };
      return { events: [event, window], changed: event.changed ?? 0, order };
    } catch (error) {
      if (!isLooprigError(error)) throw error;
      return { events: [], changed: 0, order: await closeOrder() };
    }
  }
}
