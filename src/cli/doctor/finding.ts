/** What `looprig doctor` tells: one line each. Pure. */
import { isLooprigError } from "../../core/index.js";

export interface Finding {
  /** A "problem" needs a person; a "note" is worth knowing, and is right or rights itself. */
  readonly level: "problem" | "note";
  /** Which look found it: a stable word for scripts. */
  readonly check: string;
  readonly text: string;
  /** The command that mends it. */
  readonly mend?: string | undefined;
}

export const problem = (check: string, text: string, mend?: string): Finding => ({
  ...{ level: "problem", check, text },
  ...(mend === undefined ? {} : { mend }),
});
export const note = (check: string, text: string, mend?: string): Finding => ({
  ...problem(check, text, mend),
  level: "note",
});

/** What a look finds; where it fails, that it fails is what was found. An abort ends everything. */
export async function looking(
  check: string,
  signal: AbortSignal,
  look: () => Promise<readonly Finding[]> | readonly Finding[],
): Promise<readonly Finding[]> {
  try {
    return await look();
  } catch (error) {
    signal.throwIfAborted();
    if (!isLooprigError(error)) throw error;
    return [problem(check, error.message, error.hint)];
  }
}
