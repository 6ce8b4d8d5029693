/**
 * What a look at a file says, as plain numbers, and when that can be trusted to show every later write.
 *
 * Times are milliseconds with their fraction, as Node gives them: a double tells apart a quarter of a microsecond today, far
 * below what the racy-file margin allows for. `BigIntStats` cost a tenth more per look and a heap object per field.
 */
import fs from "node:fs";
import type { BigIntStats } from "node:fs";
import { isMissing, nodeFileSystem } from "../core/index.js";
import type { FileSystem, FsPath } from "../core/index.js";

export interface Look {
  readonly mode: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
  readonly dev: number;
}

const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK } = fs.constants;

export const permissionMask = 0o777;
export const isRegular = (mode: number): boolean => (mode & S_IFMT) === S_IFREG;
export const isDirectory = (mode: number): boolean => (mode & S_IFMT) === S_IFDIR;
export const isLink = (mode: number): boolean => (mode & S_IFMT) === S_IFLNK;

export const isSameLook = (a: Look, b: Look): boolean =>
  a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino && a.mode === b.mode;

/** Looks through a file system. `at` answers undefined where nothing stands; it follows no link. */
export interface Looker {
  at(path: FsPath): Look | undefined;
  opened(fd: number): Look;
}

const ifThere = { throwIfNoEntry: false } as const;

const nodeLooker: Looker = {
  at: (path) => {
    const stats = fs.lstatSync(path, ifThere);
    return stats;
  },
  opened: (fd) => fs.fstatSync(fd),
};

/** The fast calls for the real file system; for any other value its own, so that what it plays is seen. */
export function lookerOf(fileSystem: FileSystem): Looker {
  if (fileSystem === nodeFileSystem) return nodeLooker;
  return {
    at: (path) => {
      try {
        return toLook(fileSystem.lstat(path));
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    opened: (fd) => toLook(fileSystem.fstat(fd)),
  };
}

export const toLook = ({ mode, size, mtimeNs, ctimeNs, ino, dev }: BigIntStats): Look => ({
  mode: Number(mode),
  size: Number(size),
  mtimeMs: milliseconds(mtimeNs),
  ctimeMs: milliseconds(ctimeNs),
  ino: Number(ino),
  dev: Number(dev),
});

const nsPerSecond = 1_000_000_000n;

/** The sum Node makes, so that looks of both kinds agree to the last bit. */
const milliseconds = (ns: bigint): number => Number(ns / nsPerSecond) * 1000 + Number(ns % nsPerSecond) / 1_000_000;

/**
 * Stamps are taken when a write begins, from a clock that ticks every 1 to 10 ms; its bytes arrive later, much later when
 * the writer loses the processor in between. So the margin allows a second, and more for what one call may write.
 */
const marginMs = 1000;
const slowestWriteBytesPerMs = (50 * 1024 * 1024) / 1000;
/** Where a stamp shows no part of a second it may be rounded down by up to 2 s (FAT). */
const wholeSecondMs = 2000;

/**
 * Whether a write that is not yet in what is read after `lookedAtMs` is sure to change the stamps: the newer of them is
 * older than that moment by more than they can be off. Stamps in the future, where the clock was set back, are never settled.
 */
export function isSettled(
  { mtimeMs, ctimeMs, size }: Pick<Look, "mtimeMs" | "ctimeMs" | "size">,
  lookedAtMs: number,
): boolean {
  const wholeSecond = mtimeMs % 1000 === 0 || ctimeMs % 1000 === 0;
  const margin = marginMs + size / slowestWriteBytesPerMs + (wholeSecond ? wholeSecondMs : 0);
  return Math.max(mtimeMs, ctimeMs) + margin < lookedAtMs;
}
