/**
 * Starts a session from a seed and is killed by SIGKILL right before the effect on the file system that was named. Prints
 * the number of effects when it lives to the end. argv: root, state directory, seed, number of the effect (0: none)
 */
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import type { SnapshotRef } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";

const [root = "", dir = "", seed = "", last = "0"] = process.argv.slice(2);

let effects = 0;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
});
const session = await rigDefiner(() => ({ fileSystem }))({
  storage: await openLocalStorage({ dir, fileSystem }),
  loops: [defineLoop({ name: "operator", model: scriptedModel([]) })],
  exclusiveWorkspace: { root },
  snapshots: "manual",
}).startSession({ seed: seed as SnapshotRef });
await session.close();
console.log(effects);
