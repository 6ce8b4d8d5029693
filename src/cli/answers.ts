import { onAbort } from "../core/index.js";
import type { AnswerSource } from "./environment.js";

/** Lines typed on a terminal, or all of what is piped in. `open` is called when the first of it is wanted. */
export function answersFrom(terminal: boolean, open: () => NodeJS.ReadStream): AnswerSource {
  return {
    terminal,
    async readLine(signal) {
      signal.throwIfAborted();
      const { createInterface } = await import("node:readline");
      // The terminal edits the line and sends its signals; readline only finds where it ends.
      const lines = createInterface({ input: open(), terminal: false });
      try {
        return await new Promise<string | undefined>((resolve, reject) => {
          const onAbort = (): void => reject(signal.reason as Error);
          signal.addEventListener("abort", onAbort, { once: true });
          const settle = (line: string | undefined): void => {
            signal.removeEventListener("abort", onAbort);
            resolve(line);
          };
          lines.once("line", settle);
          lines.once("close", () => settle(undefined));
        });
      } finally {
        lines.close();
      }
    },
    async readAll(bytesMax, signal) {
      signal.throwIfAborted();
      const stream = open();
      const forget = onAbort(signal, () => stream.destroy(signal.reason as Error));
      const chunks: Buffer[] = [];
      let length = 0;
      try {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          length += chunk.length;
          if (length > bytesMax) return undefined;
          chunks.push(chunk);
        }
        return Buffer.concat(chunks);
      } finally {
        forget();
      }
    },
  };
}
