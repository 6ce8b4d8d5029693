/**
 * The lease that makes a fixed root ours (R2, R3), and the names of all leases made from roots.
 *
 * Roots exclude each other when one contains the other, which no single lease name can say. The rule is: first take the
 * lease of our own root, then look at every other held root lease; when one is above or below us, give ours back and
 * refuse. Of two nested openers that race, each takes before it looks, so at least one of them sees the other: both may be
 * refused, both can never succeed. This needs of a leaser that a lease whose acquisition has returned is in every list
 * begun later, with its subject.
 */
import { displayName, isLooprigError, nodeFileSystem, sha256Hex, WorkspaceRootBusyError } from "../core/index.js";
import type { Abortable, CanonicalRoot, FileSystem, LeaseHolder } from "../core/index.js";
import type { Lease, LeaseClaim, LeaseInfo, Leaser, StorageKey } from "../storage/index.js";
import { foldedSpelling } from "./name-folding.js";

const rootLeasePrefix = "workspace-roots/";

/** What stands for a root in names of leases and records: the same for every alias of it. */
export function rootKey(root: CanonicalRoot, fileSystem: FileSystem = nodeFileSystem): string {
  return sha256Hex(foldedSpelling(fileSystem, root));
}

/** Held by the one session that may write in an exclusive root. */
export const rootLeaseName = (root: CanonicalRoot, fileSystem?: FileSystem): StorageKey =>
  `${rootLeasePrefix}${rootKey(root, fileSystem)}`;

/** Held in a shared root from the last check of a commit to its rename (C10), and while a plan is applied (U9). */
export const commitLeaseName = (root: CanonicalRoot, fileSystem?: FileSystem): StorageKey =>
  `workspace-commits/${rootKey(root, fileSystem)}`;

export interface RootLeaseOptions extends Abortable {
  readonly fileSystem?: FileSystem | undefined;
}

/**
 * Takes the root's lease, never waiting for a holder. Throws `WorkspaceRootBusyError` when this root, one above it or one
 * below it is held; nothing is held then. An abort rejects with the signal's reason, and nothing is held either.
 */
export async function acquireRootLease(
  leaser: Leaser,
  root: CanonicalRoot,
  claim: Omit<LeaseClaim, "subject">,
  options: RootLeaseOptions = {},
): Promise<Lease> {
  const { fileSystem = nodeFileSystem, signal } = options;
  const name = rootLeaseName(root, fileSystem);
  let lease: Lease;
  try {
    lease = await leaser.acquire(name, { ...claim, subject: root }, { signal });
  } catch (error) {
    if (!isLooprigError(error, "lease.held")) throw error;
    throw busy(root, "same", root, error.details.holder, error);
  }
  try {
    const others = (await leaser.list(rootLeasePrefix, { signal })).filter((info) => info.name !== name);
    for (const other of others) refuseNested(fileSystem, root, other);
    // The look may have taken long; an expiring lease must not be handed out dead.
    lease.assertHeld();
    return lease;
  } catch (error) {
    // A store that cannot release now lets the lease go with the process; why we stop matters more.
    await lease.release().catch(() => undefined);
    throw error;
  }
}

function refuseNested(fileSystem: FileSystem, root: CanonicalRoot, other: LeaseInfo): void {
  // A lease without a subject is one whose acquisition has not returned: its opener has yet to look, and will see ours.
  if (other.subject === undefined) return;
  const ours = foldedSpelling(fileSystem, root);
  const theirs = foldedSpelling(fileSystem, other.subject);
  const relation = isBelow(ours, theirs) ? "inside" : isBelow(theirs, ours) ? "contains" : undefined;
  if (relation !== undefined) throw busy(root, relation, other.subject, other.holder);
}

const isBelow = (path: string, ancestor: string): boolean =>
  path !== ancestor && path.startsWith(ancestor === "/" ? "/" : `${ancestor}/`);

function busy(
  root: CanonicalRoot,
  relation: "same" | "inside" | "contains",
  held: string,
  holder: LeaseHolder | undefined,
  cause?: unknown,
): WorkspaceRootBusyError {
  const who =
    holder === undefined
      ? "another session"
      : `session ${holder.sessionId} (${displayName(holder.command)}, pid ${holder.pid} on ${holder.host}, since ${holder.since.toISOString()})`;
  const what = {
    same: "holds it",
    inside: `holds ${displayName(held)}, which contains it`,
    contains: `holds ${displayName(held)} inside it`,
  }[relation];
  return new WorkspaceRootBusyError(
    "workspace_root.busy",
    `Cannot take the root ${displayName(root)}: ${who} ${what}; wait for that session, or end it`,
    { root, relation, holder },
    { cause, retryable: true },
  );
}
