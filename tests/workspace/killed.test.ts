/**
 * SIGKILL at every effect on the file system of `exec`, in real processes: whatever was killed, the next opener finds nothing of
 * ours in the tree, no lease held, and takes back what the command did. Every twenty-third effect here; `LOOPRIG_SOAK=1` kills at
 * each one. Operations that change the tree themselves are cut short in `tests/failures`.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it, vi } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";

const stride = process.env["LOOPRIG_SOAK"] === "1" ? 1 : 23;

it(
  "a process killed in the middle of exec leaves a root in which the next one goes on",
  { timeout: 600_000 },
  async () => {
    await using place = new Playground();
    place.write({ "a.txt": "first\n", "b.txt": "b\n", "old/deep/x": "x\n", "kept.txt": "kept\n" });
    fs.mkdirSync(place.at("old/empty"), { mode: 0o700 });
    const old = place.tree();
    const pristine = path.join(place.dir, "pristine");
    fs.renameSync(place.root, pristine);
    const run = async (name: string, last: number) => {
      const base = path.join(place.dir, name);
      fs.mkdirSync(base);
      if (fs.existsSync(place.root)) fs.renameSync(place.root, path.join(base, "before"));
      fs.cpSync(pristine, place.root, { recursive: true, verbatimSymlinks: true });
      const state = path.join(base, "state");
      const args = [place.root, state, "exec", String(last)];
      return { state, ended: await startProcess("tests/processes/killed-operation.ts", args).ended };
    };

    const whole = await run("whole", 0);
    expect(whole.ended.stderr).toBe("");
    const effects = Number(whole.ended.lines[0]);
    expect(effects).toBeGreaterThan(50);
    const changed = listTree(place.root);
    expect(changed).not.toEqual(old);

    const endings = { old: 0, new: 0 };
    for (let last = 1; last <= effects; last += stride) {
      const { state, ended } = await run(String(last), last);
      const at = `effect ${last} of ${effects}`;
      expect(ended.signal, at).toBe("SIGKILL");
      await using storage = await openLocalStorage({ dir: state });
      expect(await storage.leaser.list(""), at).toEqual([]);
      // The command outlives the one that started it for a moment; the root is refused as long.
      const open = () => openWorkspace({ root: place.root, storage, baseline: false, command: "next" });
      const workspace = await vi.waitFor(open, { timeout: 30_000 });
      const tree = listTree(place.root);
      const names = Object.keys(tree);
      expect(
        names.filter((name) => name.includes(".looprig-")),
        at,
      ).toEqual([]);
      if (isEqual(tree, old)) endings.old++;
      if (isEqual(tree, changed)) endings.new++;

      // What the command did can be taken back; without a baseline on record it never began.
      const mark = await workspace.checkpoint({ label: "after the crash" });
      expect((await workspace.history()).damaged, at).toEqual([]);
      await workspace.undo({ includeWindow: true });
      expect(listTree(place.root), at).toEqual(old);
      await workspace.restore(mark.ref, { exact: true, includeWindow: true });
      expect(listTree(place.root), at).toEqual(tree);
      await workspace.close();
    }
    expect(endings.old).toBeGreaterThan(0);
    expect(endings.new).toBeGreaterThan(0);
  },
);

const isEqual = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);
