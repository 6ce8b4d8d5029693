import { describe, expect, test } from "vitest";
import type { SessionId, TurnId } from "../../core/index.js";
import type { ChangedBy } from "../changed-by.js";
import { planRestore, planReversal } from "./planner.js";
import type { ReversalOptions } from "./planner.js";
import type { TreePlan } from "./plan.js";
import { at, changesOf, directory, file, leftOut, link, sortedPaths, treeOf, without } from "./testing/trees.js";
import type { Nodes } from "./testing/trees.js";

const foreign: ChangedBy = { kind: "foreign" };
const sessionB: ChangedBy = { kind: "other-session", strength: "recorded", sessionId: "b" as SessionId };
const later: ChangedBy = {
  kind: "session",
  strength: "recorded",
  sessionId: "a" as SessionId,
  turnId: "5" as TurnId,
  turn: 5,
};

/** Undoes what led from `before` to `after` in the tree that is there `now`. */
const undo = (before: Nodes, after: Nodes, now: Nodes, options: Partial<ReversalOptions> = {}): Promise<TreePlan> =>
  planReversal({
    changes: changesOf(before, after),
    present: treeOf(now),
    wanted: treeOf(before),
    direction: "undo",
    onConflict: "skip",
    whoChanged: () => foreign,
    ...options,
  });

const restore = (
  now: Nodes,
  wanted: Nodes,
  options: {
    ours?: readonly string[];
    exact?: boolean;
    paths?: readonly string[];
    reason?: "foreign" | "other-session";
  } = {},
): Promise<TreePlan> =>
  planRestore({
    changes: changesOf(now, wanted),
    present: treeOf(now),
    wanted: treeOf(wanted),
    explains: (path) => options.ours?.includes(path) ?? false,
    exact: options.exact ?? false,
    keptReason: () => options.reason ?? "foreign",
    ...(options.paths === undefined ? {} : { paths: options.paths.map(at) }),
  });

const base: Nodes = { src: directory(), "src/foo.ts": file("foo"), "src/bar.ts": file("bar") };

describe("the plan of an undo", () => {
  test("puts back exactly what the entry changed and nothing others did since (C001)", async () => {
    const afterA = { ...base, "src/foo.ts": file("foo by A") };
    const now = { ...afterA, "src/bar.ts": file("bar by B"), "notes.md": file("mine") };
    const plan = await undo(base, afterA, now);
    expect(plan.writes).toEqual(["src/foo.ts"]);
    expect(plan.deletes).toEqual([]);
    expect(plan.conflicts).toEqual([]);
    expect(plan.kept).toEqual([]);
  });

  test("is a conflict that names who edited the file after the entry, and then does nothing (C001)", async () => {
    const afterA = { ...base, "src/foo.ts": file("foo by A"), "src/new.ts": file("new") };
    const now = { ...afterA, "src/foo.ts": file("foo by B") };
    const stop = await undo(base, afterA, now, { onConflict: "stop", whoChanged: () => sessionB });
    expect(stop.conflicts).toEqual([{ path: "src/foo.ts", by: sessionB }]);
    expect(stop.operations).toEqual([]);
    expect([stop.writes, stop.deletes]).toEqual([[], []]);
    const skip = await undo(base, afterA, now, { onConflict: "skip", whoChanged: () => sessionB });
    expect(skip.conflicts).toEqual(stop.conflicts);
    expect(skip.deletes).toEqual(["src/new.ts"]);
  });

  test("has no operation for a turn that changed nothing (C009)", async () => {
    const plan = await undo(base, base, { ...base, "src/foo.ts": file("edited by the user") });
    expect(plan).toEqual({ operations: [], kept: [], conflicts: [], omitted: [], writes: [], deletes: [] });
  });

  test("passes over a path that is as it was already", async () => {
    const after = { ...base, "src/foo.ts": file("edited") };
    expect((await undo(base, after, base)).operations).toEqual([]);
  });

  test("of a redo is the same the other way round", async () => {
    const after = { ...without(base, "src/bar.ts"), "src/foo.ts": file("edited") };
    const plan = await undo(base, after, base, { direction: "redo", wanted: treeOf(after) });
    expect(plan.writes).toEqual(["src/foo.ts"]);
    expect(plan.deletes).toEqual(["src/bar.ts"]);
  });

  test("keeps a directory the entry made when someone put a file into it, and says why", async () => {
    const after = { ...base, out: directory(), "out/ours": file("ours") };
    const withUser = await undo(base, after, { ...after, "out/users": file("mine") });
    expect(withUser.deletes).toEqual(["out/ours"]);
    expect(withUser.kept).toEqual([{ path: "out", reason: "foreign" }]);
    expect(withUser.conflicts).toEqual([]);
    const withB = await undo(base, after, { ...after, "out/b": file("b") }, { whoChanged: () => sessionB });
    expect(withB.kept).toEqual([{ path: "out", reason: "other-session" }]);
    const withLater = await undo(base, after, { ...after, "out/l": file("l") }, { whoChanged: () => later });
    expect(withLater.kept).toEqual([{ path: "out", reason: "not-empty" }]);
    const withOmitted = await undo(base, after, { ...after, "out/.git": leftOut("vcs") });
    expect(withOmitted.kept).toEqual([{ path: "out", reason: "omitted" }]);
    expect(withOmitted.omitted).toEqual(["out"]);
  });

  test("removes a directory the entry made with everything in it", async () => {
    const after = { ...base, out: directory(), "out/a": directory(), "out/a/b": file("b") };
    expect((await undo(base, after, after)).deletes).toEqual(["out", "out/a", "out/a/b"]);
  });

  test("makes a directory that is gone since, with the mode it had", async () => {
    const before = { ...base, d: directory(0o711), "d/x": file("x") };
    const after = without(before, "d/x");
    const plan = await undo(before, after, without(before, "d"));
    expect(plan.operations.map(({ path, target }) => [path, target?.kind === "directory" && target.mode])).toEqual([
      ["d", 0o711],
      ["d/x", false],
    ]);
    const blind = await undo(before, after, without(before, "d"), { wanted: undefined });
    expect(blind.operations[0]).toMatchObject({ path: "d", target: { kind: "directory", mode: 0o755 } });
  });

  test("is a conflict where a parent is a file or a link by now", async () => {
    const before = { ...base, d: directory(), "d/x": file("x") };
    const after = without(before, "d/x");
    for (const instead of [file("file"), link("src")]) {
      const plan = await undo(before, after, { ...without(before, "d"), d: instead });
      expect(plan.operations).toEqual([]);
      expect(plan.conflicts).toEqual([{ path: "d/x", by: foreign }]);
    }
  });

  test("brings back a directory that the entry had replaced by a link, and never goes through the link (C041)", async () => {
    const before = { ...base, d: directory(), "d/x": file("x") };
    const after = { ...base, d: link("src") };
    const plan = await undo(before, after, after);
    expect(plan.operations).toMatchObject([
      { path: "d", expected: { kind: "symlink" }, target: { kind: "directory" } },
      { path: "d/x", expected: undefined, target: { kind: "file" } },
    ]);
  });

  test("leaves alone what is or was left out of the tree, and everything in it (U14)", async () => {
    const before = { ...base, big: directory(), "big/a": file("a") };
    const after = { ...base, big: leftOut() };
    const plan = await undo(before, after, after);
    expect(plan.operations).toEqual([]);
    expect(plan.omitted).toEqual(["big", "big/a"]);
    const nowOut = await undo(before, { ...before, "big/a": file("b") }, { ...base, big: leftOut() });
    expect(nowOut.operations).toEqual([]);
    expect(nowOut.omitted).toEqual(["big/a"]);
  });

  test("never touches .git, also where it was captured (U12)", async () => {
    const before = { ...base, ".git": directory(), ".git/HEAD": file("ref: c1") };
    const after = { ...before, ".git/HEAD": file("ref: c2"), ".git/new": file("n") };
    const plan = await undo(before, after, after);
    expect(plan.operations).toEqual([]);
    expect(plan.omitted).toEqual([".git/HEAD", ".git/new"]);
  });

  test("takes only the chosen paths and what lies below them", async () => {
    const after = { src: directory(), "src/foo.ts": file("f"), "src/bar.ts": file("b"), "src.txt": file("t") };
    const plan = await undo(base, after, after, { paths: [at("src")] });
    expect(plan.writes).toEqual(["src/bar.ts", "src/foo.ts"]);
    expect(plan.deletes).toEqual([]);
  });

  test("is a conflict for a path that another session's window overlaps, even if it looks untouched (U1)", async () => {
    const after = { ...base, "src/foo.ts": file("whose?") };
    const plan = await undo(base, after, after, { onConflict: "stop", overlaps: () => sessionB });
    expect(plan.conflicts).toEqual([{ path: "src/foo.ts", by: sessionB }]);
    expect(plan.operations).toEqual([]);
  });

  test("cannot put a file where a directory keeps something foreign", async () => {
    const before = { ...base, p: file("was a file") };
    const after = { ...base, p: directory(), "p/ours": file("ours") };
    const plan = await undo(before, after, { ...after, "p/users": file("mine") });
    expect(plan.conflicts).toEqual([{ path: "p", by: foreign }]);
    expect(plan.deletes).toEqual(["p/ours"]);
  });

  test("is frozen (U5)", async () => {
    const after = { ...base, "src/foo.ts": file("edited") };
    const plan = await undo(base, after, after);
    for (const part of [plan, plan.operations, plan.operations[0], plan.writes])
      expect(Object.isFrozen(part)).toBe(true);
  });
});

describe("the plan of a turn that took away what somebody put into a directory of its making", () => {
  // The turn wrote d/y, the user put something beside it, the turn's command moved that to b.
  const d: Nodes = { d: directory(), "d/y": file("ours") };
  const user = (path: string): Nodes => ({ [path]: file("user's") });
  const reversal = (before: Nodes, after: Nodes, options: Partial<ReversalOptions> = {}): Promise<TreePlan> =>
    undo(before, after, after, { onConflict: "stop", whoChanged: () => later, ...options });

  test.each<[string, Nodes, Nodes, readonly string[]]>([
    ["a file", user("d/sub"), { ...d, b: file("user's") }, ["d"]],
    ["an empty directory", { "d/sub": directory(0o700) }, { ...d, b: directory(0o700) }, ["d"]],
    [
      "a directory with files",
      { "d/sub": directory(), "d/sub/e": directory(), ...user("d/sub/e/f") },
      { ...d, b: directory(), "b/e": directory(), "b/e/f": file("user's") },
      ["d"],
    ],
    [
      "something deeper",
      { "d/e/f/sub": directory(), ...user("d/e/f/sub/x") },
      { ...d, "d/e": directory(), "d/e/f": directory(), "d/e/f/z": file("z"), b: directory(), "b/x": file("user's") },
      ["d", "d/e", "d/e/f"],
    ],
  ])("puts it back, and keeps the directory for it: %s", async (_, before, after, kept) => {
    for (const direction of ["undo", "redo"] as const) {
      const changes = changesOf(before, after).map((change) =>
        direction === "undo" ? change : { ...change, before: change.after, after: change.before },
      );
      const plan = await reversal(before, after, { changes, direction });
      expect(plan.conflicts).toEqual([]);
      expect(plan.kept).toEqual(kept.map((path) => ({ path, reason: "not-empty" })));
      expect(plan.writes).toEqual(sortedPaths(before));
      expect(plan.deletes).toEqual(sortedPaths(after).filter((path) => !kept.includes(path)));
    }
  });

  test("keeps the directory although the one between is gone since, and makes that anew", async () => {
    const after = { d: directory(), b: file("user's") };
    const plan = await reversal(user("d/e/sub"), after);
    expect(plan.conflicts).toEqual([]);
    expect(plan.kept).toEqual([{ path: "d", reason: "not-empty" }]);
    expect(plan.writes).toEqual(["d/e", "d/e/sub"]);
    expect(plan.deletes).toEqual(["b"]);
  });

  test("makes room where the turn left a file in the place of the directory", async () => {
    const plan = await reversal(user("d/sub"), { d: file("ours"), b: file("user's") });
    expect(plan.conflicts).toEqual([]);
    expect(plan.operations).toMatchObject([
      { path: "b", target: undefined },
      { path: "d", expected: { kind: "file" }, target: { kind: "directory", mode: 0o755 } },
      { path: "d/sub", expected: undefined, target: { kind: "file" } },
    ]);
  });

  test("is a conflict with whoever's it was where a file has to come back in the directory's place", async () => {
    const whoChanged: ReversalOptions["whoChanged"] = (path) => (path === "d/sub" ? foreign : later);
    const before = { d: file("first"), ...user("d/sub") };
    const plan = await reversal(before, { ...d, b: file("user's") }, { onConflict: "skip", whoChanged });
    expect(plan.conflicts).toEqual([{ path: "d", by: foreign }]);
    expect(plan.writes).toEqual(["d/sub"]);
    expect(plan.deletes).toEqual(["b", "d/y"]);
    const gone = await reversal(before, { b: file("user's") }, { onConflict: "skip" });
    expect(gone.conflicts.map(({ path }) => path)).toEqual(["d/sub"]);
    expect(gone.writes).toEqual(["d"]);
  });

  test("still says who keeps the directory where somebody does", async () => {
    const now = { ...d, b: file("user's"), "d/theirs": file("x") };
    const plan = await undo(user("d/sub"), { ...d, b: file("user's") }, now, { whoChanged: () => sessionB });
    expect(plan.kept).toEqual([{ path: "d", reason: "other-session" }]);
    expect(plan.writes).toEqual(["d/sub"]);
  });
});

describe("the plan of a restore", () => {
  test("deletes and overwrites only what a record of ours explains, and lists the rest (C003, U7)", async () => {
    const now = {
      ...base,
      "src/foo.ts": file("agent"),
      "run1.jsonl": file("1"),
      "run2.jsonl": file("2"),
      made: file("m"),
    };
    const plan = await restore(now, base, { ours: ["src/foo.ts", "made"] });
    expect(plan.writes).toEqual(["src/foo.ts"]);
    expect(plan.deletes).toEqual(["made"]);
    expect(plan.kept).toEqual([
      { path: "run1.jsonl", reason: "foreign" },
      { path: "run2.jsonl", reason: "foreign" },
    ]);
  });

  test("writes what is absent, and the directories it needs, without asking", async () => {
    const plan = await restore(without(base, "src"), base);
    expect(plan.writes).toEqual(["src", "src/bar.ts", "src/foo.ts"]);
    const chosen = await restore(without(base, "src"), base, { paths: ["src/foo.ts"] });
    expect(chosen.writes).toEqual(["src", "src/foo.ts"]);
  });

  test("removes new files and the directory that is empty then, and brings back empty ones (C052)", async () => {
    const wanted = { keep: file("keep"), empty: directory() };
    const now = { keep: file("keep"), "delete-me": file("d"), new: directory(), "new/x": file("x") };
    const plan = await restore(now, wanted, { ours: ["delete-me", "new", "new/x"] });
    expect(plan.deletes).toEqual(["delete-me", "new", "new/x"]);
    expect(plan.writes).toEqual(["empty"]);
  });

  test("keeps every directory above something that is kept", async () => {
    const now = { ...base, a: directory(), "a/b": directory(), "a/b/ours": file("o"), "a/b/users": file("u") };
    const plan = await restore(now, base, { ours: ["a", "a/b", "a/b/ours"], reason: "other-session" });
    expect(plan.deletes).toEqual(["a/b/ours"]);
    expect(plan.kept).toEqual(["a", "a/b", "a/b/users"].map((path) => ({ path, reason: "other-session" })));
  });

  test("puts nothing below a foreign file that is kept", async () => {
    const wanted = { ...base, d: directory(), "d/x": file("x") };
    const plan = await restore({ ...base, d: file("user's") }, wanted);
    expect(plan.operations).toEqual([]);
    expect(plan.kept).toEqual([
      { path: "d", reason: "foreign" },
      { path: "d/x", reason: "foreign" },
    ]);
  });

  test("exactly makes everything equal, but what is left out stays (U7)", async () => {
    const now = { ...base, "src/foo.ts": file("user"), x: file("x"), out: leftOut(), ".git": leftOut("vcs") };
    const plan = await restore(now, base, { exact: true });
    expect(plan.writes).toEqual(["src/foo.ts"]);
    expect(plan.deletes).toEqual(["x"]);
    expect(plan.omitted).toEqual([".git", "out"]);
  });

  test("keeps what is below a directory that the target leaves out", async () => {
    const now = { ...base, out: directory(), "out/a": file("a"), "out/d": directory(), "out/d/b": file("b") };
    const plan = await restore(now, { ...base, out: leftOut() }, { exact: true });
    expect(plan.operations).toEqual([]);
    expect(plan.omitted).toEqual(["out", "out/a", "out/d", "out/d/b"]);
  });

  test("replaces kinds by kinds (C116)", async () => {
    const now = { x: link("/outside"), y: directory(), "y/f": file("f"), z: file("z") };
    const wanted = { x: file("x"), y: link("x"), z: directory(), "z/in": file("in") };
    const all = await restore(now, wanted, { exact: true });
    expect(all.writes).toEqual(["x", "y", "z", "z/in"]);
    expect(all.deletes).toEqual(["y/f"]);
    const careful = await restore(now, wanted, { ours: ["x", "y", "z"] });
    expect(careful.writes).toEqual(["x", "z", "z/in"]);
    expect(careful.kept).toEqual([
      { path: "y", reason: "foreign" },
      { path: "y/f", reason: "foreign" },
    ]);
  });
});
