/**
 * Reading and hashing of the files a capture does not know, by several threads at once: batches of small files, and stretches
 * of large ones so that both cores hash one large file together. What is learnt goes straight into the rows of the table.
 *
 * A lane settles only the plain case. Whatever it meets otherwise (a file that changed, vanished, cannot be opened) it leaves
 * to the careful reading of `capture.ts`, as it does with everything of a lane that died.
 */
import type { Directory } from "../core/index.js";
import { isLooprigError } from "../core/index.js";
import type { FileReader, ObjectSink } from "./file-reader.js";
import { isAsInRow } from "./look-lane.js";
import { TableDirectories } from "./table-directories.js";
import { headerBytes, rowBytes, rowFlags } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";
import { permissionMask } from "./stamps.js";
import type { Look } from "./stamps.js";

export interface ReadJob {
  /** Int32, `itemWords` per item. */
  readonly items: SharedArrayBuffer;
  /** Int32: the item each batch starts with, and one past the last. */
  readonly batches: SharedArrayBuffer;
  /** Int32 per item: an `outcomes` value. */
  readonly outcomes: SharedArrayBuffer;
  /** The digests of the pieces of large files. */
  readonly digests: SharedArrayBuffer;
  /** Int32: see `readCounters`. */
  readonly counters: SharedArrayBuffer;
}

/** Directory, row in it, first piece (-1: the whole of a small file), pieces, where their digests go. */
export const itemWords = 5;
export const wholeFile = -1;
export const outcomes = { none: 0, read: 1, another: 2 } as const;
export const readCounters = { next: 0, stop: 1, bytesInFlight: 2, words: 3 } as const;

/** A lane goes through the tree in order, so it needs few directories beside the ones above. */
const openMax = 32;

/** One lane's part; pauses after every file and piece. */
export function* readFiles(
  table: TreeTable,
  root: Directory,
  reader: FileReader,
  sink: ObjectSink | undefined,
  job: ReadJob,
): Generator<undefined, void> {
  const items = new Int32Array(job.items);
  const batches = new Int32Array(job.batches);
  const results = new Int32Array(job.outcomes);
  const counters = new Int32Array(job.counters);
  using directories = new TableDirectories(table, root, openMax);
  for (;;) {
    const batch = Atomics.add(counters, readCounters.next, 1);
    if (batch >= batches.length - 1) return;
    for (let item = batches[batch] as number; item < (batches[batch + 1] as number); item++) {
      if (Atomics.load(counters, readCounters.stop) !== 0) return;
      const at = item * itemWords;
      const directory = items[at] as number;
      const first = items[at + 2] as number;
      const row = table.record(directory) + headerBytes + (items[at + 1] as number) * rowBytes;
      const handle = tryOpen(directories, directory);
      if (handle === undefined) results[item] = outcomes.another;
      else if (first === wholeFile) {
        results[item] = readSmall(table, directory, row, handle, reader, sink);
      } else {
        const count = items[at + 3] as number;
        const digests = Buffer.from(job.digests, (items[at + 4] as number) * 32, count * 32);
        const isExpected = (look: Look) => isAsInRow(table, row, look);
        const stretch = { first, count, digests };
        const outcome = yield* reader.pieces(handle, table.name(directory, row), isExpected, stretch, sink);
        results[item] = outcome === "read" ? outcomes.read : outcomes.another;
      }
      yield;
    }
  }
}

function readSmall(
  table: TreeTable,
  directory: number,
  row: number,
  handle: Directory,
  reader: FileReader,
  sink: ObjectSink | undefined,
): number {
  const expected = { size: table.size(row), is: (look: Look) => isAsInRow(table, row, look) };
  const read = reader.small(handle, table.name(directory, row), expected, sink, table.earlier(row));
  if (read.kind !== "read") return outcomes.another;
  takeIn(table, row, read.look, read.digest, read.settled);
  return outcomes.read;
}

/** Puts what was read of a file into its row. */
export function takeIn(table: TreeTable, row: number, look: Look, digest: Uint8Array, settled: boolean): void {
  table.setStamps(row, look.size, look.mtimeMs, look.ctimeMs, look.ino);
  table.setMode(row, look.mode & permissionMask);
  table.setDigest(row, digest);
  const { identified, trusted, unread, present } = rowFlags;
  table.setFlags(row, settled ? identified | trusted : identified, unread | present | (settled ? 0 : trusted));
}

function tryOpen(directories: TableDirectories, directory: number): Directory | undefined {
  try {
    return directories.get(directory);
  } catch (error) {
    if (isLooprigError(error)) throw error;
    return undefined;
  }
}
