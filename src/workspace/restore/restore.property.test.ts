/** Random trees, random edits by others, planned and applied for real beside a model of what must be there afterwards. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ChangedBy } from "../changed-by.js";
import { composeChanges } from "../own-changes.js";
import type { OwnChange } from "../own-changes.js";
import { planRestore, planReversal } from "./planner.js";
import { isSameEntry } from "../../workspace-store/index.js";
import type { TreeChange } from "../../workspace-store/index.js";
import type { TreePlan } from "./plan.js";
import { killAt, Scene, unsyncedFileSystem } from "./testing/scene.js";
import { changesOf, directory, entryOf, file, link, sortedPaths, treeOf } from "./testing/trees.js";
import type { Node, Nodes } from "./testing/trees.js";

const names = fc.constantFrom("a", "b", "a.b", "A", "é", "x\ny", "w\udcff", "z z");
const leaf = fc.oneof(
  fc
    .record({ text: fc.constantFrom("", "1", "22", "other"), mode: fc.constantFrom(0o644, 0o755, 0o400) })
    .map(({ text, mode }) => file(text, mode)),
  fc.constantFrom("a", "../a", "nowhere").map(link),
);
type Shape = Node | { readonly [name: string]: Shape };
const shapes = fc.letrec<{ shape: Shape; tree: Record<string, Shape> }>((tie) => ({
  shape: fc.oneof({ depthSize: "small", withCrossShrink: true }, leaf, leaf, tie("tree")),
  tree: fc.dictionary(names, tie("shape"), { maxKeys: 4 }),
}));
const isNode = (shape: Shape): shape is Node => typeof (shape as { kind?: unknown }).kind === "string";

function flatten(shape: Readonly<Record<string, Shape>>, prefix = ""): Record<string, Node> {
  const nodes: Record<string, Node> = {};
  for (const [name, child] of Object.entries(shape)) {
    if (isNode(child)) nodes[prefix + name] = child;
    else Object.assign(nodes, { [prefix + name]: directory() }, flatten(child, `${prefix}${name}/`));
  }
  return nodes;
}
const trees = shapes.tree.map((tree): Nodes => flatten(tree));

/** Few names: what is a file in one tree is often a directory in another. */
const crowdedShapes = fc.letrec<{ shape: Shape; tree: Record<string, Shape> }>((tie) => ({
  shape: fc.oneof({ depthSize: "medium", withCrossShrink: true }, fc.constantFrom(file("1"), file("2")), tie("tree")),
  tree: fc.dictionary(fc.constantFrom("a", "b"), tie("shape"), { maxKeys: 2 }),
}));
const crowded = crowdedShapes.tree.map((tree): Nodes => flatten(tree));
const isFolder = (node: Node | undefined): boolean => node?.kind === "directory";
const parents = (path: string): string[] =>
  path
    .split("/")
    .slice(0, -1)
    .map((_, depth, names) => names.slice(0, depth + 1).join("/"));

/** `base` with some top-level names as they are in `edits`: what others have done. */
const edited = (base: Nodes, edits: Nodes, chosen: readonly string[]): Nodes => {
  const topOf = (path: string): string => path.split("/")[0] as string;
  const from = (nodes: Nodes, keep: (top: string) => boolean): [string, Node][] =>
    Object.entries(nodes).filter(([path]) => keep(topOf(path)));
  const isChosen = (top: string): boolean => chosen.includes(top);
  return Object.fromEntries([...from(base, (top) => !isChosen(top)), ...from(edits, isChosen)]);
};
const chosenNames = fc.uniqueArray(names, { maxLength: 3 });

const same = (a: Node | undefined, b: Node | undefined): boolean => isSameEntry(entryOf(a), entryOf(b));

/** What must be there: the targets of the operations, and everything else as it was. */
function modelOf(now: Nodes, plan: TreePlan, wanted: Nodes): Nodes {
  const model = new Map(Object.entries(now));
  for (const { path, expected, target } of plan.operations) {
    expect(isSameEntry(entryOf(now[path]), expected), `expected of ${JSON.stringify(path)}`).toBe(true);
    if (target === undefined) model.delete(path);
    else model.set(path, wanted[path] ?? directory(target.kind === "directory" ? target.mode : 0));
  }
  return Object.fromEntries(model);
}

async function carriedOut(now: Nodes, plan: TreePlan, ...known: readonly Nodes[]): Promise<Nodes> {
  using scene = new Scene(now, {}, plan.operations);
  for (const nodes of known) scene.store.add(nodes);
  using applied = await scene.apply({ fileSystem: unsyncedFileSystem });
  expect(await applied.finish()).toEqual({ raced: [] });
  expect(await scene.plans().read()).toBeUndefined();
  return scene.tree();
}

describe("any two trees, with any edits by others between", () => {
  test("a restore makes every path of its plan the target, and leaves every other as it was (U5, U6)", async () => {
    await fc.assert(
      fc.asyncProperty(trees, trees, trees, chosenNames, fc.boolean(), async (left, wanted, edits, chosen, exact) => {
        const now = edited(left, edits, chosen);
        const plan = await planRestore({
          changes: changesOf(now, wanted),
          present: treeOf(now),
          wanted: treeOf(wanted),
          explains: (path) => same(now[path], left[path]),
          exact,
          keptReason: () => "foreign",
        });
        const result = await carriedOut(now, plan, wanted);
        expect(result).toEqual(modelOf(now, plan, wanted));
        if (exact) expect(result).toEqual(wanted);
        // What others made is there still, unless it was asked for exactly.
        else {
          for (const path of sortedPaths(now)) {
            if (!same(now[path], left[path])) expect(result[path]).toEqual(now[path]);
          }
        }
      }),
      { numRuns: 250 },
    );
  });

  test("an undo touches only what the entry changed, and a redo of it brings back exactly what was there", async () => {
    await fc.assert(
      fc.asyncProperty(trees, trees, trees, chosenNames, async (before, after, edits, chosen) => {
        const now = edited(after, edits, chosen);
        const whoChanged = (): ChangedBy => ({ kind: "foreign" });
        const options = { onConflict: "skip", whoChanged } as const;
        const changes = changesOf(before, after);
        const plan = await planReversal({
          ...options,
          changes,
          present: treeOf(now),
          wanted: treeOf(before),
          direction: "undo",
        });
        const undone = await carriedOut(now, plan, before);
        expect(undone).toEqual(modelOf(now, plan, before));
        const changed = new Set<string>(changes.map(({ path }) => path));
        for (const path of sortedPaths(now)) if (!changed.has(path)) expect(undone[path]).toEqual(now[path]);
        if (chosen.length > 0) return;
        expect(undone).toEqual(before);
        const redo = await planReversal({
          ...options,
          changes,
          present: treeOf(undone),
          wanted: treeOf(after),
          direction: "redo",
        });
        expect(await carriedOut(undone, redo, after)).toEqual(after);
      }),
      { numRuns: 250 },
    );
  });

  test("an entry whose changes are not those between two trees is undone, and redone, as far as both can stand", async () => {
    const step = (before: Nodes, after: Nodes, order: number, strength: "recorded" | "window"): OwnChange[] =>
      changesOf(before, after).map((change) => {
        const span = { openOrder: order, closeOrder: order, uncertain: false, finished: true };
        return { ...change, ...span, strength, kind: strength === "window" ? "window" : "paths" };
      });
    const below = (nodes: Nodes, path: string): boolean =>
      Object.keys(nodes).some((name) => name.startsWith(`${path}/`));
    const met = new Set<string>();

    /** Takes back what can be; says whether that was everything. */
    const reverse = async (now: Nodes, changes: readonly TreeChange[], direction: "undo" | "redo", all: Nodes[]) => {
      const plan = await planReversal({
        ...{ changes, direction, present: treeOf(now), onConflict: "skip" },
        whoChanged: () => ({ kind: "foreign" }),
      });
      const result = await carriedOut(now, plan, ...all);
      const planned = new Map<string, TreePlan["operations"][number]>(plan.operations.map((one) => [one.path, one]));
      const conflicts = new Set<string>(plan.conflicts.map(({ path }) => path));
      for (const path of new Set([...Object.keys(now), ...Object.keys(result), ...planned.keys()])) {
        const operation = planned.get(path);
        const wanted = operation === undefined ? entryOf(now[path]) : operation.target;
        expect(isSameEntry(entryOf(result[path]), wanted), path).toBe(true);
      }
      for (const { path, before, after } of changes) {
        const [left, target] = direction === "undo" ? [after, before] : [before, after];
        const is = entryOf(result[path]);
        if (!isSameEntry(entryOf(now[path]), left) || isSameEntry(is, target)) continue;
        if (conflicts.has(path)) {
          const stands = parents(path).some((parent) => result[parent] !== undefined && !isFolder(result[parent]));
          expect(stands || (target?.kind !== "directory" && below(result, path)), path).toBe(true);
          met.add(stands ? "no directory above" : "no file here");
          continue;
        }
        // A directory stays, or is made, where something has to be in it.
        expect(target, path).toBeUndefined();
        expect(isFolder(result[path]) && below(result, path), path).toBe(true);
        met.add(left?.kind === "directory" ? "kept" : "made room");
      }
      return { result, plan };
    };

    await fc.assert(
      fc.asyncProperty(crowded, crowded, crowded, crowded, async (first, second, third, last) => {
        const changes = composeChanges([...step(first, second, 1, "recorded"), ...step(third, last, 3, "window")]);
        const all = [first, second, third, last];
        const undone = await reverse(last, changes, "undo", all);
        const mirrored = changes.map((change) => ({ ...change, before: change.after, after: change.before }));
        expect((await reverse(last, mirrored, "redo", all)).result).toEqual(undone.result);
        const exact =
          undone.plan.conflicts.length === 0 &&
          undone.plan.operations.every(({ path, target }) =>
            isSameEntry(target, changes.find((change) => change.path === path)?.before),
          );
        if (!exact) return;
        met.add("redone");
        // As the layer above does: only what was taken back is put back.
        const taken = changes.filter(({ path }) => undone.plan.operations.some((one) => one.path === path));
        const redone = await reverse(undone.result, taken, "redo", all);
        expect(redone.plan.conflicts).toEqual([]);
        for (const { path, after } of taken) expect(isSameEntry(entryOf(redone.result[path]), after), path).toBe(true);
      }),
      { numRuns: 400 },
    );
    expect(met).toEqual(new Set(["kept", "made room", "no directory above", "no file here", "redone"]));
  });

  test("a kill at any moment is settled to one tree or the other", async () => {
    await fc.assert(
      fc.asyncProperty(trees, trees, fc.nat({ max: 120 }), fc.nat({ max: 60 }), async (now, wanted, first, second) => {
        using scene = await Scene.of(now, wanted);
        const killer = killAt(scene.storage, first + 1);
        try {
          using applied = await scene.apply({ fileSystem: killer.fileSystem, plans: scene.plans(killer.storage) });
          await applied.finish();
        } catch (error) {
          if (!killer.dead()) throw error;
        }
        const phase = (await scene.plans().read())?.phase;
        const again = killAt(scene.storage, second + 1);
        try {
          await scene.settle(again.fileSystem, scene.plans(again.storage));
        } catch (error) {
          if (!again.dead()) throw error;
        }
        const settled = await scene.settle(unsyncedFileSystem);
        expect(settled?.skipped ?? []).toEqual([]);
        if (phase === "staging") expect(scene.tree()).toEqual(now);
        else if (phase !== undefined) expect(scene.tree()).toEqual(wanted);
        else expect([now, wanted]).toContainEqual(scene.tree());
      }),
      { numRuns: 250 },
    );
  });
});
