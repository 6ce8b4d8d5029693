/**
 * The quick look: for every row of a table, whether what stands at its path still has the stamps of the row. This is what a
 * capture of an unchanged tree consists of, so it does nothing but call lstat on known paths; directories whose own
 * stamps are unchanged are not even listed. Several threads share the work by a counter.
 *
 * It goes by paths and not by handles, which is twice as fast and may be misled by a link put in the way. That is harmless:
 * it only ever answers "as it was", by inode and change time, and everything else is left to a careful look (`walk.ts`).
 */
import { isEscapedName, toFsPath } from "../core/index.js";
import { isDirectory, permissionMask } from "./stamps.js";
import type { Look, Looker } from "./stamps.js";
import { directoryFlags, kinds, looks, rowBytes, rowFlags } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

export interface LookJob {
  /** Absolute path of the root. */
  readonly root: string;
  readonly dev: number;
  /** Int32: the next directory, whether to stop, how many entries were looked at. */
  readonly counters: SharedArrayBuffer;
}

export const lookCounters = { next: 0, stop: 1, seen: 2 } as const;

const directoriesAtOnce = 16;
const rowsBetweenPauses = 64;
/** Paths beyond it are left to the careful look, which needs none. */
const pathBytesMax = 3800;

/** One lane's part. Pauses now and then, where a lane that shares its thread with others should let them run. */
export function* lookAround(table: TreeTable, looker: Looker, job: LookJob): Generator<undefined, void> {
  const counters = new Int32Array(job.counters);
  const prefixes = new Prefixes(table, job.root);
  let sincePause = 0;
  for (;;) {
    const first = Atomics.add(counters, lookCounters.next, directoriesAtOnce);
    if (first >= table.directories) return;
    const end = Math.min(first + directoriesAtOnce, table.directories);
    for (let directory = first; directory < end; directory++) {
      if (!table.has(directory)) continue;
      const prefix = prefixes.of(directory);
      if (prefix === undefined) continue;
      const isRaw = isEscapedName(prefix);
      table.setDirectoryLook(
        directory,
        lookAtDirectory(table, looker, job, directory, isRaw ? toFsPath(prefix) : prefix),
      );
      const count = table.rowCount(directory);
      let files = 0;
      for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
        const kind = table.kind(row);
        if (kind === kinds.directory) continue;
        files++;
        table.setLook(row, lookAtRow(table, looker, directory, row, kind, prefix, isRaw));
        if (++sincePause < rowsBetweenPauses) continue;
        sincePause = 0;
        if (Atomics.load(counters, lookCounters.stop) !== 0) return;
        yield;
      }
      Atomics.add(counters, lookCounters.seen, files);
      if (++sincePause < rowsBetweenPauses) continue;
      sincePause = 0;
      if (Atomics.load(counters, lookCounters.stop) !== 0) return;
      yield;
    }
  }
}

function lookAtDirectory(
  table: TreeTable,
  looker: Looker,
  job: LookJob,
  directory: number,
  path: string | Buffer,
): number {
  if ((table.directoryFlags(directory) & directoryFlags.listed) === 0) return looks.differs;
  const found = tryLook(looker, path);
  const isSame =
    found !== undefined &&
    isDirectory(found.mode) &&
    found.ino === table.directoryIno(directory) &&
    found.mtimeMs === table.directoryMtime(directory) &&
    found.ctimeMs === table.directoryCtime(directory) &&
    found.dev === job.dev;
  return isSame ? looks.same : looks.differs;
}

function lookAtRow(
  table: TreeTable,
  looker: Looker,
  directory: number,
  row: number,
  kind: number,
  prefix: string,
  isRaw: boolean,
): number {
  const flags = table.flags(row);
  if ((flags & rowFlags.trusted) === 0 || (flags & rowFlags.always) !== 0) return looks.differs;
  // What was left out by its name or kind is still that, unless the directory's own stamps say otherwise.
  if (kind === kinds.omitted && table.ctime(row) === 0) return looks.same;
  const path = prefix + table.name(directory, row);
  const found = tryLook(looker, isRaw || (flags & rowFlags.rawName) !== 0 ? toFsPath(path) : path);
  return found !== undefined && isAsInRow(table, row, found) ? looks.same : looks.differs;
}

/** Whether the row speaks of what was found. ctime is what gives away an edit whose mtime was set back. */
export function isAsInRow(table: TreeTable, row: number, found: Look): boolean {
  return (
    found.ctimeMs === table.ctime(row) &&
    found.mtimeMs === table.mtime(row) &&
    found.size === table.size(row) &&
    found.ino === table.ino(row) &&
    (found.mode & permissionMask) === table.mode(row)
  );
}

function tryLook(looker: Looker, path: string | Buffer): Look | undefined {
  try {
    return looker.at(path);
  } catch {
    // Why it failed is found out by the careful look.
    return undefined;
  }
}

/** The paths of directories with a slash at the end, each made once; undefined for those too long for a system call. */
export class Prefixes {
  readonly #table: TreeTable;
  readonly #known: (string | undefined)[];

  constructor(table: TreeTable, root: string) {
    this.#table = table;
    this.#known = [root.endsWith("/") ? root : `${root}/`];
  }

  of(directory: number): string | undefined {
    const missing: number[] = [];
    let at = directory;
    for (; !(at in this.#known); at = this.#table.parent(at)) missing.push(at);
    let prefix = this.#known[at];
    for (let next = missing.pop(); next !== undefined; next = missing.pop()) {
      prefix = prefix === undefined ? undefined : `${prefix}${this.#table.nameOfDirectory(next)}/`;
      if (prefix !== undefined && prefix.length > pathBytesMax / 3 && Buffer.byteLength(prefix) > pathBytesMax)
        prefix = undefined;
      this.#known[next] = prefix;
    }
    return prefix;
  }
}
