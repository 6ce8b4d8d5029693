/** Starts a session whose first call waits for a yes, prints the session and the question, and stays. argv: root, state directory */
import { z } from "zod";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { defineTool } from "../../src/tool/index.js";

const [root = "", dir = ""] = process.argv.slice(2);

const careful = defineTool({
  name: "Careful",
  description: "Asks first",
  inputSchema: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `did ${what}`,
});
const rig = rigDefiner(() => ({}))({
  storage: await openLocalStorage({ dir }),
  loops: [
    defineLoop({
      name: "operator",
      model: scriptedModel([{ calls: [{ tool: "Careful", input: { what: "it" } }] }]),
      tools: [careful],
    }),
  ],
  exclusiveWorkspace: { root },
  snapshots: "idle",
});
const session = await rig.startSession();
for await (const part of await session.submit("do it")) {
  if (part.type === "gate-opened") console.log(JSON.stringify({ id: session.id, gateId: part.gateId }));
}
