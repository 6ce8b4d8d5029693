/**
 * The commit of a file tool: new bytes beside the target, synced, then one step that makes them visible (C5, C9, C10).
 *
 * 1. Everything slow happens before: the bytes are staged and durable when the last check is made.
 * 2. Last check and commit are one synchronous step. Within this process nothing comes between them, and in a shared
 *    root it holds the commit lease, so that no session of the store does (C10). For other writers the gap is from the
 *    last byte compared to the rename.
 * 3. The permit is asked last of all (C5).
 * 4. Where changes are recorded, the record is durable before anything is made beside the target (E3): a kill leaves no
 *    name that nobody knows of.
 * 5. An absent path is published by a step that never replaces. A file with several names is written in place, so that all
 *    its names change together; a failed write in place puts the old bytes back.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import type { BigIntStats } from "node:fs";
import {
  LooprigError,
  isLooprigError,
  baseName,
  components,
  displayName,
  errnoOf,
  joinPath,
  openBelow,
  parentOf,
  rootPath,
  writeAll,
} from "../core/index.js";
import type { Directory, FileSystem, SnapshotRef, WorkspacePath } from "../core/index.js";
import type { CommitSection, FileChange, RecordedPermit, WorkspacePermit } from "../workspace/index.js";
import { attempt, readEntry, told } from "./present-file.js";
import type { PresentFile } from "./present-file.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = fs.constants;

/** Leads the names of files being written. Nothing that bears it was ever published. */
export const stagedPrefix = ".looprig-write-";

/** What the process gives new files. Asked once, when nothing writes yet: asking changes it for a moment. */
// eslint-disable-next-line @typescript-eslint/no-deprecated -- deprecated for being asked beside threads that write
const newFileMode = 0o666 & ~process.umask();

export interface CommitScope {
  readonly fileSystem: FileSystem;
  readonly top: Directory;
  readonly path: WorkspacePath;
  /** With `record`, what is about to be committed is put on record first. */
  readonly permit: WorkspacePermit & Partial<Pick<RecordedPermit, "record" | "keep" | "openWindow">>;
  readonly signal: AbortSignal;
  /** In a shared root (C10). */
  readonly commits?: CommitSection | undefined;
}

/**
 * Makes `bytes` the content of the file. `expected` is what it must still be: undefined for absent. Returns false, and
 * changes nothing, when it is something else by now.
 */
export async function commitFile(
  scope: CommitScope,
  bytes: Uint8Array,
  expected: PresentFile | undefined,
): Promise<boolean> {
  const { path, permit, signal } = scope;
  const made: FileChange[] = [];
  const directory = attempt("write", path, () =>
    expected === undefined ? makeParents(scope, made) : openBelow(scope.top, parentOf(path)),
  );
  try {
    if (expected === undefined || expected.stat.nlink === 1n) {
      return await commitStaged(scope, directory, bytes, expected, made);
    }
    // Its other names change with it, wherever they are.
    await permit.openWindow?.({ signal });
    return await inSection(scope, () => commitInPlace(scope, directory, bytes, expected));
  } catch (error) {
    throw told("write", path, error);
  } finally {
    directory.close();
  }
}

/** Opens the directory of an absent file, and makes what is missing on the way. */
function makeParents({ fileSystem, top, path, permit }: CommitScope, made: FileChange[]): Directory {
  let current = top.child(".");
  let at = rootPath;
  for (const name of components(parentOf(path))) {
    at = joinPath(at, name);
    try {
      let next: Directory;
      try {
        next = current.child(name);
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") throw error;
        permit.assertHeld();
        let ours = true;
        try {
          fileSystem.mkdir(current.at(name), 0o777);
        } catch (second) {
          if (errnoOf(second) !== "EEXIST") throw second;
          ours = false;
        }
        next = current.child(name);
        const mode = modeOf(current.lstat(name));
        if (ours) made.push({ path: at, before: undefined, after: { kind: "directory", mode } });
      }
      current.close();
      current = next;
    } catch (error) {
      current.close();
      throw error;
    }
  }
  return current;
}

/** The last check and the commit, as one step that no other session of the store has any part in. */
const inSection = async <T>({ commits, signal }: CommitScope, step: () => T): Promise<T> =>
  commits === undefined ? step() : commits.commit(step, { signal });

async function commitStaged(
  scope: CommitScope,
  directory: Directory,
  bytes: Uint8Array,
  expected: PresentFile | undefined,
  made: readonly FileChange[],
): Promise<boolean> {
  const { fileSystem, path, permit, signal } = scope;
  const [staged, replaced] = [stagedName(), stagedName()];
  const name = baseName(path);
  const mode = expected === undefined ? newFileMode : modeOf(expected.stat);
  await permit.record?.([...made, changeOf(path, bytes, mode, expected)], {
    signal,
    staged: [joinPath(parentOf(path), staged)],
    ...(expected === undefined ? {} : { replaced: joinPath(parentOf(path), replaced) }),
  });
  permit.assertHeld();
  const fd = fileSystem.open(directory.at(staged), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666);
  try {
    try {
      writeAll(fileSystem, fd, bytes);
      takeOver(fileSystem, fd, { ...expected?.stat, mode });
      await fileSystem.fsyncLater(fd);
    } finally {
      fileSystem.close(fd);
    }
    const committed = await inSection(scope, () => {
      signal.throwIfAborted();
      if (expected !== undefined && !stands(fileSystem, directory, path, expected)) return false;
      permit.assertHeld();
      if (expected === undefined) return publish(fileSystem, directory, staged, name);
      replace(fileSystem, directory, { staged, name, replaced });
      return true;
    });
    if (!committed) return false;
    if (expected !== undefined) await releaseReplaced(scope, directory, replaced, expected);
  } finally {
    // After a rename there is nothing of that name.
    discard(fileSystem, directory, staged);
  }
  directory.sync();
  return true;
}

const changeOf = (
  path: WorkspacePath,
  bytes: Uint8Array,
  mode: number,
  expected: PresentFile | undefined,
): FileChange => ({
  path,
  before: expected && { kind: "file", mode: modeOf(expected.stat), bytes: expected.bytes },
  after: { kind: "file", mode, bytes },
});

const stagedName = (): string => `${stagedPrefix}${randomBytes(9).toString("hex")}`;

/** Puts the staged file in place. The one it replaces has a second name, so that what is written to it meanwhile is not lost (C10). */
function replace(
  fileSystem: FileSystem,
  directory: Directory,
  { staged, name, replaced }: { readonly staged: string; readonly name: string; readonly replaced: string },
): void {
  try {
    fileSystem.link(directory.at(name), directory.at(replaced));
  } catch (error) {
    // A volume without second names, or a file of somebody who forbids them: then it is gone with the rename.
    if (errnoOf(error) === undefined) throw error;
  }
  try {
    fileSystem.rename(directory.at(staged), directory.at(name));
  } catch (error) {
    discard(fileSystem, directory, replaced);
    throw error;
  }
}

/**
 * Looks at the replaced file once more: a writer who had it open, or came between the last check and the rename, wrote into
 * a file that has no name any more. Its bytes are stored, or the second name stays; in either case the conflict is told.
 */
async function releaseReplaced(
  { fileSystem, path, permit }: CommitScope,
  directory: Directory,
  replaced: string,
  expected: PresentFile,
): Promise<void> {
  const kept = joinPath(parentOf(path), replaced);
  let ref: SnapshotRef | undefined;
  try {
    const now = readEntry(fileSystem, directory, kept);
    if (now === undefined) return;
    if (now.contentHash === expected.contentHash) {
      discard(fileSystem, directory, replaced);
      return;
    }
    ref = await permit.keep?.({ path, mode: modeOf(now.stat), bytes: now.bytes });
  } catch (error) {
    if (errnoOf(error) === undefined && !isLooprigError(error)) throw error;
  }
  if (ref !== undefined) discard(fileSystem, directory, replaced);
  const where = ref === undefined ? displayName(kept) : `\`looprig show ${ref}:${displayName(path)}\``;
  throw new LooprigError(
    "file.written_meanwhile",
    `Wrote ${displayName(path)}, but somebody else wrote to it at the same moment; their bytes are kept: see ${where}, and take them into account`,
    { path, ...(ref === undefined ? { kept } : { ref }) },
  );
}

/** False when something has the name already. The staged name stays. */
function publish(fileSystem: FileSystem, directory: Directory, staged: string, name: string): boolean {
  try {
    fileSystem.link(directory.at(staged), directory.at(name));
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** All in one step of this process: what is read is what is written over. */
function commitInPlace(
  { fileSystem, path, permit, signal }: CommitScope,
  directory: Directory,
  bytes: Uint8Array,
  expected: PresentFile,
): boolean {
  signal.throwIfAborted();
  if (!stands(fileSystem, directory, path, expected)) return false;
  const fd = fileSystem.open(directory.at(baseName(path)), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const { dev, ino } = fileSystem.fstat(fd);
    if (dev !== expected.stat.dev || ino !== expected.stat.ino) return false;
    permit.assertHeld();
    try {
      overwrite(fileSystem, fd, bytes);
    } catch (error) {
      // The old bytes had room before, so they have it again.
      overwrite(fileSystem, fd, expected.bytes);
      throw error;
    }
    fileSystem.fsync(fd);
    return true;
  } finally {
    fileSystem.close(fd);
  }
}

function overwrite(fileSystem: FileSystem, fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length;) {
    done += fileSystem.write(fd, bytes, done, bytes.length - done, done);
  }
  fileSystem.ftruncate(fd, bytes.length);
}

const modeOf = ({ mode }: BigIntStats): number => Number(mode) & 0o777;

/**
 * Whether the file is what it was: its content, and what a commit decides by or takes over. Somebody's `chmod` meanwhile is
 * not to be lost, and neither is a second name, which a rename would part from this one.
 */
function stands(fileSystem: FileSystem, directory: Directory, path: WorkspacePath, expected: PresentFile): boolean {
  const now = readEntry(fileSystem, directory, path);
  return now !== undefined && now.contentHash === expected.contentHash && sameStanding(now.stat, expected.stat);
}

const sameStanding = (a: BigIntStats, b: BigIntStats): boolean =>
  modeOf(a) === modeOf(b) && a.uid === b.uid && a.gid === b.gid && a.nlink === b.nlink;

/** Owner where there is one to keep and it is permitted, and permission bits; set-id bits are dropped, as by every write. */
function takeOver(
  fileSystem: FileSystem,
  fd: number,
  { uid, gid, mode }: { readonly uid?: bigint; readonly gid?: bigint; readonly mode: number },
): void {
  const own = fileSystem.fstat(fd);
  if (uid !== undefined && gid !== undefined && (own.uid !== uid || own.gid !== gid)) {
    try {
      fileSystem.fchown(fd, Number(uid), Number(gid));
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
  }
  fileSystem.fchmod(fd, mode);
}

function discard(fileSystem: FileSystem, directory: Directory, name: string): void {
  try {
    fileSystem.unlink(directory.at(name));
  } catch (error) {
    // A name that cannot be removed now is worth no second error.
    if (errnoOf(error) === undefined) throw error;
  }
}
