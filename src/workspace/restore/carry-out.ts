/**
 * Carries out the operations of a plan whose commit point is passed, in either direction.
 *
 * Order, and why (docs/formats/plans.md):
 * 1. Down, deepest first: what goes is renamed to its backup, emptied directories are removed. A directory is empty only
 *    after what is in it went.
 * 2. Up, parents first: directories are made; a path that is replaced is cleared and filled in one breath.
 * 3. When committing: every backup is read again. What someone wrote into a file after it was checked shows here.
 * 4. All touched directories are synced, before
 * 5. modes of directories are set, deepest first: afterwards they may not be readable.
 *
 * Nothing is ever written over: names are taken by rename to a name of ours that is free, and given by link, which does
 * not replace. So whatever comes between two calls is found by the next one, and lost by none.
 *
 * A committing run is strict: the first thing that is not as it was checked stops it with `MovedError`, and the caller
 * takes the plan back. A settling run is lenient: what someone else changed meanwhile is left and reported.
 */
import { compareNames, errnoOf, invariant, isLooprigError, parentOf } from "../../core/index.js";
import type { WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { decideDown, decideUp, goesDown } from "./decide.js";
import type { Direction, OwnStanding, Sight, Standing } from "./decide.js";
import { isUnfinished, look, permissionsOf, sameFile, stampOf } from "./observe.js";
import type { Look, Pace, Stamp } from "./observe.js";
import { isDirectory } from "./plan.js";
import type { PlannedEntry } from "./plan.js";
import { reversed, setsModeInPlace } from "./plan-record.js";
import type { PlanRecord, StoredOperation } from "./plan-record.js";
import { Stager } from "./stage.js";
import type { TreeAccess } from "./tree-access.js";

/** A path is not what it was when the plan was checked. */
export class MovedError extends Error {
  override readonly name = "MovedError";
  constructor(readonly paths: readonly WorkspacePath[]) {
    super(`moved: ${paths.join(", ")}`);
  }
}

/** What a check found, so that a committing run need not read every file again. */
export interface Checked {
  readonly paths: ReadonlyMap<WorkspacePath, Stamp>;
  readonly staged: ReadonlyMap<WorkspacePath, Stamp>;
}

export interface Work {
  readonly tree: TreeAccess;
  readonly store: Pick<WorkspaceStore, "read">;
  readonly pace: Pace;
  /** After others ran: makes sure that what is done next may still be done. Throws otherwise. */
  readonly rejoin: () => void;
  /** Says what is being done, for the error that may come of it. */
  readonly doing: (path: WorkspacePath, operation: string) => void;
}

export interface Outcome {
  /** Paths that were left because someone else changed them. */
  readonly skipped: readonly WorkspacePath[];
  /** Stamps of the backups as they were read in step 3. */
  readonly backups: ReadonlyMap<WorkspacePath, Stamp>;
}

const newDirectoryMode = 0o700;

/** Commits a plan that was just checked. The paths it touched are in `begun`, also when it throws. */
export function commit(record: PlanRecord, work: Work, checked: Checked, begun: Set<WorkspacePath>): Promise<Outcome> {
  return new Run(record, record.operations, "forward", work, checked, begun).all();
}

/** Takes back what a commit of this process began. */
export function takeBack(record: PlanRecord, work: Work, begun: ReadonlySet<WorkspacePath>): Promise<Outcome> {
  // A directory that was only made writable is as little as it was before as one whose mode was set.
  const touched = ({ path }: StoredOperation): boolean => begun.has(path) || work.tree.relaxed.has(path);
  const operations = record.operations.filter(touched).map(reversed);
  return new Run(record, operations, "back", work, undefined, new Set()).all();
}

/** Completes or takes back a plan of a process that is gone, whatever it left. */
export function settleOperations(record: PlanRecord, direction: Direction, work: Work): Promise<Outcome> {
  const operations = direction === "forward" ? record.operations : record.operations.map(reversed);
  return new Run(record, operations, direction, work, undefined, new Set()).all();
}

class Run {
  readonly #record: PlanRecord;
  readonly #operations: readonly StoredOperation[];
  readonly #direction: Direction;
  readonly #work: Work;
  readonly #tree: TreeAccess;
  readonly #checked: Checked | undefined;
  readonly #skipped = new Set<WorkspacePath>();
  readonly #begun: Set<WorkspacePath>;

  constructor(
    record: PlanRecord,
    operations: readonly StoredOperation[],
    direction: Direction,
    work: Work,
    checked: Checked | undefined,
    begun: Set<WorkspacePath>,
  ) {
    this.#record = record;
    this.#operations = operations;
    this.#direction = direction;
    this.#work = work;
    this.#tree = work.tree;
    this.#checked = checked;
    this.#begun = begun;
  }

  async all(): Promise<Outcome> {
    const { pace } = this.#work;
    for (const operation of [...this.#operations].reverse()) {
      if (goesDown(operation)) await this.#down(operation);
      await pace();
    }
    for (const operation of this.#operations) {
      await this.#up(operation);
      await pace();
    }
    const backups = this.#checked === undefined ? new Map<WorkspacePath, Stamp>() : await this.#checkBackups();
    await this.#sync();
    await this.#setDirectoryModes();
    return { skipped: [...this.#skipped].sort(compareNames), backups };
  }

  async #down(operation: StoredOperation): Promise<void> {
    const { path } = operation;
    this.#work.doing(path, "take away");
    const { sight, stamp } = await this.#see(operation);
    const decision = decideDown(operation, sight);
    switch (decision.act) {
      case "done":
        this.#wasDone(path);
        break;
      case "skip":
        this.#skip(path);
        break;
      case "remove-directory":
        this.#removeDirectory(path);
        break;
      case "take-away":
        if (decision.freeBackup) this.#tree.unlink(backupOf(operation));
        if (!this.#takeAway(operation, stamp)) this.#skip(path);
        break;
      default:
        decision satisfies never;
    }
  }

  async #up(operation: StoredOperation): Promise<void> {
    const { path, expected, target } = operation;
    if (target === undefined || (isDirectory(expected) && isDirectory(target))) return;
    this.#work.doing(path, "put in place");
    const { sight, stamp } = await this.#see(operation);
    const decision = decideUp(operation, sight, this.#direction);
    switch (decision.act) {
      case "done":
        this.#wasDone(path);
        break;
      case "skip":
        this.#skip(path);
        break;
      case "make-directory":
        this.#makeDirectory(path);
        break;
      case "set-mode":
        invariant(target.kind === "file", "BUG: only a file's mode is set in the pass up");
        this.#begun.add(path);
        if (!this.#tree.setMode(path, target.mode, "file", stamp?.ino)) this.#skip(path);
        break;
      case "put-back":
        this.#putBack(operation);
        this.#skip(path);
        break;
      case "put":
        if (!decision.stage || (await this.#stageAnew(operation))) this.#put(operation);
        else {
          if (sight.backup !== "none") this.#putBack(operation);
          this.#skip(path);
        }
        break;
      case "replace":
        if (decision.stage && !(await this.#stageAnew(operation))) this.#skip(path);
        else {
          if (decision.freeBackup) this.#tree.unlink(backupOf(operation));
          if (this.#takeAway(operation, stamp)) this.#put(operation);
          else this.#skip(path);
        }
        break;
      default:
        decision satisfies never;
    }
  }

  /** What was taken away returns, if its place is free; if not, it stays where it is and is reported. */
  #putBack(operation: StoredOperation): void {
    try {
      this.#tree.moveNoReplace(backupOf(operation), operation.path);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** Clears the path. False when it was not, by then, what was looked at: that was put back. */
  #takeAway(operation: StoredOperation, stamp: Stamp | undefined): boolean {
    const backup = backupOf(operation);
    if (this.#tree.stat(backup) !== undefined) return false;
    this.#begun.add(operation.path);
    try {
      this.#tree.rename(operation.path, backup);
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    }
    const taken = this.#tree.stat(backup);
    if (taken !== undefined && stamp !== undefined && sameFile(stampOf(taken), stamp)) return true;
    // A strict run is taken back as a whole, which puts this back; alone it is put back here.
    if (this.#checked === undefined && taken !== undefined) this.#putBack(operation);
    return false;
  }

  #put(operation: StoredOperation): void {
    this.#begin(operation, () => {
      invariant(operation.staged !== undefined, "BUG: nothing is staged for a path that is put in place");
      return this.#tree.moveNoReplace(operation.staged, operation.path);
    });
  }

  #makeDirectory(path: WorkspacePath): void {
    this.#begin({ path }, () => {
      try {
        this.#tree.mkdir(path, newDirectoryMode);
        return true;
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
        return false;
      }
    });
  }

  /**
   * Does what takes a free name; skips the path where it is not free, or its directory is gone or is a link: someone
   * else's doing, or the consequence of a path that was left. A call that failed otherwise may have done its work.
   */
  #begin({ path }: Pick<StoredOperation, "path">, act: () => boolean): void {
    const before = this.#begun.has(path);
    this.#begun.add(path);
    let done = false;
    try {
      done = act();
    } catch (error) {
      if (!isGone(error)) throw error;
    }
    if (done) return;
    if (!before) this.#begun.delete(path);
    this.#skip(path);
  }

  #removeDirectory(path: WorkspacePath): void {
    this.#begun.add(path);
    try {
      this.#tree.rmdir(path);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "ENOTEMPTY" || errno === "EEXIST" || isGone(error)) this.#skip(path);
      else throw error;
    }
  }

  /** Writes the staged file again; false when it cannot be had, or a name of ours is in other hands. */
  async #stageAnew({ path, target, staged }: StoredOperation): Promise<boolean> {
    invariant(staged !== undefined && target !== undefined && target.kind !== "directory", "BUG: nothing to stage");
    if (this.#checked !== undefined) return false;
    const { tree, store, pace } = this.#work;
    if (tree.stat(staged) !== undefined) tree.unlink(staged);
    const stager = new Stager({ tree, store, pace });
    try {
      await stager.write(target, path, staged);
      await stager.settle();
      return true;
    } catch (error) {
      if (!isLooprigError(error, "snapshot.object_missing", "snapshot.object_damaged") && !isGone(error)) throw error;
      for (const created of stager.created) if (tree.stat(created) !== undefined) tree.unlink(created);
      return false;
    } finally {
      stager.abandon();
    }
  }

  async #see(operation: StoredOperation): Promise<{ readonly sight: Sight; readonly stamp: Stamp | undefined }> {
    const { expected, target, staged, backup } = operation;
    const seen = await this.#lookAt(operation);
    const stamp = seen.at === "absent" ? undefined : seen.stamp;
    const standing: Standing =
      seen.at === "absent"
        ? target === undefined
          ? "target"
          : "absent"
        : seen.at === "other"
          ? "other"
          : seen.index === 0
            ? "expected"
            : "target";
    return {
      sight: {
        path: expected === undefined && standing === "expected" ? "other" : standing,
        staged: await this.#own(staged, target, true),
        backup: await this.#own(backup, expected, false),
      },
      stamp,
    };
  }

  /** A committing run trusts the stamp of the check, which was taken in the same call; step 3 reads the bytes again. */
  async #lookAt({ path, expected, target }: StoredOperation): Promise<Look> {
    const known = this.#checked?.paths.get(path);
    if (known !== undefined) {
      const stats = this.#tree.stat(path);
      if (stats === undefined) return { at: "absent" };
      const stamp = stampOf(stats);
      // What a directory holds changes its times as the plan goes on.
      const same = isDirectory(expected) ? known.ino === stamp.ino && stats.isDirectory() : sameFile(known, stamp);
      if (same) return { at: "candidate", index: 0, stamp };
    }
    return look(this.#tree, path, [expected, target], this.#work.pace);
  }

  async #own(
    name: WorkspacePath | undefined,
    entry: PlannedEntry | undefined,
    mayBeUnfinished: boolean,
  ): Promise<OwnStanding> {
    if (name === undefined) return "none";
    const stats = this.#tree.stat(name);
    if (stats === undefined) return "none";
    const known = this.#checked?.staged.get(name);
    if (known !== undefined && sameFile(known, stampOf(stats))) return "ours";
    if ((await look(this.#tree, name, [entry], this.#work.pace)).at === "candidate") return "ours";
    return mayBeUnfinished && (await isUnfinished(this.#tree, name, entry, this.#work.store)) ? "unfinished" : "other";
  }

  /** Step 3. */
  async #checkBackups(): Promise<Map<WorkspacePath, Stamp>> {
    const stamps = new Map<WorkspacePath, Stamp>();
    const moved: WorkspacePath[] = [];
    for (const { path, expected, backup } of this.#operations) {
      if (backup === undefined) continue;
      this.#work.doing(path, "check again");
      const seen = await look(this.#tree, backup, [expected], this.#work.pace);
      if (seen.at === "candidate") stamps.set(backup, seen.stamp);
      else moved.push(path);
      await this.#work.pace();
    }
    if (moved.length > 0) throw new MovedError(moved);
    return stamps;
  }

  /** Step 4. */
  async #sync(): Promise<void> {
    const { doing, rejoin } = this.#work;
    await this.#tree.syncAll(directoriesOf(this.#operations), (path) => doing(path, "sync"));
    rejoin();
  }

  /** Step 5. */
  async #setDirectoryModes(): Promise<void> {
    await setDirectoryModes(this.#record.relaxed, this.#operations, this.#work, {
      set: (path) => this.#begun.add(path),
      skip: (path) => this.#skip(path),
    });
  }

  /** A committing run comes to each operation once: what is done already was done by someone else. */
  #wasDone(path: WorkspacePath): void {
    if (this.#checked !== undefined) this.#skip(path);
  }

  #skip(path: WorkspacePath): void {
    if (this.#checked !== undefined) throw new MovedError([path]);
    this.#skipped.add(path);
  }
}

/**
 * Gives directories the modes they are to have, deepest first: those of the operations, and of the ones that were made
 * writable for a moment. `set` is told before a mode is set, `skip` where somebody else has set another one.
 */
export async function setDirectoryModes(
  relaxed: PlanRecord["relaxed"],
  operations: readonly StoredOperation[],
  { tree, doing, pace }: Pick<Work, "tree" | "doing" | "pace">,
  { set, skip }: { readonly set?: (path: WorkspacePath) => void; readonly skip?: (path: WorkspacePath) => void } = {},
): Promise<void> {
  // `passing` are the modes that a directory has before, while and after we are at work; any other is someone else's wish.
  const modes = new Map<WorkspacePath, { readonly mode: number; readonly passing?: readonly number[] }>();
  for (const { path, mode } of relaxed) modes.set(path, { mode, passing: [mode | 0o700] });
  const planned = new Set<WorkspacePath>();
  for (const { path, expected, target } of operations) {
    if (target?.kind !== "directory") continue;
    planned.add(path);
    const passing =
      expected?.kind === "directory"
        ? [expected.mode, expected.mode | 0o700, target.mode | 0o700, newDirectoryMode]
        : undefined;
    modes.set(path, { mode: target.mode, ...(passing === undefined ? {} : { passing }) });
  }
  for (const [path, { mode, passing }] of [...modes].sort(([a], [b]) => compareNames(b, a))) {
    doing(path, "set the mode of");
    const stats = tree.stat(path);
    if (stats?.isDirectory() !== true || permissionsOf(stats) === mode) continue;
    if (passing?.includes(permissionsOf(stats)) === false) {
      if (planned.has(path)) skip?.(path);
      continue;
    }
    set?.(path);
    tree.setMode(path, mode, "directory", stats.ino);
    await pace();
  }
}

/** Every directory in which the operations change names. */
export function directoriesOf(operations: readonly StoredOperation[]): readonly WorkspacePath[] {
  const directories = new Set<WorkspacePath>();
  for (const operation of operations) {
    if (setsModeInPlace(operation)) continue;
    for (const path of [operation.path, operation.staged, operation.backup]) {
      if (path !== undefined) directories.add(parentOf(path));
    }
  }
  return [...directories].sort(compareNames);
}

function backupOf({ backup }: StoredOperation): WorkspacePath {
  invariant(backup !== undefined, "BUG: a file is taken away without a backup");
  return backup;
}

/** The path, or the directory it is in, is not there any more, or a link has its place. */
function isGone(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ENOTDIR" || errno === "ELOOP" || isLooprigError(error, "path.escapes");
}
