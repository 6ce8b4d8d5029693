/** Waits `ms`, or rejects with the signal's reason; leaves neither timer nor listener behind. */
export function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** A wait between `min` and `max`, at random, so that those who met once do not meet again in step. */
export const jitter = (min: number, max: number): number => min + Math.random() * (max - min);
