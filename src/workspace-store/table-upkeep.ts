/** What is done to a table as a whole between captures: taking note of what changed in it, and squeezing waste out. */
import { RowList } from "./row-list.js";
import { directoryFlags, kinds, rowBytes, rowFlags } from "./table-layout.js";
import { TreeTable } from "./tree-table.js";

const rowsBetweenPauses = 512;

/** What changed since it was saved: directories with other rows, and directories of which some rows are others. */
export interface Unsaved {
  readonly relisted: readonly number[];
  readonly changed: readonly RowChanges[];
}
export interface RowChanges {
  readonly directory: number;
  /** Whether more than flags of rows changed. A row and the header above it, which has the id of all rows, are saved together. */
  readonly withHead: boolean;
  /** Their places among the rows of the directory. */
  readonly rows: readonly number[];
  /** Of these only the flags are others. */
  readonly reflagged: readonly number[];
}

/**
 * The directories that changed since they were saved, and marks them saved: those to be written as records, and those of
 * which some rows differ, by their places.
 */
export function takeUnsaved(table: TreeTable): Unsaved {
  const relisted: number[] = [];
  const changed: RowChanges[] = [];
  for (let directory = 0; directory < table.directories; directory++) {
    if (!table.has(directory)) continue;
    const flags = table.directoryFlags(directory);
    const rows: number[] = [];
    const reflagged: number[] = [];
    const count = table.rowCount(directory);
    for (let i = 0, row = table.rows(directory); i < count; i++, row += rowBytes) {
      const own = table.flags(row) & (rowFlags.unsaved | rowFlags.reflagged);
      if (own === 0) continue;
      table.setFlags(row, 0, own);
      if ((own & rowFlags.unsaved) !== 0) rows.push(i);
      else reflagged.push(i);
    }
    if ((flags & directoryFlags.relisted) !== 0) relisted.push(directory);
    else {
      const withHead = rows.length > 0 || (flags & directoryFlags.unsaved) !== 0;
      if (!withHead && reflagged.length === 0) continue;
      changed.push({ directory, withHead, rows, reflagged });
    }
    table.setDirectoryFlags(directory, 0, directoryFlags.unsaved | directoryFlags.relisted);
  }
  return { relisted, changed };
}

/** The same tree without waste, directories numbered anew in the order of a walk. Pauses now and then. */
export function* compacted(wasteful: TreeTable): Generator<undefined, TreeTable> {
  let sincePause = 0;
  const table = TreeTable.empty();
  const list = new RowList();
  const stack: { readonly from: number; readonly to: number }[] = [{ from: 0, to: 0 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { from, to } = next;
    const below: typeof stack = [];
    list.clear();
    const count = wasteful.rowCount(from);
    for (let i = 0, row = wasteful.rows(from); i < count; i++, row += rowBytes) {
      const copy = list.copyRow(wasteful, from, row);
      if (wasteful.kind(row) !== kinds.directory) continue;
      const child = table.addDirectory(to, i);
      list.setExtra(copy, child);
      below.push({ from: wasteful.extra(row), to: child });
    }
    table.setRows(to, list);
    table.setDirectoryStamps(
      to,
      wasteful.directoryIno(from),
      wasteful.directoryMtime(from),
      wasteful.directoryCtime(from),
    );
    wasteful.bytes.copy(table.bytes, table.treeId(to), wasteful.treeId(from), wasteful.treeId(from) + 32);
    table.setDirectoryFlags(to, wasteful.directoryFlags(from) | directoryFlags.relisted);
    table.setDirectoryLook(to, wasteful.directoryLook(from));
    for (let child = below.pop(); child !== undefined; child = below.pop()) stack.push(child);
    sincePause += count + 1;
    if (sincePause < rowsBetweenPauses) continue;
    sincePause = 0;
    yield;
  }
  return table;
}
