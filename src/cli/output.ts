/**
 * One of our two output streams. A reader that went away (`looprig log | head`) is no failure: what is written after it is
 * dropped and `closed` says so, so that work which changes files goes on to its end and work which only prints can stop.
 * Any other failure of a write (a full disk behind a redirection) rejects: data that is not there must not look like success.
 */
import { errnoOf } from "../core/index.js";

/** What we need of a stream. */
export interface OutputStream {
  write(chunk: string | Uint8Array, done: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export class Output {
  readonly terminal: boolean;
  #open: () => OutputStream;
  #stream: OutputStream | undefined;
  #closed = false;

  /** `open` is called at the first write: a stream that is never written to is never touched. */
  constructor(terminal: boolean, open: () => OutputStream) {
    this.terminal = terminal;
    this.#open = open;
  }

  /** Whether nobody reads any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when the stream has taken the bytes: awaiting each write is the backpressure. */
  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#closed || chunk.length === 0) return;
    const stream = this.#use();
    await new Promise<void>((resolve, reject) => {
      stream.write(chunk, (error) => {
        if (error === undefined || error === null) resolve();
        else if (isGone(error, this.terminal)) {
          this.#closed = true;
          resolve();
        } else reject(new OutputFailed(error));
      });
    });
  }

  #use(): OutputStream {
    if (this.#stream === undefined) {
      this.#stream = this.#open();
      // The callback of the write tells us; without a listener the same error would end the process.
      this.#stream.on("error", () => undefined);
    }
    return this.#stream;
  }
}

/** What was to be said could not be. Whatever the command had done by then is done. */
export class OutputFailed extends Error {
  constructor(cause: Error) {
    // Node's own message ends in the name of the system call, which says nothing to people.
    const why = cause.message.replace(/^([A-Z][A-Z0-9]+): (.*), [a-z]+$/, "$2 ($1)");
    super(`Cannot write the output: ${why}; looprig status and looprig log show what was done`, { cause });
    this.name = "OutputFailed";
  }
}

function isGone(error: Error, terminal: boolean): boolean {
  const errno = errnoOf(error);
  // A terminal that was closed answers EIO, which of a file would be a damaged disk.
  return errno === "EPIPE" || errno === "ECONNRESET" || (errno === "EIO" && terminal);
}
