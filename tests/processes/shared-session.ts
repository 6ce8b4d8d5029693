/**
 * A whole session in a process of its own, over a root it shares: its agent adds lines to the files it is told, in front of
 * their last line, by turns with Write (the whole file, composed from what it read) and with Edit. What it was refused it
 * does again. For each line of input ("log 4": a file, and how many calls of Edit a step makes) it takes one turn, and prints
 * how often it was refused.
 *
 * argv: root, state directory, name, lines per file
 */
import { createInterface } from "node:readline";
import { fileTools } from "../../src/builtin-tools/index.js";
import { defineLoop } from "../../src/loop/index.js";
import { calls, fakeModel, finish, says } from "../../src/loop/testing/models.js";
import type { CallOptions } from "../../src/loop/testing/models.js";
import { rigDefiner } from "../../src/rig/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";

const [root = "", dir = "", name = "", lines = "0"] = process.argv.slice(2);

let file = "";
/** Lines that one step puts in place, by as many calls of Edit side by side. */
let editsMax = 1;
/** Lines that are not in the file yet. */
let todo: string[] = [];
let refused = 0;
/** What the last step called, and which line each call was to add. */
let called: { readonly tool: "Read" | "Write" | "Edit"; readonly lines: readonly string[] } | undefined;

/** What the calls of the last step came to, in their order; none at the beginning of a turn. */
function answersIn({ prompt }: CallOptions): readonly { readonly ok: boolean; readonly text: string }[] {
  const last = prompt.at(-1);
  if (last?.role !== "tool") return [];
  const results = last.content as readonly { readonly output: { readonly type: string; readonly value: string } }[];
  return results.map(({ output }) => ({ ok: output.type === "text", text: output.value }));
}

function step(
  tool: "Read" | "Write" | "Edit",
  lines: readonly string[],
  inputs: readonly object[],
): readonly unknown[] {
  called = { tool, lines };
  return [...inputs.map((input, i) => calls(tool, { file_path: file, ...input }, `call-${i}`)), finish("tool-calls")];
}

/** One line with Write, which wants the file read; then some with Edit; and so on until all are in. */
const model = fakeModel((_, options) => {
  const answers = answersIn(options);
  const before = answers.length === 0 ? undefined : called;
  if (before?.tool === "Read") {
    const [{ ok, text } = { ok: false, text: "" }] = answers;
    if (!ok) throw new Error(`Read was refused: ${text}`);
    const [line = ""] = todo;
    const whole = text.replaceAll(/^ *\d+\t/gm, "").replace(/end\n?$/, `${line}\nend\n`);
    return step("Write", [line], [{ content: whole }]);
  }
  for (const [i, { ok }] of answers.entries()) {
    if (ok) todo = todo.filter((line) => line !== before?.lines[i]);
    else refused++;
  }
  if (todo.length === 0) return [...says("Done."), finish()];
  if (before?.tool !== "Write" || answers[0]?.ok !== true) return step("Read", [], [{}]);
  const lines = todo.slice(0, editsMax);
  return step(
    "Edit",
    lines,
    lines.map((line) => ({ old_string: "\nend", new_string: `\n${line}\nend` })),
  );
});

const storage = await openLocalStorage({ dir });
const rig = rigDefiner(() => ({}))({
  storage,
  loops: [defineLoop({ name: "writer", model, tools: [fileTools()], limits: { steps: 10_000, toolCalls: 10_000 } })],
  sharedWorkspace: { root },
  snapshots: "manual",
});
const session = await rig.startSession();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [path = "", edits = ""] = line.split(" ");
  file = path;
  editsMax = Number(edits);
  todo = Array.from({ length: Number(lines) }, (_, i) => `${name} ${i}`);
  refused = 0;
  const { status } = await (await session.submit(`add ${lines} lines to ${file}`)).done;
  console.log(JSON.stringify({ status, refused }));
}
await session.close();
await storage.close();
