/**
 * SIGKILL at every effect on the file system of a whole turn of file tools and a shell command, in real processes (E3, G5):
 * wherever it was killed, what its tools wrote is undone, what somebody else wrote meanwhile stays, and no name of ours is
 * left. Every thirty-first effect here; `LOOPRIG_SOAK=1` kills at each one.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";

const stride = process.env["LOOPRIG_SOAK"] === "1" ? 1 : 31;

const steps = [
  {
    calls: [
      { tool: "Edit", input: { file_path: "a", old_string: "first", new_string: "second" } },
      { tool: "Write", input: { file_path: "made/deep/f", content: "new\n" } },
    ],
  },
  { calls: [{ tool: "Edit", input: { file_path: "a", old_string: "second", new_string: "third" } }] },
  { calls: [{ tool: "Bash", input: { command: "echo more >> b; rm c" } }] },
  { calls: [{ tool: "Edit", input: { file_path: "b", old_string: "more", new_string: "less" } }] },
  { text: "Done." },
];

it(
  "a session killed anywhere in a turn leaves a root from which everything of the turn can be taken back",
  {
    timeout: 600_000,
  },
  async () => {
    await using place = new Playground();
    place.write({ a: "first\n", b: "b\n", c: "c\n" });
    const old = place.tree();
    const pristine = path.join(place.dir, "pristine");
    fs.renameSync(place.root, pristine);
    const run = async (name: string, last: number) => {
      const base = path.join(place.dir, name);
      fs.mkdirSync(base);
      if (fs.existsSync(place.root)) fs.renameSync(place.root, path.join(base, "before"));
      fs.cpSync(pristine, place.root, { recursive: true });
      const state = path.join(base, "state");
      const args = [place.root, state, JSON.stringify(steps), String(last)];
      return { state, ended: await startProcess("tests/processes/killed-turn.ts", args).ended };
    };
    const whole = await run("whole", 0);
    expect(whole.ended.stderr).toBe("");
    const [status, count] = (whole.ended.lines[0] ?? "").split(" ");
    expect(status).toBe("done");
    const effects = Number(count);
    expect(effects).toBeGreaterThan(100);

    let began = 0;
    for (let last = 1; last <= effects; last += stride) {
      const { state, ended } = await run(String(last), last);
      const at = `effect ${last} of ${effects}`;
      // Runs differ by a few effects: what is read in one go in one of them takes two in another.
      if (ended.signal === null && last > effects * 0.9) break;
      expect(ended.signal, at).toBe("SIGKILL");
      // Another program, after the kill and before anybody looks.
      place.write({ theirs: "stays\n" });
      await using storage = await openLocalStorage({ dir: state });
      await using workspace = await openWorkspace({ root: place.root, storage, baseline: false, command: "next" });
      const names = Object.keys(listTree(place.root));
      expect(
        names.filter((name) => name.includes(".looprig-")),
        at,
      ).toEqual([]);
      const history = await workspace.history();
      expect(history.damaged, at).toEqual([]);
      const turn = history.turns.at(-1);
      if (turn?.from !== undefined) began++;
      if (turn !== undefined) expect(["interrupted", "done"], at).toContain(turn.state);
      // The window of a command that was cut short may hold what others wrote: then, and only then, a question is asked.
      const plan = await workspace.plan({ kind: "undo" });
      expect(plan.conflicts, at).toEqual([]);
      const unsure = plan.window.includes("theirs" as never);
      if (plan.writes.length + plan.deletes.length > 0) {
        expect(await workspace.undo({ includeWindow: plan.window.length > 0 }), at).toMatchObject({ result: "done" });
      }
      const { made: _made, "made/deep": _deep, ...tree } = listTree(place.root) as Record<string, string>;
      // Directories that were made before anything was on record hold nothing.
      expect(tree, at).toEqual(unsure ? old : { ...old, theirs: "file 644 stays\n" });
    }
    expect(began).toBeGreaterThan(0);
  },
);
