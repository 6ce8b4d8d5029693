/**
 * Outputs that are longer than a model is shown, kept whole for the `Read` tool of the same loop. In memory, as what they are
 * good for is the work at hand: a session that goes on in another process calls the tool again. Bounded; the oldest go first.
 */
import type { CallId } from "../core/index.js";
import type { KeptOutputs } from "../tool/index.js";
import { boundedText } from "./tool-output.js";

/** Of one output; what is in the middle of a longer one is not kept. */
export const keptCharsMax = 8 * 1024 * 1024;
/** Of all outputs of a loop. */
const shelfCharsMax = 4 * keptCharsMax;

export class OutputShelf implements KeptOutputs {
  readonly #texts = new Map<string, string>();
  #chars = 0;

  /** The name that `read` finds it by. Of the call, and so of no other output, also after a restart. */
  keep(callId: CallId, text: string): string {
    const name = `output:${callId.slice(0, 8)}`;
    const kept = boundedText(text, keptCharsMax);
    this.#drop(name);
    this.#texts.set(name, kept);
    this.#chars += kept.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#chars <= shelfCharsMax) break;
      this.#drop(oldest);
    }
    return name;
  }

  read(name: string): string | undefined {
    return this.#texts.get(name);
  }

  #drop(name: string): void {
    this.#chars -= this.#texts.get(name)?.length ?? 0;
    this.#texts.delete(name);
  }
}
