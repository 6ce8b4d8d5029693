/** Two sessions work in one directory at the same time, and neither writes over what it has not seen. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { defineLoop, defineRig, scriptedModel } from "looprig";
import { openLocalStorage } from "looprig/storage/local";
import { fileTools } from "looprig/tools";

const dir = fs.mkdtempSync(path.join(os.tmpdir(), "shared-workspace-"));
const root = path.join(dir, "garden");
const beds = path.join(root, "beds.txt");
fs.mkdirSync(root);
fs.writeFileSync(beds, "north: empty\nsouth: empty\n");

const storage = await openLocalStorage({ dir: path.join(dir, "state") });

/** A gardener whose model plays the given steps. */
const start = (name, steps) =>
  defineRig({
    storage,
    loops: [defineLoop({ name, tools: [fileTools()], model: scriptedModel(steps) })],
    sharedWorkspace: { root },
    snapshots: "idle",
  }).startSession();

const read = { tool: "Read", input: { file_path: "beds.txt" } };
const edit = (before, after) => ({
  tool: "Edit",
  input: { file_path: "beds.txt", old_string: before, new_string: after },
});
const write = (content) => ({ tool: "Write", input: { file_path: "beds.txt", content } });

const ada = await start("ada", [
  { calls: [read] },
  { calls: [edit("north: empty", "north: leek")] },
  { text: "Leek is in the north bed." },
  // The whole file, as Ada last saw it, with one line changed.
  { calls: [write("north: onion\nsouth: empty\n")] },
  // The answer showed what Ben had planted meanwhile.
  { calls: [write("north: onion\nsouth: basil\n")] },
  { text: "Onion is in the north bed." },
]);
const ben = await start("ben", [
  { calls: [edit("south: empty", "south: basil")] },
  { text: "Basil is in the south bed." },
]);

try {
  await run(ada, "plant the north bed");
  await run(ben, "plant the south bed");
  await run(ada, "onions, please");
  console.log(fs.readFileSync(beds, "utf8").trimEnd());
} finally {
  await ada.close();
  await ben.close();
  await storage.close();
  fs.rmSync(dir, { recursive: true });
}

async function run(session, input) {
  const turn = await session.submit(input);
  for await (const part of turn) if (part.type === "tool-done") console.log(`${part.name}: ${part.outcome}`);
  const result = await turn.done;
  console.log(result.status === "done" ? result.text : result);
}
