/** What anything that waits accepts. */
export interface Abortable {
  /** Ends the wait early; what that leaves behind is said where the option is used. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Waits for `promise`, or rejects with the signal's reason when it aborts first. The listener is removed either way.
 * The promise itself goes on; `onLate` receives a value that arrives after the abort, so that a grant can be given back.
 */
export async function raceAbort<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (value: T) => void,
): Promise<T> {
  if (signal === undefined) return promise;
  let listener: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    listener = () => {
      reject(signal.reason as Error);
      promise.then(onLate, () => undefined);
    };
    if (signal.aborted) listener();
    else signal.addEventListener("abort", listener, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (listener) signal.removeEventListener("abort", listener);
  }
}

/** Lets timers, signals and I/O run. Long synchronous work calls it between slices so that nobody waits over 50 ms. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Slices synchronous work: `await pace()` yields when `sliceMs` (default 12) have passed since the last yield, and throws on abort. */
export function pacer(signal: AbortSignal | undefined, sliceMs = 12): () => Promise<void> | undefined {
  let last = performance.now();
  return () => {
    if (performance.now() - last < sliceMs) return undefined;
    return yieldToEventLoop().then(() => {
      last = performance.now();
      signal?.throwIfAborted();
    });
  };
}
