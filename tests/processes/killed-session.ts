/**
 * A session at work, in which the process is killed: right before the named effect on the file system, or stays at a point
 * that it prints, to be killed from outside. Goes to the end when neither comes, and prints the number of effects.
 *
 * argv: root, state directory, point, number of the effect (0: none)
 */
import fs from "node:fs";
import path from "node:path";
import { interceptFileSystem, nodeFileSystem } from "../../src/core/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";

const [root = "", dir = "", point = "", last = "0"] = process.argv.slice(2);

/** Says where it is, and does not go on. */
const stay = (): Promise<never> => {
  console.log(JSON.stringify({ id: session.id }));
  return new Promise(() => setInterval(() => undefined, 1_000));
};
const at = (where: string): boolean => where === point;

let effects = 0;
let boundary = false;
const fileSystem = interceptFileSystem(nodeFileSystem, ({ name, args, effect }) => {
  if (effect && ++effects === Number(last)) process.kill(process.pid, "SIGKILL");
  if (name !== "open" || !String(args[0]).endsWith("/f")) return;
  if (at("baseline") || (at("boundary") && boundary)) {
    fs.writeSync(1, `${JSON.stringify({ id: session.id })}\n`);
    process.kill(process.pid, "SIGKILL");
  }
});

const write = defineTool({
  name: "Put",
  description: "Writes a file",
  requires: ["workspace"],
  inputSchema: jsonSchema<{ path: string; text: string }>({ type: "object" }),
  execute: async (input, { workspace }) => {
    using permit = await workspace.coordinator.acquire({ operation: "path-mutation", paths: [input.path] });
    permit.assertHeld();
    fs.writeFileSync(path.join(workspace.root, input.path), input.text);
    if (at("tool")) await stay();
    return "wrote";
  },
});
const careful = defineTool({
  name: "Careful",
  description: "Asks first",
  inputSchema: jsonSchema({ type: "object" }),
  needsApproval: true,
  execute: () => "did it",
});

const script = scriptedModel([
  { calls: [{ tool: "Put", input: { path: "f", text: "1" } }] },
  {
    calls: at("gate")
      ? [{ tool: "Careful", input: { what: "it" } }]
      : [{ tool: "Put", input: { path: "g", text: "new" } }],
  },
  { text: "Done." },
]);
let calls = 0;
const model = {
  ...script,
  doStream: async (options: never) => {
    if (at("model") && ++calls === 2) await stay();
    return script.doStream(options);
  },
};

const rig = rigDefiner(() => ({ fileSystem }))({
  storage: await openLocalStorage({ dir, fileSystem }),
  loops: [defineLoop({ name: "operator", model, tools: [write, careful] })],
  exclusiveWorkspace: { root },
  snapshots: { trigger: "turn-done", priority: "required" },
});
const session = await rig.startSession({ root: "adopt" });
const turn = await session.submit("do it");
for await (const part of turn) {
  if (part.type === "gate-opened") await stay();
  // The file is looked into again by the capture that follows.
  if (part.type === "turn-done") {
    boundary = true;
    if (at("boundary")) fs.writeFileSync(path.join(root, "f"), "1");
  }
}
await turn.done;
await session.close();
console.log(effects);
