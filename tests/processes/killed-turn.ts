/**
 * Runs one turn of a session, and is killed by SIGKILL right before the effect on the file system that was named: of its
 * store, its journal or its file tools. Prints the number of effects when it lives to the end.
 *
 * argv: root, state directory, script as JSON, number of the effect (0: none)
 */
import { bash } from "../../src/builtin-tools/index.js";
import { fileToolsOn } from "../../src/builtin-tools/file-tools.js";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";

const [root = "", dir = "", script = "[]", last = "0"] = process.argv.slice(2);

let effects = 0;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
});
const model = scriptedModel(JSON.parse(script) as ScriptStep[]);
const session = await rigDefiner(() => ({ fileSystem }))({
  storage: await openLocalStorage({ dir, fileSystem }),
  loops: [defineLoop({ name: "operator", model, tools: [fileToolsOn(fileSystem), bash({ needsApproval: false })] })],
  exclusiveWorkspace: { root },
  snapshots: "manual",
}).startSession();
const { status } = await (await session.submit("work")).done;
await session.close();
console.log(status, effects);
