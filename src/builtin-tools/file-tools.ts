/** The family of file tools: built once per loop, over one view of its files. */
import { nodeFileSystem } from "../core/index.js";
import type { FileSystem } from "../core/index.js";
import { builtIn, defineTools } from "../tool/index.js";
import type { ToolDefinition } from "../tool/index.js";
import { edit } from "./edit.js";
import { glob } from "./glob.js";
import { grep } from "./grep.js";
import { list } from "./list.js";
import { LoopFiles } from "./loop-files.js";
import { read } from "./read.js";
import { write } from "./write.js";

/** What `fileTools()` produces. */
export type FileToolName = "Read" | "Write" | "Edit" | "List" | "Glob" | "Grep";

/** `Read`, `Write`, `Edit`, `List`, `Glob` and `Grep`. They need no approval: what they change can be undone (T5). */
export const fileTools = (): ToolDefinition<FileToolName, readonly ["workspace"]> => fileToolsOn(nodeFileSystem);

/** The same on a given file system. */
export function fileToolsOn(fileSystem: FileSystem): ToolDefinition<FileToolName, readonly ["workspace"]> {
  const definition = defineTools({
    name: "files",
    produces: ["Read", "Write", "Edit", "List", "Glob", "Grep"],
    requires: ["workspace"],
    build: ({ workspace }) => {
      const files = new LoopFiles(workspace, fileSystem);
      return {
        Read: read(files),
        Write: write(files),
        Edit: edit(files),
        List: list(files),
        Glob: glob(files),
        Grep: grep(files),
      };
    },
  });
  return builtIn(definition, { version: 1 });
}
