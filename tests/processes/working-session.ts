/**
 * Runs one turn of a session whose script is given, and prints its events. The tool `Tell` prints a line, so that a test knows
 * where it is and can kill it there. argv: root, state directory, script as JSON, session to resume (or nothing)
 */
import fs from "node:fs";
import { bash, fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop, scriptedModel } from "../../src/loop/index.js";
import type { ScriptStep } from "../../src/loop/index.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { defineTool, jsonSchema } from "../../src/tool/index.js";

const [root = "", dir = "", script = "[]", resume = ""] = process.argv.slice(2);

const tell = defineTool({
  name: "Tell",
  description: "Says that the turn has come here, and stays",
  inputSchema: jsonSchema({ type: "object" }),
  execute: () => {
    console.log("here");
    return new Promise<string>(() => undefined);
  },
});
/** Replaces two files, somebody writes into one that was replaced, and the process is killed before it looks. */
const cut = defineTool({
  name: "Cut",
  description: "Is killed in the middle",
  requires: ["workspace"],
  inputSchema: jsonSchema({ type: "object" }),
  execute: async (_, { workspace: { records } }) => {
    for (const name of ["a", "b"]) {
      using permit = await records?.acquire([name]);
      const state = (text: string) => ({ kind: "file", mode: 0o644, bytes: Buffer.from(text) }) as const;
      const change = { path: name, before: state("0\n"), after: state("1\n") };
      await permit?.record([change], { replaced: `.looprig-${name}` });
      fs.renameSync(`${root}/${name}`, `${root}/.looprig-${name}`);
      fs.writeFileSync(`${root}/${name}`, "1\n", { mode: 0o644 });
    }
    fs.writeFileSync(`${root}/.looprig-a`, "theirs\n");
    // Larger than anything that is read whole.
    using permit = await records?.acquire(["c"]);
    const made = { kind: "file", mode: 0o644, bytes: Buffer.from("c\n") } as const;
    await permit?.record([{ path: "c", before: undefined, after: made }], { staged: [".looprig-c"] });
    fs.writeFileSync(`${root}/.looprig-c`, "");
    fs.truncateSync(`${root}/.looprig-c`, 70 * 2 ** 20);
    process.kill(process.pid, "SIGKILL");
    return "never";
  },
});
const rig = rigDefiner(() => ({}))({
  storage: await openLocalStorage({ dir }),
  loops: [
    defineLoop({
      name: "operator",
      model: scriptedModel(JSON.parse(script) as ScriptStep[]),
      tools: [fileTools(), bash({ needsApproval: false }), tell, cut],
    }),
  ],
  exclusiveWorkspace: { root },
  snapshots: "manual",
});
const session = resume === "" ? await rig.startSession() : await rig.resumeSession(resume);
console.log(session.id);
await (
  await session.submit("work")
).done;
await session.close();
console.log("done");
