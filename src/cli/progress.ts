/** One line on the terminal while a capture is long: from one second on, over itself, gone when the capture is done. */
import type { CaptureProgress } from "../workspace-store/index.js";
import { bytes, count } from "./amounts.js";
import type { Output } from "./output.js";

const quietMs = 1_000;
const clearLine = "\r\u001b[K";

export class Progress {
  readonly #output: Output;
  readonly #title: string;
  readonly #startedAt: number;
  readonly #now: () => number;
  #shown = false;
  #over: boolean;

  /** `now` counts milliseconds and never runs backwards. */
  constructor(output: Output, title: string, quiet: boolean, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#over = quiet;
    this.#title = title;
    this.#now = now;
    this.#startedAt = now();
  }

  readonly report = (progress: Pick<CaptureProgress, "filesSeen" | "bytesRead">): void => {
    if (this.#over || !this.#output.terminal || this.#now() - this.#startedAt < quietMs) return;
    this.#shown = true;
    const read = progress.bytesRead > 0 ? `, ${bytes(progress.bytesRead)} read` : "";
    // Progress that cannot be shown is not worth failing for, nor waiting for.
    void this.#output
      .write(`${clearLine}${this.#title}: ${count(progress.filesSeen, "file")}${read}`)
      .catch(() => undefined);
  };

  /** Clears the line; what is reported later is not shown. Idempotent. */
  async done(): Promise<void> {
    this.#over = true;
    if (!this.#shown) return;
    this.#shown = false;
    await this.#output.write(clearLine);
  }
}
