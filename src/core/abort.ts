/** What anything that waits accepts. */
export interface Abortable {
  /** Ends the wait early; what that leaves behind is said where the option is used. */
  readonly signal?: AbortSignal | undefined;
}

interface Watch {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const watches = new WeakMap<AbortSignal, Watch>();

/**
 * Calls `callback` once when the signal aborts, which it has not yet; returns what ends the interest. However many wait on
 * one signal, it bears a single listener of ours: Node warns of more than ten, and takes one off by searching for it.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    const callbacks = new Set<() => void>();
    const listener = (): void => {
      watches.delete(signal);
      for (const each of callbacks) each();
    };
    watch = { callbacks, listener };
    watches.set(signal, watch);
    signal.addEventListener("abort", listener, { once: true });
  }
  const { callbacks, listener } = watch;
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || signal.aborted) return;
    watches.delete(signal);
    signal.removeEventListener("abort", listener);
  };
}

/** The abortable part of options that say more: what is handed on to calls whose own options have other members. */
export const signalOf = ({ signal }: Abortable): Abortable => ({ signal });

/**
 * Waits for `promise`, or rejects with the signal's reason when it aborts first. Nothing of it stays on the signal either way.
 * The promise itself goes on; `onLate` receives a value that arrives after the abort, so that a grant can be given back:
 * a value reaches the caller or `onLate`, never both.
 */
export function raceAbort<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (value: T) => void,
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    let aborted = signal.aborted;
    const abort = (): void => {
      aborted = true;
      reject(signal.reason as Error);
    };
    const forget = aborted ? () => undefined : onAbort(signal, abort);
    if (aborted) abort();
    void promise
      .then((value) => {
        if (aborted) onLate?.(value);
        else resolve(value);
      }, reject)
      .finally(forget);
  });
}

/** Lets timers, signals and I/O run. Long synchronous work calls it between slices so that nobody waits over 50 ms. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Runs work that pauses now and then, and lets the event loop run where `pace` says so. */
export async function inSlices<T>(work: Generator<undefined, T>, pace: () => Promise<void> | undefined): Promise<T> {
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    await pace();
  }
}

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
