/** `List`: the names in a directory. */
import { compareNames, displayName, errnoOf, isMissing, nameFromBytes, openBelow } from "../core/index.js";
import type { Directory, FileSystem, WorkspacePath } from "../core/index.js";
import { jsonSchema, tool } from "../tool/index.js";
import type { Tool } from "../tool/index.js";
import type { LoopFiles } from "./loop-files.js";
import { attempt, told } from "./present-file.js";
import { missing } from "./read.js";

const entriesMax = 1_000;

export interface ListInput {
  readonly path?: string;
}

export const list = (files: LoopFiles): Tool =>
  tool({
    description: `Lists a directory of the workspace: directories end in "/", links show where they point, files their bytes. At most ${entriesMax} entries.`,
    inputSchema: jsonSchema<ListInput>({
      type: "object",
      properties: { path: { type: "string", description: "Default the root of the workspace" } },
      additionalProperties: false,
    }),
    execute: ({ path: given = "." }) => {
      const path = files.locate(given);
      using top = files.open();
      using directory = openDirectory(top, path);
      const names = attempt("list", path, () => directory.names()).sort(compareNames);
      if (names.length === 0) return `[${displayName(path || ".")} is empty]`;
      const lines = names.slice(0, entriesMax).map((name) => entry(files.fileSystem, directory, name));
      if (names.length > entriesMax) {
        lines.push(`[${names.length - entriesMax} of ${names.length} entries are left out; use Glob with a pattern]`);
      }
      return lines.join("\n");
    },
  });

/** The directory at `path`, in words of ours when it cannot be opened. */
export function openDirectory(top: Directory, path: WorkspacePath): Directory {
  try {
    return openBelow(top, path);
  } catch (error) {
    throw errnoOf(error) === "ENOENT" ? missing(path) : told("list", path, error);
  }
}

function entry(fileSystem: FileSystem, directory: Directory, name: string): string {
  const shown = displayName(name);
  try {
    const stat = directory.lstat(name);
    if (stat.isDirectory()) return `${shown}/`;
    if (stat.isSymbolicLink()) {
      return `${shown} -> ${displayName(nameFromBytes(fileSystem.readlink(directory.at(name))))}`;
    }
    return stat.isFile() ? `${shown}  ${stat.size}` : `${shown}  [special]`;
  } catch (error) {
    if (isMissing(error)) return `${shown}  [gone]`;
    return `${shown}  [unreadable]`;
  }
}
