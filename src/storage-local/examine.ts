/**
 * A look at a state directory that changes nothing, for telling people what is wrong with it: opening it would refuse at the
 * first trouble, and would put right in silence what was loosened or left behind.
 */
import path from "node:path";
import { isLooprigError, isMissing } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { defaultReserveBytes } from "./disk-reserve.js";
import { networkFileSystem } from "./network-file-system.js";
import { openSqlite } from "./sqlite.js";
import { formatVersion, identity, layoutOf, readFormat } from "./state-directory.js";
import { straysIn } from "./strays.js";

/** One thing that is not as it should be. */
export type StateTrouble =
  | { readonly kind: "absent" | "not-a-directory" | "not-a-store" | "format-damaged" }
  | { readonly kind: "newer-format"; readonly found: number; readonly supported: number }
  | { readonly kind: "unreadable" | "missing"; readonly path: string }
  | { readonly kind: "foreign-owner"; readonly path: string; readonly uid: number }
  | { readonly kind: "open-to-others"; readonly path: string; readonly mode: number }
  | { readonly kind: "network"; readonly type: string }
  | { readonly kind: "database"; readonly path: string; readonly problem: string }
  /** Files that killed writers left; the next opening removes them. */
  | { readonly kind: "temporaries"; readonly count: number };

/** A state directory as it was found, and what is wrong with it. */
export interface StateExamination {
  readonly dir: string;
  readonly format: number | undefined;
  /** Bytes this user may still write on its volume. */
  readonly freeBytes: number | undefined;
  /** What captures leave free of it. */
  readonly reserveBytes: number;
  readonly spoolBytes: number;
  readonly troubles: readonly StateTrouble[];
}

/** Who looks, where, and when. */
export interface ExamineOptions {
  /** Whom everything should belong to. */
  readonly uid: number | undefined;
  readonly platform: NodeJS.Platform;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Looks at a state directory, which need not exist. Changes nothing; whatever is wrong is an answer and not an error. */
export function examineStateDirectory(fileSystem: FileSystem, dir: string, options: ExamineOptions): StateExamination {
  const troubles: StateTrouble[] = [];
  const nothing = { dir, format: undefined, freeBytes: undefined, reserveBytes: 0, spoolBytes: 0, troubles };
  const stat = lookAt(fileSystem, dir, troubles);
  if (stat === undefined) {
    if (troubles.length === 0) troubles.push({ kind: "absent" });
    return nothing;
  }
  if (!fileSystem.stat(dir).isDirectory()) {
    troubles.push({ kind: "not-a-directory" });
    return nothing;
  }
  const layout = layoutOf(dir);
  const { type, bavail, bsize, blocks } = fileSystem.statfs(dir);
  const network = options.platform === "linux" ? networkFileSystem(type) : undefined;
  if (network !== undefined) troubles.push({ kind: "network", type: network });
  const format = examineFormat(fileSystem, layout.formatFile, troubles);
  // Somebody else's directory has owners and modes of its own.
  if (format === undefined) return { ...nothing, freeBytes: bavail * bsize };
  for (const part of [dir, layout.blobsDir, layout.temporaryDir, layout.leasesDir, layout.spoolDir]) {
    examinePart(fileSystem, part, 0o700, true, options.uid, troubles);
  }
  examinePart(fileSystem, layout.databaseFile, 0o600, true, options.uid, troubles);
  for (const suffix of ["-wal", "-shm"]) {
    examinePart(fileSystem, layout.databaseFile + suffix, 0o600, false, options.uid, troubles);
  }
  const strays = [dir, layout.temporaryDir, layout.leasesDir]
    .filter((at) => identity(fileSystem, at) !== undefined)
    .flatMap((at) => straysIn(fileSystem, at, options.now));
  if (strays.length > 0) troubles.push({ kind: "temporaries", count: strays.length });
  if (identity(fileSystem, layout.databaseFile) !== undefined) {
    const problem = databaseProblem(layout.databaseFile);
    if (problem !== undefined) troubles.push({ kind: "database", path: layout.databaseFile, problem });
  }
  return {
    ...{ dir, format, troubles, freeBytes: bavail * bsize, reserveBytes: defaultReserveBytes(blocks * bsize) },
    spoolBytes: bytesBelow(fileSystem, layout.spoolDir),
  };
}

function lookAt(
  fileSystem: FileSystem,
  file: string,
  troubles: StateTrouble[],
): ReturnType<FileSystem["lstat"]> | undefined {
  try {
    return fileSystem.lstat(file);
  } catch (error) {
    if (!isMissing(error)) troubles.push({ kind: "unreadable", path: file });
    return undefined;
  }
}

function examineFormat(fileSystem: FileSystem, file: string, troubles: StateTrouble[]): number | undefined {
  try {
    const found = readFormat(fileSystem, file);
    if (found === undefined) troubles.push({ kind: "not-a-store" });
    else if (found > formatVersion) troubles.push({ kind: "newer-format", found, supported: formatVersion });
    return found;
  } catch (error) {
    troubles.push(
      isLooprigError(error, "storage.damaged") ? { kind: "format-damaged" } : { kind: "unreadable", path: file },
    );
    return undefined;
  }
}

function examinePart(
  fileSystem: FileSystem,
  file: string,
  mode: number,
  wanted: boolean,
  uid: number | undefined,
  troubles: StateTrouble[],
): void {
  const before = troubles.length;
  const stat = lookAt(fileSystem, file, troubles);
  if (stat === undefined) {
    if (wanted && troubles.length === before) troubles.push({ kind: "missing", path: file });
    return;
  }
  const owner = Number(stat.uid);
  if (uid !== undefined && owner !== uid) troubles.push({ kind: "foreign-owner", path: file, uid: owner });
  const found = Number(stat.mode) & 0o7777;
  if (!stat.isSymbolicLink() && (found & ~mode) !== 0)
    troubles.push({ kind: "open-to-others", path: file, mode: found });
}

function namesIn(fileSystem: FileSystem, dir: string): readonly string[] {
  try {
    return fileSystem.readdir(dir).map(String);
  } catch {
    // Told as missing or unreadable already.
    return [];
  }
}

function bytesBelow(fileSystem: FileSystem, dir: string): number {
  let bytes = 0;
  for (const name of namesIn(fileSystem, dir)) {
    const file = path.join(dir, name);
    try {
      const stat = fileSystem.lstat(file);
      bytes += stat.isDirectory() ? bytesBelow(fileSystem, file) : Number(stat.size);
    } catch {
      // Replaced while it was listed: stat indexes come and go.
    }
  }
  return bytes;
}

/** SQLite's own quick check. A database that others are busy with is no trouble. */
function databaseProblem(file: string): string | undefined {
  try {
    const sql = openSqlite(file);
    try {
      const said = sql.rows("PRAGMA quick_check(5)").map(([line]) => String(line));
      return said.length === 1 && said[0] === "ok" ? undefined : said.join("; ");
    } finally {
      sql.close();
    }
  } catch (error) {
    const busy = error instanceof Error && "kind" in error && error.kind === "busy";
    return busy ? undefined : error instanceof Error ? error.message : String(error);
  }
}
