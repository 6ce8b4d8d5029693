/** Starts a session whose model runs a command that kills this process. argv: root, state directory */
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";

const [root = "", dir = ""] = process.argv.slice(2);

const command = "(sleep 60 &); kill -9 $PPID; sleep 60";
const rig = rigDefiner(() => ({}))({
  storage: await openLocalStorage({ dir }),
  loops: [
    defineLoop({
      name: "operator",
      model: scriptedModel([{ calls: [{ tool: "Bash", input: { command } }] }]),
      tools: [fileTools(), bash({ needsApproval: false })],
    }),
  ],
  exclusiveWorkspace: { root },
  snapshots: "manual",
});
const session = await rig.startSession();
console.log(session.id);
await (
  await session.submit("do it")
).done;
