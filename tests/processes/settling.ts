/**
 * Takes a root for writing when it is told to, and gives it back. Prints "ready", and then "settled" or the code of what refused it.
 *
 * argv: root, state directory, whether the root is shared
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { isLooprigError } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";

const [root = "", dir = "", shared = ""] = process.argv.slice(2);
const told = createInterface({ input: process.stdin });
const storage = await openLocalStorage({ dir });
console.log("ready");
await once(told, "line");
told.close();
try {
  const workspace = await openWorkspace({
    root,
    storage,
    baseline: false,
    shared: shared === "true",
    command: "settling",
  });
  await workspace.close();
  console.log("settled");
} catch (error) {
  if (!isLooprigError(error)) throw error;
  console.log(error.code);
}
await storage.close();
