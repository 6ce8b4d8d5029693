/** A file as it stands now: read whole, through no link, and never from what is no regular file. */
import fs from "node:fs";
import type { BigIntStats } from "node:fs";
import {
  LooprigError,
  baseName,
  displayName,
  errnoOf,
  isMissing,
  openBelow,
  parentOf,
  sha256Hex,
} from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = fs.constants;
const pieceBytes = 256 * 1024;

/** What the file tools take: read and hashed in one step, so no more than a step may last. Larger ones are for programs that stream. */
export const fileBytesMax = 10 * 1024 * 1024;

export interface PresentFile {
  readonly bytes: Buffer;
  readonly contentHash: string;
  readonly stat: BigIntStats;
}

/**
 * The file at `path`, or undefined when there is none. Throws `file.not_regular`, `file.too_large`, `path.escapes` or
 * `file.failed`.
 */
export function readPresent(fileSystem: FileSystem, top: Directory, path: WorkspacePath): PresentFile | undefined {
  return attempt("read", path, () => {
    if (path === "") throw notRegular(path, "a directory");
    using directory = openParent(top, path);
    return directory === undefined ? undefined : readEntry(fileSystem, directory, path);
  });
}

/** The same within its directory, held open. */
export function readEntry(fileSystem: FileSystem, directory: Directory, path: WorkspacePath): PresentFile | undefined {
  const opened = openRegular(fileSystem, directory, path);
  if (opened === undefined) return undefined;
  const { fd, stat } = opened;
  try {
    if (stat.size > BigInt(fileBytesMax)) throw tooLarge(path, Number(stat.size));
    const pieces: Buffer[] = [];
    let total = 0;
    for (;;) {
      // What the size says may be old; a file of /proc says nothing at all.
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(4096, Number(stat.size) - total + 1)));
      const got = fileSystem.read(fd, piece, 0, piece.length, null);
      if (got === 0) break;
      total += got;
      if (total > fileBytesMax) throw tooLarge(path, Math.max(total, Number(stat.size)));
      pieces.push(piece.subarray(0, got));
    }
    const bytes = Buffer.concat(pieces);
    return { bytes, contentHash: sha256Hex(bytes), stat };
  } finally {
    fileSystem.close(fd);
  }
}

/**
 * Opens a regular file through no link; undefined when there is nothing. Looks before it opens, since opening a device can
 * do things, and never waits for the other end of a pipe. The caller closes it.
 */
export function openRegular(
  fileSystem: FileSystem,
  directory: Directory,
  path: WorkspacePath,
): { readonly fd: number; readonly stat: BigIntStats } | undefined {
  const name = baseName(path);
  try {
    assertRegular(path, directory.lstat(name));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const fd = fileSystem.open(directory.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const stat = fileSystem.fstat(fd);
    assertRegular(path, stat);
    return { fd, stat };
  } catch (error) {
    fileSystem.close(fd);
    throw error;
  }
}

/** Undefined when some directory on the way is absent. */
function openParent(top: Directory, path: WorkspacePath): Directory | undefined {
  try {
    return openBelow(top, parentOf(path));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Errors of the operating system in our words: theirs name paths outside of the root. */
export function attempt<T>(operation: string, path: WorkspacePath, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw told(operation, path, error);
  }
}

export function told(operation: string, path: WorkspacePath, error: unknown): unknown {
  const errno = errnoOf(error);
  if (errno === undefined) return error;
  const full = errno === "ENOSPC" || errno === "EDQUOT";
  return new LooprigError(
    "file.failed",
    `Cannot ${operation} ${displayName(path)}: ${reasons[errno] ?? `the system answers ${errno}`}`,
    { path, operation, errno },
    { cause: error, retryable: full },
  );
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "it is not permitted",
  ENOSPC: "the disk is full",
  EDQUOT: "the quota is used up",
  EROFS: "the file system is read-only",
  ENOTDIR: "a part of the path is no directory",
  ENOENT: "it is not there any more",
  EISDIR: "it is a directory",
  ELOOP: "it has become a symbolic link",
  ENAMETOOLONG: "the name is too long",
};

function assertRegular(path: WorkspacePath, stat: BigIntStats): void {
  if (!stat.isFile()) throw notRegular(path, kindOf(stat));
}

const kindOf = (stat: BigIntStats): string =>
  stat.isDirectory()
    ? "a directory"
    : stat.isSymbolicLink()
      ? "a symbolic link"
      : stat.isFIFO()
        ? "a named pipe"
        : stat.isSocket()
          ? "a socket"
          : stat.isFile()
            ? "a file"
            : "a device";

const notRegular = (path: WorkspacePath, kind: string): LooprigError =>
  new LooprigError(
    "file.not_regular",
    `Cannot use ${displayName(path || ".")} as a file: it is ${kind}${kind === "a directory" ? "; use List to see what is in it" : ""}`,
    { path, kind },
  );

const tooLarge = (path: WorkspacePath, bytes: number): LooprigError =>
  new LooprigError(
    "file.too_large",
    `Cannot use ${displayName(path)} with this tool: it has ${bytes} bytes or more, and ${fileBytesMax} are taken; use a program that reads parts of it`,
    { path, bytes, bytesMax: fileBytesMax },
  );
