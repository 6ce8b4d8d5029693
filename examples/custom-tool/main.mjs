/** Plays a model that uses the tool: wrongly, in a way it can see, and then rightly. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { defineLoop, defineRig, scriptedModel } from "looprig";
import { createMemoryStorage } from "looprig/storage";
import { addEntry } from "./add-entry.mjs";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "custom-tool-"));
fs.writeFileSync(path.join(root, "CHANGELOG.md"), "# Changes\n\n## Added\n\n- Beds\n");

const rig = defineRig({
  storage: createMemoryStorage(), // `await openLocalStorage()` keeps sessions and snapshots on disk
  loops: [
    defineLoop({
      name: "writer",
      tools: [addEntry],
      model: scriptedModel([
        { calls: [{ tool: "AddEntry", input: { section: "Removed", entry: "Nettles" } }] },
        { calls: [{ tool: "AddEntry", input: { section: "Fixed", entry: "The leaking hose" } }] },
        { calls: [{ tool: "AddEntry", input: { section: "Added", entry: "A hose that is tight" } }] },
        { text: "Done." },
      ]),
    }),
  ],
  exclusiveWorkspace: { root },
  snapshots: "idle",
});

const session = await rig.startSession();
try {
  const turn = await session.submit("note what changed");
  for await (const part of turn) {
    if (part.type === "tool-done") console.log(`${part.outcome}: ${part.text}`);
  }
  console.log((await turn.done).status);
  console.log(fs.readFileSync(path.join(root, "CHANGELOG.md"), "utf8").trimEnd());

  await session.idle();
  const receipt = await session.workspace.undo();
  console.log(receipt.result, receipt.written);
} finally {
  await session.close();
  fs.rmSync(root, { recursive: true });
}
