/**
 * Captures of a tree that another process changes without pause, by the way people run them: no seam, whatever threads the
 * engine has. Each ends, holds only what stood there at some moment, and never a byte from outside the root.
 */
import fs from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parseWorkspacePath } from "../../src/core/index.js";
import type { WorkspacePath } from "../../src/core/index.js";
import { contentIdOf, createWorkspaceStore, visitTree } from "../../src/workspace-store/index.js";
import type { TreeEntry } from "../../src/workspace-store/index.js";
import { Playground } from "../playground.js";
import { startProcess } from "../processes.js";

const captures = process.env["LOOPRIG_SOAK"] === "1" ? 2_000 : 25;

const file = (text: string): ((entry: TreeEntry) => boolean) => {
  const id = contentIdOf(Buffer.from(text));
  return (entry) => entry.kind === "file" && entry.id === id && entry.size === text.length;
};
const omitted = (...classes: readonly string[]): ((entry: TreeEntry) => boolean) => {
  return (entry) => entry.kind === "omitted" && classes.includes(entry.class);
};
const link = (target: string) => (entry: TreeEntry) => entry.kind === "symlink" && entry.target === target;
const directory = (entry: TreeEntry): boolean => entry.kind === "directory";

it("fifos for files, links out of the root for directories, trees that come and go: captures end, and hold what was there", async () => {
  await using place = new Playground("root", { quick: true });
  const outside = path.join(place.dir, "outside");
  place.write({ victim: "regular", "dir/secret": "inside", "dir/deep/x": "x", here: "moves", calm: "calm" });
  place.write({ secret: "OUTSIDE", "deep/x": "OUTSIDE", "deep/y": "OUTSIDE" }, outside);
  for (let i = 0; i < 50; i++) place.write({ [`filler/${i}/f`]: `${i}` });

  const moving = omitted("unstable");
  const allowed = new Map<WorkspacePath, readonly ((entry: TreeEntry) => boolean)[]>(
    Object.entries({
      victim: [file("regular"), omitted("special", "unstable")],
      dir: [directory, link(outside), moving],
      "dir/secret": [file("inside"), link(path.join(outside, "secret")), moving],
      "dir/deep": [directory, moving],
      "dir/deep/x": [file("x"), moving],
      here: [file("moves"), moving],
      there: [file("moves"), moving],
      calm: [file("calm")],
      brief: [directory, moving],
      "brief/below": [directory, moving],
      "brief/below/f": [file("brief"), file(""), moving],
    }).map(([name, kinds]) => [parseWorkspacePath(name), kinds]),
  );

  const restless = startProcess("tests/processes/restless.ts", [place.root, outside]);
  expect(await restless.line()).toBe("at it");
  const store = createWorkspaceStore(await place.storage());
  const wrong: string[] = [];
  for (let i = 0; i < captures; i++) {
    const { tree } = await store.capture({ root: place.root });
    let filler = 0;
    for await (const { path: at, entry } of visitTree(tree)) {
      if (at.startsWith("filler")) filler++;
      else if (!allowed.get(at)?.some((is) => is(entry))) wrong.push(`${i}: ${at} ${JSON.stringify(entry)}`);
    }
    // What stands still is there each time.
    expect(filler).toBe(101);
    expect(await tree.lookup(parseWorkspacePath("calm"))).toMatchObject({ kind: "file" });
  }
  restless.child.stdin?.end();
  expect(await restless.ended).toMatchObject({ code: 0, stderr: "" });
  expect(wrong).toEqual([]);
  expect((await store.verify()).damaged).toEqual([]);
  expect(fs.readdirSync(outside).sort()).toEqual(["deep", "secret"]);
});
