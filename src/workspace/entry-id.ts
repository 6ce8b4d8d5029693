/**
 * What stands at a path, as one string of a journal (E3): content, kind and permission bits. docs/formats/journal.md.
 */
import { emptyDirectoryId } from "../workspace-store/index.js";
import type { ContentId, TreeEntry } from "../workspace-store/index.js";

export function entryId(entry: TreeEntry | undefined): string | null {
  if (entry === undefined) return null;
  switch (entry.kind) {
    case "file":
      return `file:${entry.mode.toString(8)}:${entry.size}:${entry.id}`;
    case "directory":
      return `directory:${entry.mode.toString(8)}`;
    case "symlink":
      return `symlink:${entry.target}`;
    case "omitted":
      return `omitted:${entry.class}`;
    default:
      return entry satisfies never;
  }
}

/** What a later release spells in a way of its own reads as left out: it is neither written nor deleted. */
const unknown: TreeEntry = { kind: "omitted", class: "special" };

export function parseEntryId(id: string | null): TreeEntry | undefined {
  if (id === null) return undefined;
  const file = /^file:([0-7]{1,3}):(\d{1,15}):([0-9a-f]{64})$/.exec(id);
  if (file !== null) {
    const [, mode = "", size = "", content = ""] = file;
    return { kind: "file", mode: parseInt(mode, 8), size: Number(size), id: content as ContentId };
  }
  const directory = /^directory:([0-7]{1,3})$/.exec(id);
  // Which names it holds is no part of what is recorded of it.
  if (directory !== null) return { kind: "directory", mode: parseInt(directory[1] ?? "", 8), id: emptyDirectoryId };
  return id.startsWith("symlink:") ? { kind: "symlink", target: id.slice("symlink:".length) } : unknown;
}
