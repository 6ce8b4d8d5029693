/**
 * The commit step of a root that several sessions share (C10): from the last check to the rename one of them is at work,
 * whichever process it is in. It is held under a path's permit and never across a wait: what runs in it is synchronous.
 */
import { raceAbort, isLooprigError } from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem, SessionId } from "../core/index.js";
import type { Lease, Leaser } from "../storage/index.js";
import { commitLeaseName } from "./root-lease.js";

/** Where commits of tools take place. Absent where no other session can write. */
export interface CommitSection {
  /**
   * Runs `step` as the only commit in this root. Rejects with `lease.held` when another holds it for more than five seconds
   * (a restore does), with `lease.lost`, and with the signal's reason; `step` has not run then.
   */
  commit<T>(step: () => T, options?: Abortable): Promise<T>;
}

export interface CommitSectionOptions {
  readonly leaser: Leaser;
  readonly root: CanonicalRoot;
  readonly sessionId: SessionId;
  readonly fileSystem?: FileSystem | undefined;
}

const waitMsMax = 5_000;
const retryMsMax = 20;

/**
 * The commit lease of a root, waited for while other writers have it for their moment. Rejects with `lease.held` after five
 * seconds, and with the signal's reason.
 */
export async function acquireCommitLease(
  { leaser, root, sessionId, fileSystem }: CommitSectionOptions,
  command: string,
  { signal }: Abortable = {},
): Promise<Lease> {
  const name = commitLeaseName(root, fileSystem);
  const until = performance.now() + waitMsMax;
  for (;;) {
    try {
      return await leaser.acquire(name, { sessionId, command, subject: root }, { signal });
    } catch (error) {
      if (!isLooprigError(error, "lease.held") || performance.now() > until) throw error;
    }
    // At random, so that those who met once do not meet again in step.
    await raceAbort(pause(1 + Math.random() * retryMsMax), signal);
  }
}

export function createCommitSection(options: CommitSectionOptions): CommitSection {
  /** Commits of this session queue here, so that they do not ask the store against each other. */
  let last: Promise<unknown> = Promise.resolve();

  return {
    commit: (step, { signal } = {}) => {
      const run = async (): Promise<ReturnType<typeof step>> => {
        signal?.throwIfAborted();
        const lease = await acquireCommitLease(options, "writing a file", { signal });
        try {
          signal?.throwIfAborted();
          lease.assertHeld();
          return step();
        } finally {
          // What was committed is committed; a lease that cannot be released frees itself.
          await lease.release().catch(() => undefined);
        }
      };
      const result = last.then(run);
      last = result.catch(() => undefined);
      return result;
    },
  };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
