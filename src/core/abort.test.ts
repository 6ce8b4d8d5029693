import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inSlices, onAbort, pacer, raceAbort } from "./abort.js";

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;
const settled = async (): Promise<void> => {
  for (let i = 0; i < 8; i++) await Promise.resolve();
};

describe("a wait that can be aborted", () => {
  test("gives the value, or the error, and takes its listener off", async () => {
    const { signal } = new AbortController();
    const value = deferred<number>();
    const waiting = raceAbort(value.promise, signal);
    expect(listeners(signal)).toBe(1);
    value.resolve(7);
    expect(await waiting).toBe(7);
    const failure = new Error("no");
    await expect(raceAbort(Promise.reject(failure), signal)).rejects.toBe(failure);
    await settled();
    expect(listeners(signal)).toBe(0);
  });

  test("rejects with the signal's reason, before or during the wait", async () => {
    const reason = new Error("enough");
    await expect(raceAbort(Promise.resolve(1), AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = raceAbort(new Promise(() => undefined), controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(listeners(controller.signal)).toBe(0);
  });

  test("hears of a late failure from nobody", async () => {
    const value = deferred<number>();
    const controller = new AbortController();
    const waiting = raceAbort(value.promise, controller.signal);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    // An unhandled rejection would fail the run.
    value.reject(new Error("late"));
    await settled();
  });

  test("hands a grant to the caller or back, once, in whatever order grant and abort come", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(["grant", "abort", "tick", "tick2"], { minLength: 2 }),
        fc.boolean(),
        async (events, before) => {
          const controller = new AbortController();
          const value = deferred<string>();
          if (before) value.resolve("grant");
          const handed: string[] = [];
          const waiting = raceAbort(value.promise, controller.signal, () => handed.push("back"));
          waiting.then(
            () => handed.push("caller"),
            () => undefined,
          );
          for (const event of events) {
            if (event === "grant") value.resolve("grant");
            else if (event === "abort") controller.abort(new Error("enough"));
            else await Promise.resolve();
          }
          value.resolve("grant");
          await settled();
          expect(handed).toHaveLength(1);
        },
      ),
    );
  });
});

describe("many who wait on one signal", () => {
  test("share one listener, which goes with the last of them", () => {
    const { signal } = new AbortController();
    const ends = Array.from({ length: 50 }, () => onAbort(signal, () => undefined));
    expect(listeners(signal)).toBe(1);
    for (const end of ends) end();
    expect(listeners(signal)).toBe(0);
    const end = onAbort(signal, () => undefined);
    expect(listeners(signal)).toBe(1);
    end();
    end();
    expect(listeners(signal)).toBe(0);
  });

  test("are called once each, in order, unless they lost interest", () => {
    const controller = new AbortController();
    const called: number[] = [];
    const ends = [0, 1, 2, 3].map((n) =>
      onAbort(controller.signal, () => {
        called.push(n);
        if (n === 0) ends[2]?.();
      }),
    );
    ends[1]?.();
    controller.abort();
    expect(called).toEqual([0, 3]);
    ends[0]?.();
  });
});

describe("paced work", () => {
  test("goes on at once within its slice, yields after it, and stops there when aborted", async () => {
    const controller = new AbortController();
    expect(pacer(controller.signal, 1e9)()).toBeUndefined();
    const pace = pacer(controller.signal, 0);
    let ran = false;
    setImmediate(() => (ran = true));
    await pace();
    expect(ran).toBe(true);
    controller.abort(new Error("enough"));
    await expect(pace()).rejects.toThrow("enough");
  });
});

describe("inSlices", () => {
  function* countTo(end: number, seen: number[]): Generator<undefined, string> {
    for (let i = 1; i <= end; i++) {
      seen.push(i);
      yield;
    }
    return "counted";
  }

  test("lets the event loop run at every pause that asks for it, and gives what the work returns", async () => {
    const seen: number[] = [];
    let turns = 0;
    const result = await inSlices(countTo(3, seen), async () => {
      await new Promise((resolve) => setImmediate(resolve));
      turns++;
    });
    expect(result).toBe("counted");
    expect(seen).toEqual([1, 2, 3]);
    expect(turns).toBe(3);
  });

  test("leaves the work where it is when the pause throws", async () => {
    const seen: number[] = [];
    const controller = new AbortController();
    const pace = pacer(controller.signal, 0);
    controller.abort(new Error("enough"));
    await expect(inSlices(countTo(3, seen), pace)).rejects.toThrow("enough");
    expect(seen).toEqual([1]);
  });
});
