import { expect, it } from "vitest";
import { Playground, listTree } from "../playground.js";

it("exec, status, undo, redo, restore: one thin path", async () => {
  await using place = new Playground();
  place.write({ "src/a.js": "one\ntwo\n", "src/b.js": "b\n", "gone.txt": "gone\n", "keep/x": "x" });
  const before = place.tree();
  await using workspace = await place.open();
  const result = await workspace.exec(
    place.sh(
      "sed -i s/one/ONE/ src/a.js; echo more >> src/b.js; rm gone.txt; mkdir -p new/dir; echo hi > new/dir/f; exit 3",
    ),
    { stdio: "ignore" },
  );
  const after = place.tree();
  expect(result.exitCode).toBe(3);
  expect(result.changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
    "deleted gone.txt",
    "added new",
    "added new/dir",
    "added new/dir/f",
    "edited src/a.js",
    "edited src/b.js",
  ]);
  const undone = await workspace.undo();
  expect(undone.result).toBe("done");
  expect(place.tree()).toEqual(before);
  const redone = await workspace.redo();
  expect(redone.result).toBe("done");
  expect(place.tree()).toEqual(after);
  const restored = await workspace.restore("c1");
  expect(restored.kept).toEqual([]);
  expect(place.tree()).toEqual(before);
  await workspace.undo();
  expect(listTree(place.root)).toEqual(after);
});
