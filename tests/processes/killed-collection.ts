/**
 * Collects in a state directory, and is killed by SIGKILL right before the effect on the file system that was named.
 *
 * argv: state directory, number of the effect (0: none)
 */
import { interceptFileSystem, mintSessionId, nodeFileSystem } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { createWorkspaceStore } from "../../src/workspace-store/index.js";

const [dir = "", last = "0"] = process.argv.slice(2);

let effects = 0;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
});

const storage = await openLocalStorage({ dir, fileSystem });
const claim = { sessionId: mintSessionId(), command: "killed collection" };
await createWorkspaceStore(storage, { fileSystem }).collect({ claim, graceMs: 0 });
await storage.close();
