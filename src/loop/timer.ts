/** Time as the loop knows it: a wait that can be called off. Tests drive it by hand. */
import { onAbort } from "../core/index.js";

export interface Timer {
  /** Calls `callback` once after `ms`, unless the function returned is called before. */
  after(ms: number, callback: () => void): () => void;
}

export const systemTimer: Timer = {
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export function pause(timer: Timer, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const stop = timer.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      stop();
      resolve();
    });
  });
}
