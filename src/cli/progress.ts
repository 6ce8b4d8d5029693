/** One line on the terminal while a capture is long: from one second on, over itself, gone when the capture is done. */
import type { CaptureProgress } from "../workspace-store/index.js";
import { bytes, count, number } from "./amounts.js";
import type { Output } from "./output.js";

/** What is told of a capture; the estimate is there once the tree was walked, before the first byte is read. */
type SeenProgress = Pick<CaptureProgress, "filesSeen" | "bytesRead"> & {
  readonly estimate?: { readonly files: number; readonly bytes: number } | undefined;
};

/** What takes long enough to read that people should know why. */
const largeFiles = 100_000;
const largeBytes = 1024 ** 3;
const quietMs = 1_000;
const clearLine = "\r\u001b[K";

export class Progress {
  readonly #output: Output;
  readonly #title: string;
  readonly #startedAt: number;
  readonly #now: () => number;
  readonly #first: boolean;
  #shown = false;
  #announced = false;
  #over: boolean;

  /** `now` counts milliseconds and never runs backwards. */
  constructor(
    output: Output,
    title: string,
    quiet: boolean,
    now: () => number = () => performance.now(),
    { first = false }: { readonly first?: boolean } = {},
  ) {
    this.#output = output;
    this.#over = quiet;
    this.#title = title;
    this.#first = first;
    this.#now = now;
    this.#startedAt = now();
  }

  readonly report = (progress: SeenProgress): void => {
    this.#announce(progress.estimate);
    this.show(captureText(progress));
  };

  /** A large tree that is captured for the first time is told of before it is read, while it can still be made smaller (U11). */
  #announce(estimate: SeenProgress["estimate"]): void {
    if (!this.#first || this.#announced || this.#over || !this.#output.terminal || estimate === undefined) return;
    this.#announced = true;
    if (estimate.files < largeFiles && estimate.bytes < largeBytes) return;
    const size = `${count(estimate.files, "file")}, ${bytes(estimate.bytes)}`;
    const clear = this.#shown ? clearLine : "";
    this.#shown = false;
    const text = `${clear}${this.#title}: ${size}; the first capture reads all of it. --exclude GLOB leaves out what need not be kept.\n`;
    void this.#output.write(text).catch(() => undefined);
  }

  readonly show = (text: string): void => {
    if (this.#over || !this.#output.terminal || this.#now() - this.#startedAt < quietMs) return;
    this.#shown = true;
    // Progress that cannot be shown is not worth failing for, nor waiting for.
    void this.#output.write(`${clearLine}${this.#title}: ${text}`).catch(() => undefined);
  };

  /** Clears the line; what is reported later is not shown. Idempotent. */
  async done(): Promise<void> {
    this.#over = true;
    if (!this.#shown) return;
    this.#shown = false;
    await this.#output.write(clearLine);
  }
}

/** `12 480 files, 3.0 MiB read`; with an estimate `12 480 of 20 000 files, 3.0 MiB of 127 MiB read`. */
function captureText({ filesSeen, bytesRead, estimate }: SeenProgress): string {
  if (estimate === undefined) {
    return `${count(filesSeen, "file")}${bytesRead > 0 ? `, ${bytes(bytesRead)} read` : ""}`;
  }
  const read = bytesRead > 0 ? `, ${bytes(bytesRead)} of ${bytes(estimate.bytes)} read` : "";
  const seen = filesSeen < estimate.files ? `${number(filesSeen)} of ` : "";
  return `${seen}${count(estimate.files, "file")}${read}`;
}
