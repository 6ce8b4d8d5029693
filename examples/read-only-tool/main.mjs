/** Two tools that look at the tree. They are given the path of the root, and nothing to change anything with. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { defineLoop, defineReadTools, defineRig, jsonSchema, scriptedModel, tool } from "looprig";
import { createMemoryStorage } from "looprig/storage";

const linesMax = 100;

export const notes = defineReadTools({
  name: "notes",
  produces: ["Questions", "Size"],
  // Runs once per loop; what is made here is shared by both tools.
  build: ({ readWorkspace }) => {
    const files = () =>
      fs
        .readdirSync(readWorkspace.root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(readWorkspace.root, path.join(entry.parentPath, entry.name)))
        .sort();
    return {
      Questions: tool({
        description: `Lists the lines that end with a question mark, at most ${linesMax}.`,
        inputSchema: jsonSchema({ type: "object", additionalProperties: false }),
        execute: async () => {
          const found = files().flatMap((file) =>
            fs
              .readFileSync(path.join(readWorkspace.root, file), "utf8")
              .split("\n")
              .flatMap((line, i) => (line.trim().endsWith("?") ? [`${file}:${i + 1}: ${line.trim()}`] : [])),
          );
          const shown = found.slice(0, linesMax);
          if (found.length > shown.length) shown.push(`[${found.length - shown.length} more]`);
          return shown.length === 0 ? "There are no questions." : shown.join("\n");
        },
      }),
      Size: tool({
        description: "Counts the files.",
        inputSchema: jsonSchema({ type: "object", additionalProperties: false }),
        execute: async () => `${files().length} files`,
      }),
    };
  },
});

const root = fs.mkdtempSync(path.join(os.tmpdir(), "read-only-tool-"));
fs.writeFileSync(path.join(root, "beds.txt"), "leek\nbasil?\n");
fs.mkdirSync(path.join(root, "shed"));
fs.writeFileSync(path.join(root, "shed", "tools.txt"), "rake\nwho has the hose?\n");

const rig = defineRig({
  storage: createMemoryStorage(),
  loops: [
    defineLoop({
      name: "reader",
      tools: [notes],
      model: scriptedModel([
        {
          calls: [
            { tool: "Questions", input: {} },
            { tool: "Size", input: {} },
          ],
        },
        { text: "Two questions are open." },
      ]),
    }),
  ],
  sharedWorkspace: { root }, // reading needs no lease of the root
  snapshots: "manual",
});

const session = await rig.startSession();
try {
  const turn = await session.submit("what is open?");
  for await (const part of turn) {
    if (part.type === "tool-done") console.log(`${part.name}\n${part.text}`);
  }
  const result = await turn.done;
  console.log(result.status === "done" && result.text);
} finally {
  await session.close();
  fs.rmSync(root, { recursive: true });
}
