/**
 * The state directory on disk: makes it, checks it, and later tells whether it is still the same (B3, G4).
 *
 * Rules:
 *  1. Nothing is written before every check that can refuse has passed.
 *  2. `format` is published last. Where it stands, the store was complete once; a part missing then is damage, and is
 *     never made anew in silence. Where it does not stand, only an empty directory or the beginnings of a store are adopted.
 *  3. Directories are 0700 and files 0600, whatever the umask; what was loosened since is tightened again.
 */
import path from "node:path";
import { StorageError, isMissing, publishNoReplace, syncDirectory, temporaryPrefix } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { storageDamaged } from "./failures.js";
import { networkFileSystem } from "./network-file-system.js";
import { readSmallFile } from "./small-file.js";

export const formatVersion = 1;

export interface StateDirectory {
  /** Canonical. */
  readonly dir: string;
  readonly databaseFile: string;
  readonly blobsDir: string;
  readonly temporaryDir: string;
  readonly leasesDir: string;
  readonly spoolDir: string;
  /** Throws `storage.missing` unless the database and the blobs are still those that were opened. */
  assertPresent(): void;
}

export interface PrepareOptions {
  readonly allowNetworkFileSystem: boolean;
  /** The user the store must belong to. */
  readonly uid: number | undefined;
  readonly platform: NodeJS.Platform;
}

/** Makes or checks the directory. Synchronous: some twenty calls, each on a handful of names. */
export function prepareStateDirectory(fileSystem: FileSystem, given: string, options: PrepareOptions): StateDirectory {
  const wanted = path.resolve(given);
  const ancestor = existingAncestor(fileSystem, wanted);
  if (!options.allowNetworkFileSystem && options.platform === "linux") refuseNetwork(fileSystem, wanted, ancestor);

  makeMissing(fileSystem, ancestor, wanted);
  const dir = fileSystem.realpath(wanted);
  const layout = layoutOf(dir);
  assertOwner(fileSystem, dir, options.uid);

  const version = formatOf(fileSystem, layout.formatFile, dir);
  if (version !== undefined) {
    if (version > formatVersion) throw unsupportedVersion(dir, version);
    for (const part of [layout.databaseFile, layout.blobsDir]) assertStands(fileSystem, part);
  }

  tighten(fileSystem, dir, 0o700);
  for (const part of [layout.blobsDir, layout.temporaryDir, layout.leasesDir, layout.spoolDir]) {
    makeDirectory(fileSystem, part);
    assertOwner(fileSystem, part, options.uid);
    tighten(fileSystem, part, 0o700);
  }
  ensurePrivateFile(fileSystem, layout.databaseFile, []);
  assertOwner(fileSystem, layout.databaseFile, options.uid);
  for (const suffix of ["-wal", "-shm"]) tightenIfThere(fileSystem, layout.databaseFile + suffix);
  if (version === undefined) {
    syncDirectory(fileSystem, dir);
    ensurePrivateFile(fileSystem, layout.formatFile, [Buffer.from(formatText)]);
  }

  const database = identity(fileSystem, layout.databaseFile);
  const blobs = identity(fileSystem, layout.blobsDir);
  return {
    dir,
    databaseFile: layout.databaseFile,
    blobsDir: layout.blobsDir,
    temporaryDir: layout.temporaryDir,
    leasesDir: layout.leasesDir,
    spoolDir: layout.spoolDir,
    assertPresent() {
      if (
        identity(fileSystem, layout.databaseFile) !== database ||
        identity(fileSystem, layout.blobsDir) !== blobs ||
        database === undefined
      ) {
        throw new StorageError(
          "storage.missing",
          `Cannot go on with the state directory "${dir}": it was removed or replaced while it was open; nothing is written to what stands there now; open it anew`,
          { dir },
        );
      }
    },
  };
}

/** Creates `file` with mode 0600 and these bytes unless it exists; tightens it if it does. Never opens an existing file. */
export function ensurePrivateFile(fileSystem: FileSystem, file: string, chunks: readonly Uint8Array[]): void {
  // The bytes are written under another name and that is closed before the file's name exists: closing a descriptor of a
  // file on which this process holds a POSIX lock would drop the lock.
  if (identity(fileSystem, file) === undefined) publishNoReplace(fileSystem, file, chunks);
  tighten(fileSystem, file, 0o600);
}

/** Device and inode as one word, or undefined when nothing stands there. */
export function identity(fileSystem: FileSystem, file: string): string | undefined {
  try {
    const { dev, ino } = fileSystem.lstat(file);
    return `${dev}:${ino}`;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const formatText = `looprig state directory, format ${formatVersion}\n`;

/** Where the parts of a state directory are. */
export function layoutOf(dir: string) {
  return {
    formatFile: path.join(dir, "format"),
    databaseFile: path.join(dir, "state.db"),
    blobsDir: path.join(dir, "blobs"),
    temporaryDir: path.join(dir, "tmp"),
    leasesDir: path.join(dir, "leases"),
    spoolDir: path.join(dir, "spool"),
  };
}

/** What the first opening makes before `format`: its crash may leave any of these. */
const beginnings: ReadonlySet<string> = new Set([
  "state.db",
  "state.db-wal",
  "state.db-shm",
  "blobs",
  "tmp",
  "leases",
  "spool",
]);

function existingAncestor(fileSystem: FileSystem, wanted: string): string {
  for (let at = wanted; ; at = path.dirname(at)) {
    try {
      fileSystem.stat(at);
      return at;
    } catch (error) {
      if (!isMissing(error) || at === path.dirname(at)) throw error;
    }
  }
}

function refuseNetwork(fileSystem: FileSystem, wanted: string, ancestor: string): void {
  const type = networkFileSystem(fileSystem.statfs(ancestor).type);
  if (type === undefined) return;
  throw new StorageError(
    "storage.network_file_system",
    `Cannot keep state in "${wanted}": it is on a network file system (${type}), where locks cannot be trusted; name a directory on a local disk, or pass allowNetworkFileSystem when only one machine ever uses it`,
    { dir: wanted, type },
  );
}

function makeMissing(fileSystem: FileSystem, ancestor: string, wanted: string): void {
  const missing = path.relative(ancestor, wanted).split(path.sep).filter(Boolean);
  let at = ancestor;
  for (const name of missing) {
    const parent = at;
    at = path.join(at, name);
    makeDirectory(fileSystem, at);
    syncDirectory(fileSystem, parent);
  }
}

function makeDirectory(fileSystem: FileSystem, dir: string): void {
  if (identity(fileSystem, dir) !== undefined) return;
  try {
    fileSystem.mkdir(dir, 0o700);
  } catch (error) {
    if (identity(fileSystem, dir) === undefined) throw error;
  }
}

function assertOwner(fileSystem: FileSystem, file: string, uid: number | undefined): void {
  const owner = Number(fileSystem.lstat(file).uid);
  if (uid === undefined || owner === uid) return;
  throw new StorageError(
    "storage.foreign_owner",
    `Cannot keep state in "${file}": it belongs to user ${owner} and this process runs as user ${uid}; name a directory of your own`,
    { path: file, uid: owner },
  );
}

/** The format of the store; undefined for a directory that may become one. `storage.not_a_store` for any other. */
function formatOf(fileSystem: FileSystem, formatFile: string, dir: string): number | undefined {
  const entry = readFormat(fileSystem, formatFile) === undefined ? foreignEntry(fileSystem, dir) : undefined;
  // Looked at again: what was found may be the format itself, which another first opening has just published.
  const version = readFormat(fileSystem, formatFile);
  if (version !== undefined || entry === undefined) return version;
  throw new StorageError(
    "storage.not_a_store",
    `Cannot keep state in "${dir}": it holds ${JSON.stringify(entry)} and is no state directory of looprig; name an empty or absent one`,
    { dir, entry },
  );
}

/** A name in the directory that the first opening does not make before `format`. */
const foreignEntry = (fileSystem: FileSystem, dir: string): string | undefined =>
  fileSystem
    .readdir(dir)
    .map(String)
    .find((name) => !beginnings.has(name) && !name.startsWith(temporaryPrefix));

function assertStands(fileSystem: FileSystem, part: string): void {
  if (identity(fileSystem, part) === undefined)
    throw storageDamaged(part, "it is missing though the store was complete");
}

/** The format the file names; undefined where there is no such file. */
export function readFormat(fileSystem: FileSystem, file: string): number | undefined {
  const bytes = readSmallFile(fileSystem, file, 4096);
  if (bytes === undefined) return undefined;
  const version = /^looprig state directory, format (\d{1,9})\n/.exec(Buffer.from(bytes).toString("latin1"))?.[1];
  if (version === undefined) throw storageDamaged(file, "it does not name a format");
  return Number(version);
}

export const unsupportedVersion = (dir: string, found: number): StorageError =>
  new StorageError(
    "storage.unsupported_version",
    `Cannot open the state directory "${dir}": it has format ${found} and this looprig knows up to ${formatVersion}; use the looprig that wrote it, or a newer one`,
    { dir, found, supported: formatVersion },
  );

/** Gives a file or directory of ours exactly these permission bits; the umask may have taken some. */
export function tighten(fileSystem: FileSystem, file: string, mode: number): void {
  if ((Number(fileSystem.lstat(file).mode) & 0o7777) !== mode) fileSystem.chmod(file, mode);
}

function tightenIfThere(fileSystem: FileSystem, file: string): void {
  try {
    tighten(fileSystem, file, 0o600);
  } catch (error) {
    // The last process to close the database removes these.
    if (!isMissing(error)) throw error;
  }
}
