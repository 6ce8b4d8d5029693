/**
 * Does one operation on a root, and is killed by SIGKILL right before the effect on the file system that was named. Prints
 * the number of effects when it lives to the end.
 *
 * argv: root, state directory, operation, number of the effect (0: none)
 */
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import type { Workspace } from "../../src/workspace/index.js";

const [root = "", dir = "", operation = "", last = "0"] = process.argv.slice(2);

let effects = 0;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
});

const operations: Readonly<Record<string, (workspace: Workspace) => Promise<unknown>>> = {
  exec: (workspace) =>
    workspace.exec(
      ["sh", "-c", "echo changed > a.txt; rm b.txt; mkdir made; echo f > made/f; rm -r old; ln -s a.txt old"],
      {
        stdio: "ignore",
      },
    ),
  undo: (workspace) => workspace.undo({ includeWindow: true }),
  redo: (workspace) => workspace.redo(),
  restore: (workspace) => workspace.restore("c1", { includeWindow: true }),
};

const storage = await openLocalStorage({ dir, fileSystem });
// The scene was copied, so its root is another directory than the one recorded.
const workspace = await openWorkspace(
  { root, storage, baseline: false, adoptRoot: true, command: operation },
  { fileSystem },
);
await operations[operation]?.(workspace);
await workspace.close();
await storage.close();
console.log(effects);
