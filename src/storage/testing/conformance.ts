/** What the conformance suites share: how a backend presents itself, and how refusals are looked at. */
import { afterEach, expect, test } from "vitest";
import { isLooprigError, mintSessionId } from "../../core/index.js";
import type { ErrorCode, ErrorDetails } from "../../core/index.js";
import type { LeaseClaim, Storage, StorageKey } from "../contracts.js";

/**
 * A backend under test. `open` gives a storage of its own to each test; the suite closes it. The other members are what a
 * backend may offer beyond the contract so that more can be proven; tests that need one it does not offer are reported as
 * skipped, with its name.
 */
export interface ConformanceOptions {
  /** Opens an empty storage. Called once or more per test; the suite closes what it got. */
  open(): Storage | Promise<Storage>;
  /** Opens the data of `storage` once more, as another process would. The suite closes the result. */
  reopen?: ((storage: Storage) => Storage | Promise<Storage>) | undefined;
  /** Changes a byte of a stored record behind the storage's back. */
  damageRecord?: ((storage: Storage, ledger: StorageKey, seq: number) => void | Promise<void>) | undefined;
  /** Makes the time of every lease of the storage run out, as a holder that cannot renew would see it. */
  expireLeases?: ((storage: Storage) => void | Promise<void>) | undefined;
  /** Called after each test, when its storages are closed: removes what `open` made. */
  dispose?: (() => void | Promise<void>) | undefined;
}

type Offer = Exclude<keyof ConformanceOptions, "open" | "dispose">;

export interface Bench {
  /** A fresh storage. */
  readonly open: () => Promise<Storage>;
  /** A test that needs something the backend may not offer. */
  readonly offered: <O extends Offer>(
    offer: O,
    name: string,
    body: (use: NonNullable<ConformanceOptions[O]>) => Promise<void>,
  ) => void;
}

/** To be called inside `describe`: registers the clean-up after each test. */
export function bench(options: ConformanceOptions): Bench {
  const storages: Storage[] = [];
  afterEach(async () => {
    for (const storage of storages.splice(0)) await storage.close();
    await options.dispose?.();
  });
  const kept = async (storage: Storage | Promise<Storage>): Promise<Storage> => {
    storages.push(await storage);
    return storage;
  };
  return {
    open: () => kept(options.open()),
    offered(offer, name, body) {
      const given = options[offer];
      if (given === undefined) {
        test.skip(`${name} [not offered by this backend: ${offer}]`);
        return;
      }
      const use =
        offer === "reopen"
          ? (storage: Storage) => kept((given as NonNullable<ConformanceOptions["reopen"]>)(storage))
          : given;
      test(name, () => body(use as NonNullable<ConformanceOptions[typeof offer]>));
    },
  };
}

/** Expects a rejection with this code, and these among its details. */
export async function refused<C extends ErrorCode>(
  promise: Promise<unknown>,
  code: C,
  details: Partial<ErrorDetails[C]> = {},
): Promise<void> {
  const outcome = await promise.then(
    () => "it succeeded",
    (error: unknown) => error,
  );
  if (!isLooprigError(outcome)) throw new Error(`wanted a refusal with "${code}"`, { cause: outcome });
  expect(outcome.code).toBe(code);
  expect(outcome.details).toMatchObject(details);
}

/** Expects that an aborted signal is answered with its reason. */
export async function abortedEarly(call: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const reason = new Error("the test's reason");
  await expect(call(AbortSignal.abort(reason))).rejects.toBe(reason);
}

export const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
export const text = (body: Uint8Array): string => Buffer.from(body).toString();

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export const claimOf = (command: string, subject?: string): LeaseClaim => ({
  sessionId: mintSessionId(),
  command,
  ...(subject === undefined ? {} : { subject }),
});

/** Keys no backend may take, each for one rule of the contract. */
export const badKeys: readonly string[] = [
  "",
  "/a",
  "a/",
  "a//b",
  ".",
  "a/../b",
  "a/.",
  "a b",
  "ä",
  "a\0",
  "a:b",
  "k".repeat(513),
];

/** Keys every backend must take and tell apart, in their order: near-collisions of paths, of case, and the longest. */
export const awkwardKeys: readonly string[] = [
  "-",
  "...",
  ".tmp-a",
  ".tmp-a/b",
  "A",
  "A/b",
  "a",
  "a-b",
  "a.b",
  "a/B",
  "a/b",
  "a/b/c",
  "a0",
  "aA",
  "k".repeat(512),
];
