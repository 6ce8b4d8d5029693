/** Each session has a directory of its own, which begins as a copy of a template. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { defineLoop, defineRig, openWorkspace, scriptedModel } from "looprig";
import { openLocalStorage } from "looprig/storage/local";
import { fileTools } from "looprig/tools";

const dir = fs.mkdtempSync(path.join(os.tmpdir(), "session-workspaces-"));
const template = path.join(dir, "template");
const baseDir = path.join(dir, "sessions");
fs.mkdirSync(template);
fs.writeFileSync(path.join(template, "letter.txt"), "Dear NAME,\n");

const storage = await openLocalStorage({ dir: path.join(dir, "state") });
try {
  // The seed is a captured tree. It needs capturing once; its ref can be kept anywhere.
  const workspace = await openWorkspace({ root: template, storage });
  const { ref: seed } = await workspace.checkpoint({ label: "template" });
  await workspace.close();

  const rigFor = (name) =>
    defineRig({
      storage,
      loops: [
        defineLoop({
          name: "writer",
          tools: [fileTools()],
          model: scriptedModel([
            { calls: [{ tool: "Edit", input: { file_path: "letter.txt", old_string: "NAME", new_string: name } }] },
            { text: `The letter to ${name} is ready.` },
          ]),
        }),
      ],
      sessionWorkspaces: { baseDir },
      snapshots: "turn-done",
    });

  const sessions = await Promise.all(["Ada", "Ben"].map((name) => rigFor(name).startSession({ seed })));
  const turns = await Promise.all(sessions.map((session) => session.submit("address the letter")));
  for (const { done } of turns) console.log((await done).status);
  for (const { id, workspace } of sessions) {
    console.log(path.relative(baseDir, workspace.root) === id, read(workspace.root));
  }
  console.log(read(template));

  // A directory that is gone is built again when its session is resumed, from what was captured of it.
  const [first] = sessions;
  for (const session of sessions) await session.close();
  fs.rmSync(first.workspace.root, { recursive: true });
  const again = await rigFor("nobody").resumeSession(first.id);
  console.log(read(again.workspace.root));
  await again.close();
} finally {
  await storage.close();
  fs.rmSync(dir, { recursive: true });
}

function read(root) {
  return fs.readFileSync(path.join(root, "letter.txt"), "utf8").trimEnd();
}
