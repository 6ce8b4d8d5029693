/**
 * Captures a root into a state directory, and is killed by SIGKILL right before the effect on the file system that was named.
 * Prints the number of effects when it lives to the end.
 *
 * argv: root, state directory, number of the effect (0: none)
 */
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [root = "", dir = "", last = "0"] = process.argv.slice(2);

let effects = 0;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
});
const storage = await openLocalStorage({ dir, fileSystem });
await createWorkspaceStore(storage, { fileSystem }).capture({ root, pin: { owner: "killed", id: "c1" } });
await storage.close();
console.log(effects);
