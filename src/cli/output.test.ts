import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { Output, OutputFailed } from "./output.js";
import type { OutputStream } from "./output.js";

class Failing implements OutputStream {
  writes = 0;
  readonly #code: string;
  constructor(code: string) {
    this.#code = code;
  }
  write(_chunk: string | Uint8Array, done: (error?: Error | null) => void): boolean {
    this.writes++;
    done(Object.assign(new Error(this.#code), { code: this.#code }));
    return false;
  }
  on(): this {
    return this;
  }
}

describe("an output stream", () => {
  test("a reader that went away is no failure, and what follows is dropped", async () => {
    const stream = new Failing("EPIPE");
    const output = new Output(false, () => stream);
    await output.write("a");
    expect(output.closed).toBe(true);
    await output.write("b");
    expect(stream.writes).toBe(1);
  });

  test("any other failure rejects: data that is not there is no success", async () => {
    await expect(new Output(false, () => new Failing("ENOSPC")).write("a")).rejects.toThrow(OutputFailed);
    await expect(new Output(false, () => new Failing("EIO")).write("a")).rejects.toThrow("EIO");
  });

  test("a terminal that was closed has gone away too", async () => {
    const output = new Output(true, () => new Failing("EIO"));
    await output.write("a");
    expect(output.closed).toBe(true);
  });

  test("is not opened before something is written", async () => {
    let opened = 0;
    const output = new Output(false, () => {
      opened++;
      return new PassThrough();
    });
    await output.write("");
    expect(opened).toBe(0);
    await output.write("x");
    expect(opened).toBe(1);
  });

  test("a write resolves only when the stream has taken it", async () => {
    const pending: (() => void)[] = [];
    const output = new Output(false, () => ({
      write: (_chunk, done) => {
        pending.push(done);
        return false;
      },
      on: () => undefined,
    }));
    let taken = false;
    const written = output.write("x").then(() => (taken = true));
    await new Promise(setImmediate);
    expect(taken).toBe(false);
    pending[0]?.();
    await written;
    expect(taken).toBe(true);
  });
});
