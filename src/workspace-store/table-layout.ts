/**
 * How a tree lies in memory and in the stat index, byte by byte: a record per directory. Owned by `tree-table.ts`.
 *
 *   record  header · rows · the bytes of names and link targets · up to a multiple of 8
 *   header  u32 number · u32 rows · f64 ino, mtime, ctime · tree id · u32 bytes of names · u32 bytes of the record · u8 flags, look
 *   row     f64 size, mtime, ctime, ino · digest · u32 place of the name · u32 link length or number of the directory
 *           · u16 length of the name · u16 mode · u8 kind, omission class, flags, look
 *
 * Fields are little-endian, as on every machine Node runs on; the stat index says so and is useless on another.
 */

/** The numbers of the tree encoding (tree-codec.ts), frozen with it. */
export const kinds = { file: 1, directory: 2, symlink: 3, omitted: 4 } as const;

/** What the look of this capture found of a row, or of a directory's own stamps. */
export const looks = { none: 0, same: 1, differs: 2 } as const;

export const rowFlags = {
  /** While the stamps are these, so is the digest, target or class. */
  trusted: 1,
  /** Its name, or one above it, is not UTF-8. */
  rawName: 2,
  /** Is looked at with care every time: its stamps say nothing. */
  always: 4,
  /** The digest is that of the content, trusted beyond this capture or not. Without it, it is what the file held before, or zeros. */
  identified: 8,
  /** The store has its content, as far as this store value knows. Transient. */
  present: 16,
  /** Its content must be read. Transient. */
  unread: 32,
  /** It says something else than when it was saved. Transient, and kept by the table itself, as is the next. */
  unsaved: 64,
  /** Its flags are others than when it was saved. */
  reflagged: 128,
} as const;

export const directoryFlags = {
  /** While its stamps are these, so are its names. */
  listed: 1,
  /** The tree id is that of its rows. */
  encoded: 2,
  /** The store has its node, as far as this store value knows. Transient. */
  present: 16,
  /** Its header says something else than when it was saved. Transient, and kept by the table itself, as is the next. */
  unsaved: 32,
  /** Its rows were put together anew since it was saved. */
  relisted: 64,
} as const;

/** Of a row: what is worth saving by itself. That a digest is that of the content says nothing to others unless the stamps are trusted. */
export const lastingRowFlags = rowFlags.trusted | rowFlags.rawName | rowFlags.always;

/** Mean nothing beyond one capture, or one store value. */
export const transientFlags = 16 | 32 | 64 | 128;

export const headerBytes = 80;
export const rowBytes = 80;

export const header = {
  number: 0,
  rows: 4,
  ino: 8,
  mtime: 16,
  ctime: 24,
  id: 32,
  names: 64,
  bytes: 68,
  flags: 72,
  look: 73,
};
export const field = {
  size: 0,
  mtime: 8,
  ctime: 16,
  ino: 24,
  digest: 32,
  nameAt: 64,
  extra: 68,
  nameLength: 72,
  mode: 74,
  kind: 76,
  class: 77,
  flags: 78,
  look: 79,
} as const;
