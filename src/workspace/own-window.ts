/**
 * The window of the program that opened the workspace: between a checkpoint it took and the moment it asks to undo or
 * restore, the program itself could write (U1, U2), and nothing else of ours ran. So what differs by then is its work as
 * surely as a command's window is the command's, and becomes a turn that can be undone.
 *
 * The window is only ever as wide as that: anything else that happens in the session (a command, an undo, a restore) ends
 * it unused, since what was changed around those may be anybody's.
 */
import { mintCallId, mintTurnId } from "../core/index.js";
import type { Abortable } from "../core/index.js";
import type { CaptureResult } from "../workspace-store/index.js";
import type { Checkpoint } from "./contracts.js";
import type { OwnedRoot } from "./owned-root.js";

export class OwnWindow {
  readonly #owned: OwnedRoot;
  #opened: Checkpoint | undefined;

  constructor(owned: OwnedRoot) {
    this.#owned = owned;
  }

  begin(checkpoint: Checkpoint): void {
    this.#opened = checkpoint;
  }

  forget(): void {
    this.#opened = undefined;
  }

  /**
   * Journals the turn, if anything changed since the checkpoint. The window is closed in any case. Returns the tree it ended in,
   * so that nobody looks at it again.
   */
  async close(options: Abortable = {}): Promise<CaptureResult | undefined> {
    const opened = this.#opened;
    if (opened === undefined) return undefined;
    using _permit = await this.#owned.coordinator.acquire({ operation: "checkpoint" }, options);
    const turnId = mintTurnId();
    const { record, clock } = this.#owned.reader;
    const { result, event } = await this.#owned.take({
      trigger: "window",
      turnId,
      countedFrom: opened.ref,
      unlessEqual: opened.ref,
      signal: options.signal,
    });
    this.forget();
    if (event === undefined) return result;
    const { turn, order } = await record.draw({ turn: true }, clock());
    const changed = event.changed ?? 0;
    await this.#owned.append(
      { type: "turn-started", turnId, number: turn, order: opened.order, input: "this program", kind: "command" },
      { ...event, turnId },
      {
        ...{ type: "workspace-changed", kind: "window", turnId, callId: mintCallId() },
        ...{ from: opened.ref, to: result.ref, opened: true, openOrder: opened.order, closeOrder: order },
      },
      { type: "turn-done", turnId, order, changed },
    );
    return result;
  }
}
