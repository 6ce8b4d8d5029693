/** One entry of a captured tree as a line: mode, size, path. Pure. */
import { displayName } from "../core/index.js";
import type { ListedEntry } from "./tree-listing.js";
import { displayPath } from "./spelling.js";
import type { Style } from "./style.js";

const sizeWidth = 12;

export function entryLine({ path, entry }: ListedEntry, style: Style): string {
  switch (entry.kind) {
    case "file":
      return `${modeText(entry.mode)}  ${String(entry.size).padStart(sizeWidth)}  ${displayPath(path)}\n`;
    case "directory":
      return `${modeText(entry.mode)}  ${"-".padStart(sizeWidth)}  ${displayPath(path, "directory")}\n`;
    case "symlink":
      return `link  ${"-".padStart(sizeWidth)}  ${displayPath(path)} -> ${displayName(entry.target)}\n`;
    case "omitted":
      return style.dim(`none  ${"-".padStart(sizeWidth)}  ${displayPath(path)}   left out: ${entry.class}`) + "\n";
    default:
      return entry satisfies never;
  }
}

/** Permission bits as chmod reads them. */
export const modeText = (mode: number): string => mode.toString(8).padStart(4, "0");
