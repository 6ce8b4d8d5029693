/** One root, one session after the other: what an earlier one recorded stands in the way of nothing that a later one does. */
import { expect, it } from "vitest";
import { fileTools } from "../../src/builtin-tools/index.js";
import { Playground } from "../playground.js";
import { rigOn } from "../session/scenes.js";

/** A session whose file tool makes `dist` and `dist/a`, restored to what was before, and closed. */
async function earlierSession(place: Playground): Promise<void> {
  const write = { tool: "Write", input: { file_path: "dist/a", content: "1\n" } };
  const rig = await rigOn(place, { steps: [{ calls: [write] }, { text: "Done." }], tools: [fileTools()] });
  await using session = await rig.startSession();
  const workspace = session.workspace;
  const before = await workspace.checkpoint();
  expect(await (await session.submit("build")).done).toMatchObject({ status: "done" });
  await workspace.restore(before.ref);
  expect(place.tree()).toEqual({});
}

it("a command's turn is undone where a file tool of an earlier session made the same directory once (U1, U3)", async () => {
  await using place = new Playground("root", { quick: true });
  await earlierSession(place);
  await using workspace = await place.open();
  await workspace.exec(place.sh("mkdir dist; printf 2 > dist/b"), { stdio: "ignore" });
  const changes = await workspace.changes({ since: "t2^" });
  expect(changes.map(({ path, by }) => [path, by.kind])).toEqual([
    ["dist", "session"],
    ["dist/b", "session"],
  ]);
  expect(await workspace.undo()).toMatchObject({ entry: "t2", result: "done" });
  expect(place.tree()).toEqual({});
});
