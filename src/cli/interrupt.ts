/**
 * Signals while a command of ours works. The first one aborts the work: it ends at its next safe point and leaves nothing
 * half done. The second one stops the process at once; what that leaves, the next command settles.
 */
import os from "node:os";

export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: NodeJS.Signals;
  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}`);
    this.signal = signal;
  }
  /** As shells report it: 130 for Ctrl-C. */
  get exitCode(): number {
    return 128 + os.constants.signals[this.signal];
  }
}

/** What listens to signals; `process` is one. */
export interface SignalSource {
  on(event: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(event: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface Interrupts {
  readonly signal: AbortSignal;
  /** Stops listening: from here on signals do what they do by default, or what others make of them. Idempotent. */
  disarm(): void;
}

const caught: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

export function armInterrupts(source: SignalSource, stop: (exitCode: number) => void): Interrupts {
  const controller = new AbortController();
  const listener = (name: NodeJS.Signals): void => {
    const reason = new Interrupted(name);
    if (controller.signal.aborted) stop(reason.exitCode);
    else controller.abort(reason);
  };
  for (const name of caught) source.on(name, listener);
  return {
    signal: controller.signal,
    disarm: () => {
      for (const name of caught) source.off(name, listener);
    },
  };
}
