/**
 * SIGKILL at every effect on the file system of `exec`, `undo`, `redo` and `restore`, in real processes: whatever was
 * killed, the next opener finds the tree exactly old or exactly new, nothing of ours beside it, no lease held, and goes on.
 * Every twenty-third effect here; `LOOPRIG_SOAK=1` kills at each one.
 */
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";

const stride = process.env["LOOPRIG_SOAK"] === "1" ? 1 : 23;

/** A root and its state, as they are before the operation that is killed. */
async function prepare(place: Playground, operation: string): Promise<void> {
  place.write({ "a.txt": "first\n", "b.txt": "b\n", "old/deep/x": "x\n", "kept.txt": "kept\n" });
  fs.mkdirSync(place.at("old/empty"), { mode: 0o700 });
  if (operation === "exec") return;
  await using workspace = await place.open();
  await workspace.exec(
    place.sh(
      "echo changed > a.txt; chmod 755 a.txt; rm b.txt; mkdir made; echo f > made/f; rm -r old; ln -s a.txt old",
    ),
    { stdio: "ignore" },
  );
  if (operation === "redo") await workspace.undo();
}

describe.each(["exec", "undo", "redo", "restore"])("a process killed in the middle of %s", (operation) => {
  it("leaves a tree and a store from which the next one goes on (U6, U9)", { timeout: 600_000 }, async () => {
    await using place = new Playground();
    await prepare(place, operation);
    await (await place.storage()).close();
    const old = place.tree();
    const pristine = path.join(place.dir, "pristine");
    fs.renameSync(place.root, pristine);
    const reset = (name: string): { root: string; state: string } => {
      const base = path.join(place.dir, name);
      fs.mkdirSync(base);
      // One after the other at the one path the state speaks of.
      if (fs.existsSync(place.root)) fs.renameSync(place.root, path.join(base, "before"));
      fs.cpSync(pristine, place.root, { recursive: true, verbatimSymlinks: true });
      fs.cpSync(place.stateDir, path.join(base, "state"), { recursive: true });
      return { root: place.root, state: path.join(base, "state") };
    };

    const whole = reset("whole");
    const run = startProcess("tests/processes/killed-operation.ts", [whole.root, whole.state, operation, "0"]);
    const ended = await run.ended;
    expect(ended.stderr).toBe("");
    const effects = Number(ended.lines[0]);
    expect(effects).toBeGreaterThan(50);
    const changed = listTree(whole.root);
    expect(changed).not.toEqual(old);

    let reachedNew = 0;
    let leftOld = 0;
    for (let last = 1; last <= effects; last += stride) {
      const { root, state } = reset(String(last));
      const killed = startProcess("tests/processes/killed-operation.ts", [root, state, operation, String(last)]);
      const { signal } = await killed.ended;
      expect(signal, `effect ${last} of ${effects}`).toBe("SIGKILL");
      await using storage = await openLocalStorage({ dir: state });
      const workspace = await openWorkspace({ root, storage, baseline: false, adoptRoot: true, command: "next" });
      const tree = listTree(root);
      expect(
        Object.keys(tree).filter((name) => name.includes(".looprig-")),
        `effect ${last}`,
      ).toEqual([]);
      // A command that was started may go on to its end; what it made is what it would have made.
      const known = [old, changed].some((each) => isEqual(each, tree));
      if (operation !== "exec") expect(known, `effect ${last}: neither old nor new`).toBe(true);
      if (isEqual(tree, old)) leftOld++;
      if (isEqual(tree, changed)) reachedNew++;

      // The next commands work, and take back what there is to take back.
      const mark = await workspace.checkpoint({ label: "after the crash" });
      expect((await workspace.history()).damaged).toEqual([]);
      expect(await workspace.unsettled()).toBeUndefined();
      if (operation === "exec") {
        await workspace.undo({ includeWindow: true });
        expect(listTree(root), `effect ${last}`).toEqual(old);
      } else {
        await workspace.exec(["sh", "-c", "echo more >> kept.txt"], { stdio: "ignore" });
        expect((await workspace.undo()).result).toBe("done");
        expect(listTree(root)).toEqual(tree);
      }
      await workspace.restore(mark.ref, { exact: true, includeWindow: true });
      expect(listTree(root)).toEqual(tree);
      await workspace.close();
    }
    expect(leftOld).toBeGreaterThan(0);
    expect(reachedNew).toBeGreaterThan(0);
  });
});

const isEqual = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);
