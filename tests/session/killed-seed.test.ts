/**
 * SIGKILL at effects of a session that starts from a seed (E4, U9), in real processes: the root holds the whole seed or
 * nothing, and nothing is left beside it once somebody takes the root. Every seventh effect; `LOOPRIG_SOAK=1` at each one.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { Playground, listTree } from "../playground.js";
import { startProcess } from "../processes.js";

const stride = process.env["LOOPRIG_SOAK"] === "1" ? 1 : 7;

it("a start from a seed that is killed leaves the whole seed or nothing", { timeout: 600_000 }, async () => {
  await using place = new Playground();
  place.write({ "src/a": "a\n", "src/deep/b": "b\n", c: "c\n" });
  const seeded = place.tree();
  const first = await place.open();
  const { ref } = await first.checkpoint();
  await first.close();
  await (await place.storage()).close();

  const run = async (name: string, last: number) => {
    const base = path.join(place.dir, name);
    const [root, state] = [path.join(base, "root"), path.join(base, "state")];
    fs.mkdirSync(root, { recursive: true });
    fs.cpSync(place.stateDir, state, { recursive: true });
    const { ended } = startProcess("tests/processes/seeded-session.ts", [root, state, ref, String(last)]);
    return { base, root, state, ended: await ended };
  };
  const whole = await run("whole", 0);
  expect(whole.ended.stderr).toBe("");
  expect(listTree(whole.root)).toEqual(seeded);
  const effects = Number(whole.ended.lines[0]);

  const seen = new Set<string>();
  for (let last = 1; last <= effects; last += stride) {
    const { base, root, state, ended } = await run(String(last), last);
    const at = `effect ${last} of ${effects}`;
    if (ended.signal === null && last > effects * 0.9) break;
    expect(ended.signal, at).toBe("SIGKILL");
    const tree = listTree(root);
    seen.add(Object.keys(tree).length === 0 ? "nothing" : "whole");
    if (Object.keys(tree).length > 0) expect(tree, at).toEqual(seeded);
    await using storage = await openLocalStorage({ dir: state });
    // Killed between the rename and its record, the directory is one that is not known yet.
    const workspace = await openWorkspace({ root, storage, baseline: false, adoptRoot: true });
    expect(fs.readdirSync(base).sort(), at).toEqual(["root", "state"]);
    expect(listTree(root), at).toEqual(tree);
    await workspace.close();
  }
  expect([...seen].sort()).toEqual(["nothing", "whole"]);
});
