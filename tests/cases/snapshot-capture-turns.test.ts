/** Each turn begins with a capture of its own, however well the root is known already. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { Playground, listTree } from "../playground.js";
import { agentRig, call, play } from "./agent.js";
import { looprig } from "./command-line.js";
import { commitAll } from "./git.js";
import { isGit, only, stamps } from "./look.js";

const withoutGit = (place: Playground): Readonly<Record<string, string>> => only(place.tree(), (name) => !isGit(name));

describe("C006 a root that was captured weeks ago, and changed since by others", () => {
  const files = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`src/file-${i}.txt`, `day 0, file ${i}\n`]));

  /** Captured on day 0; then 20 files changed and 5 were made, by no agent. */
  async function dayZero(place: Playground) {
    place.write(files);
    commitAll(place.root, "day 0");
    await using workspace = await place.open();
    const { ref } = await workspace.checkpoint({ label: "day 0" });
    await workspace.close();
    for (let i = 0; i < 20; i++) place.write({ [`src/file-${i}.txt`]: `later, file ${i}\n` });
    for (let i = 0; i < 5; i++) place.write({ [`src/new-${i}.txt`]: `later, new ${i}\n` });
    return ref;
  }
  const edit = call("Edit", { file_path: "src/file-7.txt", old_string: "later", new_string: "by the agent" });

  it("is captured as it is when a turn begins, and undo of the turn changes the one path that the turn changed (K4)", async () => {
    await using place = new Playground();
    const first = await dayZero(place);
    const before = place.tree();
    const rig = await agentRig(place, [{ calls: [edit] }, { text: "Edited." }]);
    await using session = await rig.startSession();
    expect((await play(session, "edit one file")).answers).toMatchObject([{ outcome: "ok" }]);

    const begin = await session.workspace.resolve("t1^");
    expect(begin.ref).not.toBe(first);
    const there = path.join(place.dir, "begin");
    await session.workspace.materialize("t1^", there);
    expect(listTree(there)).toEqual(only(before, (name) => !isGit(name)));

    const untouched = stamps(place.root, (name) => isGit(name) || name === "src/file-7.txt");
    expect(await session.workspace.undo()).toMatchObject({
      ...{ entry: "t1", result: "done", written: ["src/file-7.txt"], deleted: [], kept: [], conflicts: [] },
    });
    expect(place.tree()).toEqual(before);
    const left = stamps(place.root, (name) => isGit(name) || name === "src/file-7.txt");
    // The directory of the one file was written to; nothing else was touched at all.
    expect({ ...left, src: untouched["src"] }).toEqual(untouched);
  });

  it("goes back to day 0 only by a yes to all of it: the plan counts what others did and keeps it unless told", async () => {
    await using place = new Playground();
    const first = await dayZero(place);
    const rig = await agentRig(place, [{ calls: [edit] }, { text: "Edited." }]);
    const session = await rig.startSession();
    await play(session, "edit one file");
    const present = place.tree();
    const kept = await session.workspace.plan({ kind: "restore", ref: first });
    expect([kept.writes, kept.deletes]).toEqual([["src/file-7.txt"], []]);
    expect(kept.kept).toHaveLength(19 + 5);
    const exact = await session.workspace.plan({ kind: "restore", ref: first, exact: true });
    expect([exact.writes.length, exact.deletes.length, exact.foreign.length]).toEqual([20, 5, 19 + 5]);
    expect(place.tree()).toEqual(present);
    await session.close();

    // On the command line there is nobody to say yes: it tells the counts, and writes nothing.
    const refused = await looprig(place, ["restore", "day 0", "--exact"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("it would restore 20 files and delete 5 files");
    expect(withoutGit(place)).toEqual(only(present, (name) => !isGit(name)));
    const done = await looprig(place, ["restore", "day 0", "--exact", "--yes"]);
    expect(done.code).toBe(0);
    const now = withoutGit(place);
    for (const [name, text] of Object.entries(files)) expect(now[name]).toBe(`file 644 ${text}`);
    expect(Object.keys(now)).toHaveLength(51);
  });
});
