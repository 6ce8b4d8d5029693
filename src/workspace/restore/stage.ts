/**
 * Staging: the bytes that are to be put in place, complete and durable under names of ours before the first visible
 * change (U6). Created exclusively, through no link, with permission bits only (set-id is never gained).
 */
import fs from "node:fs";
import { errnoOf, writeAll } from "../../core/index.js";
import type { FileSystem, WorkspacePath } from "../../core/index.js";
import type { WorkspaceStore } from "../../workspace-store/index.js";
import { stampOf } from "./observe.js";
import type { Pace, Stamp } from "./observe.js";
import type { PlannedEntry } from "./plan.js";
import type { TreeAccess } from "./tree-access.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;

/** Files written before they are synced together, which lets the file system commit them at once; open at a time. */
const batchMax = 16;

/** What systems answer when an owner or group may not be given, or is unknown where the process lives. */
const notPermitted: ReadonlySet<string | undefined> = new Set(["EPERM", "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

export interface StagingOptions {
  readonly tree: TreeAccess;
  readonly store: Pick<WorkspaceStore, "read">;
  readonly pace: Pace;
  readonly signal?: AbortSignal | undefined;
}

/** The name is taken. Nothing was written. */
export class NameTakenError extends Error {
  override readonly name = "NameTakenError";
}

/** Writes staged files and links. Every name it may have created is in `created`, complete or not. */
export class Stager {
  readonly #tree: TreeAccess;
  readonly #fileSystem: FileSystem;
  readonly #store: Pick<WorkspaceStore, "read">;
  readonly #pace: Pace;
  readonly #signal: AbortSignal | undefined;
  readonly #unsynced: number[] = [];
  readonly created = new Set<WorkspacePath>();

  constructor({ tree, store, pace, signal }: StagingOptions) {
    this.#tree = tree;
    this.#fileSystem = tree.fileSystem;
    this.#store = store;
    this.#pace = pace;
    this.#signal = signal;
  }

  /**
   * Writes `entry`, which belongs to `path`, under the name `staged`. Durable after `settle`. Rejects with
   * `NameTakenError`, with the store's error (`snapshot.*`), or the system's.
   */
  async write(
    entry: Exclude<PlannedEntry, { kind: "directory" }>,
    path: WorkspacePath,
    staged: WorkspacePath,
  ): Promise<Stamp> {
    if (entry.kind === "symlink") {
      this.#claim(staged, () => this.#tree.symlink(entry.target, staged));
      return this.#stampAt(staged);
    }
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const fd = this.#claim(staged, () => this.#tree.create(staged, flags, 0o600));
    this.#unsynced.push(fd);
    this.#keepOwner(fd, path);
    let written = 0;
    for await (const piece of this.#store.read(entry, { path, signal: this.#signal })) {
      writeAll(this.#fileSystem, fd, piece);
      written += piece.length;
      await this.#pace();
    }
    if (written !== entry.size)
      throw new RangeError(`BUG: the store gave ${written} bytes for a file of ${entry.size}`);
    this.#fileSystem.fchmod(fd, entry.mode);
    if (this.#unsynced.length >= batchMax) await this.settle();
    return this.#stampAt(staged);
  }

  /** Makes what was written durable. The names themselves are so when their directories are synced. */
  async settle(): Promise<void> {
    const batch = this.#unsynced.splice(0);
    const synced = await Promise.allSettled(batch.map((fd) => this.#fileSystem.fsyncLater(fd)));
    closeAll(this.#fileSystem, batch);
    for (const result of synced) if (result.status === "rejected") throw result.reason;
  }

  /** Closes what a failure left open. */
  abandon(): void {
    closeAll(this.#fileSystem, this.#unsynced.splice(0));
  }

  /**
   * Owner and group are not captured (U14): a file that takes another's place gets those of the one that stands there, as
   * far as we may give them; the group alone where the owner may not be given. Before the mode, which a change of owner
   * would cut.
   */
  #keepOwner(fd: number, path: WorkspacePath): void {
    const standing = this.#tree.stat(path);
    if (standing?.isFile() !== true) return;
    const { uid, gid } = this.#fileSystem.fstat(fd);
    if (standing.uid === uid && standing.gid === gid) return;
    for (const owner of [standing.uid, uid]) {
      try {
        this.#fileSystem.fchown(fd, Number(owner), Number(standing.gid));
        return;
      } catch (error) {
        if (!notPermitted.has(errnoOf(error))) throw error;
      }
    }
  }

  #claim<T>(staged: WorkspacePath, create: () => T): T {
    // A call that failed may have done its work all the same; only "it is there already" says whose the name is.
    this.created.add(staged);
    try {
      return create();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      this.created.delete(staged);
      throw new NameTakenError("a staging name is taken", { cause: error });
    }
  }

  #stampAt(path: WorkspacePath): Stamp {
    const stats = this.#tree.stat(path);
    if (stats === undefined) throw Object.assign(new Error(`a staged file vanished`), { code: "ENOENT" });
    return stampOf(stats);
  }
}

function closeAll(fileSystem: FileSystem, fds: readonly number[]): void {
  for (const fd of fds) {
    try {
      fileSystem.close(fd);
    } catch {
      // fsync has said what there is to say about the bytes.
    }
  }
}
