import type { AnswerSource } from "./environment.js";

/** Lines typed on a terminal. `open` is called at the first question. */
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
  };
}
