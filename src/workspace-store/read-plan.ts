/**
 * What a capture has to read, laid out so that several lanes share it by a counter: batches of small files, and stretches of
 * the large ones. In typed arrays of known length and with pauses, since there can be half a million files.
 *
 * Nobody else changes the table meanwhile, and nothing here does.
 */
import { pieceBytes, pieceCount } from "./object-ids.js";
import { itemWords, wholeFile } from "./read-lane.js";
import { kinds, rowBytes, rowFlags } from "./table-layout.js";
import type { TreeTable } from "./tree-table.js";

/** How much one lane takes at a time. */
const batchFiles = 32;
const batchBytes = 512 * 1024;
const batchPieces = 8;
/** Rows between two looks at the clock. */
const rowsBetweenPauses = 256;

type Pace = () => Promise<void> | undefined;

export interface FilePlace {
  readonly directory: number;
  readonly name: string;
}

export interface LargeFile extends FilePlace {
  readonly row: number;
  readonly size: number;
  /** Where its digests start among all, and its items. */
  readonly place: number;
  readonly items: readonly number[];
}

/** What is to be read: files and their bytes, in how many stretches, and the pieces of the large ones. */
export interface Unread {
  readonly files: number;
  readonly bytes: number;
  readonly items: number;
  readonly pieces: number;
}

export interface ReadPlan {
  readonly items: Int32Array;
  readonly batches: Int32Array;
  readonly results: Int32Array;
  readonly digests: Buffer;
  readonly large: readonly LargeFile[];
}

/** The digests of the pieces of a large file, end to end. */
export const idsOf = ({ place, size }: LargeFile, digests: Buffer): Buffer =>
  digests.subarray(place * 32, (place + pieceCount(size)) * 32);

/** Counts the files whose rows are marked unread. */
export async function unreadIn(table: TreeTable, pace: Pace): Promise<Unread> {
  let files = 0;
  let bytes = 0;
  let items = 0;
  let pieces = 0;
  await forUnread(table, pace, (_directory, row) => {
    const size = table.size(row);
    files++;
    bytes += size;
    const own = size <= pieceBytes ? 0 : pieceCount(size);
    items += Math.max(1, Math.ceil(own / batchPieces));
    pieces += own;
  });
  return { files, bytes, items, pieces };
}

/** Lays out what `unreadIn` counted, or of it only the files in the rows `only`. */
export async function planReading(
  table: TreeTable,
  unread: Unread,
  pace: Pace,
  only?: ReadonlySet<number>,
): Promise<ReadPlan> {
  const items = sharedWords(unread.items * itemWords);
  const starts = new Int32Array(unread.items + 1);
  const large: LargeFile[] = [];
  let count = 0;
  let batches = 0;
  let pieces = 0;
  let filesInBatch = 0;
  let bytesInBatch = 0;
  const closeBatch = (): void => {
    if (count > (starts[batches] as number)) starts[++batches] = count;
    filesInBatch = 0;
    bytesInBatch = 0;
  };
  const add = (directory: number, index: number, first: number, own: number, place: number): number => {
    const at = count * itemWords;
    items[at] = directory;
    items[at + 1] = index;
    items[at + 2] = first;
    items[at + 3] = own;
    items[at + 4] = place;
    return count++;
  };
  await forUnread(table, pace, (directory, row, index) => {
    if (only !== undefined && !only.has(row)) return;
    const size = table.size(row);
    if (size <= pieceBytes) {
      add(directory, index, wholeFile, 0, 0);
      bytesInBatch += size;
      if (++filesInBatch >= batchFiles || bytesInBatch >= batchBytes) closeBatch();
      return;
    }
    closeBatch();
    const place = pieces;
    const own: number[] = [];
    for (let first = 0; first < pieceCount(size); first += batchPieces) {
      const stretch = Math.min(batchPieces, pieceCount(size) - first);
      own.push(add(directory, index, first, stretch, pieces));
      pieces += stretch;
      closeBatch();
    }
    large.push({ directory, name: table.name(directory, row), row, size, place, items: own });
  });
  closeBatch();
  const shared = sharedWords(batches + 1);
  shared.set(starts.subarray(0, batches + 1));
  return {
    items,
    batches: shared,
    results: sharedWords(count),
    digests: Buffer.from(new SharedArrayBuffer(pieces * 32)),
    large,
  };
}

/** Visits all rows that are marked unread, with pauses. Nobody else changes the table meanwhile. */
async function forUnread(
  table: TreeTable,
  pace: Pace,
  visit: (directory: number, row: number, index: number) => void,
): Promise<void> {
  let sincePause = 0;
  for (let directory = 0; directory < table.directories; directory++) {
    if (!table.has(directory)) continue;
    const count = table.rowCount(directory);
    for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
      if (table.kind(row) === kinds.file && (table.flags(row) & rowFlags.unread) !== 0) visit(directory, row, i);
      if (++sincePause < rowsBetweenPauses) continue;
      sincePause = 0;
      await pace();
    }
  }
}

const sharedWords = (count: number): Int32Array => new Int32Array(new SharedArrayBuffer(count * 4));
