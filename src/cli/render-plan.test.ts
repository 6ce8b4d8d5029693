import { describe, expect, test } from "vitest";
import type { RestorePlan, RestoreReceipt } from "../workspace/index.js";
import { conflictText, dryRunText, foreignText, nothingText, planText, receiptText } from "./render-plan.js";
import type { PlanView } from "./render-plan.js";
import { sessionNames } from "./session-names.js";
import { plainStyle } from "./style.js";
import { at, checkpoint, fileDiff, first, path, plan, refOf, second, turn } from "./testing/samples.js";

const lines = new Map([
  ["src/parse.js", fileDiff("src/parse.js", 1, 2)],
  ["src/round.js", fileDiff("src/round.js", 1, 1)],
  ["scratch", fileDiff("scratch", 0, 0, { entry: "directory" })],
]);

const shown = (more: Partial<PlanView> = {}): PlanView => ({
  ...{ plan: plan(), turn: turn(1), lines, gone: new Set<string>(), now: at(13, 30), style: plainStyle },
  history: {
    turns: [turn(1), turn(2, { startedAt: at(13, 19), endedAt: at(13, 20), input: "round half up" })],
    checkpoints: [],
  },
  sessionName: sessionNames([first, second]),
  typed: (each) => each,
  ...more,
});

const round = path("src/round.js");
const byT2 = { kind: "session", strength: "recorded", sessionId: first, turnId: turn(2).turnId, turn: 2 } as const;
const conflicting = plan({ writes: [path("src/parse.js")], conflicts: [{ path: round, by: byT2 }] });

const receipt = (more: Partial<RestoreReceipt> = {}): RestoreReceipt => {
  const { writes, deletes, ...rest } = plan();
  return {
    ...rest,
    written: writes,
    deleted: deletes,
    result: "done",
    safety: refOf("c"),
    reverse: "looprig redo",
    ...more,
  };
};
const told = (more: Partial<RestoreReceipt>, namesSafety = false): string =>
  receiptText(receipt(more), { lines, gone: new Set(), style: plainStyle, namesSafety });

describe("a dry run", () => {
  test("shows the turn, its files with their lines, and that nothing was written", () => {
    expect(planText(shown()) + dryRunText(shown())).toMatchInlineSnapshot(`
      "undo t1 "make the tests pass"   session 3f9a, 13:02

        restore  src/parse.js  +1 -2
        restore  src/round.js  +1 -1

      2 files to restore, 0 to delete, 0 conflicts. Nothing was written.
      "
    `);
  });

  test("says of each path that an agent's command changed that it is not proven ours; a command's turn is one as a whole", () => {
    const half = plan({ deletes: [path("made")], unproven: [round, path("made")] });
    expect(planText(shown({ plan: half }))).toContain(
      [
        "  restore  src/parse.js  +1 -2",
        "  restore  src/round.js  +1 -1  in the window, not proven ours",
        "  delete   made                 in the window, not proven ours\n",
      ].join("\n"),
    );
    expect(planText(shown({ plan: half, turn: turn(1, { kind: "command" }) }))).not.toContain("not proven");
  });

  test("shows deletes, what is kept and why, and counts files, not their directories", () => {
    const wide = plan({
      deletes: [path("scratch"), path("scratch/todo.txt")],
      kept: [{ path: path("notes.md"), reason: "foreign" }],
      omitted: [path(".git")],
    });
    expect(planText(shown({ plan: wide })) + dryRunText(shown({ plan: wide }))).toMatchInlineSnapshot(`
      "undo t1 "make the tests pass"   session 3f9a, 13:02

        restore  src/parse.js      +1 -2
        restore  src/round.js      +1 -1
        delete   scratch/
        delete   scratch/todo.txt
        keep     notes.md          not by looprig

      2 files to restore, 1 to delete, 1 to keep, 0 conflicts. Nothing was written.
      .git was not captured and stays as it is.
      "
    `);
  });
});

describe("a conflict", () => {
  test("names who changed the file and what to type", () => {
    const view = shown({ plan: conflicting });
    expect(planText(view) + conflictText(view)).toMatchInlineSnapshot(`
      "undo t1 "make the tests pass"   session 3f9a, 13:02

        restore   src/parse.js  +1 -2
        conflict  src/round.js  changed at 13:20 by 3f9a t2

      1 conflict, so nothing was written.
        looprig diff t1 now -- src/round.js     what is different
        looprig undo t1 --skip-conflicts        the other file only
        looprig undo t2                         first take back what came later
      "
    `);
  });

  test("of two turns at the same time does not send from one to the other and back", () => {
    const turns = [
      turn(1, { from: refOf("1"), endedAt: at(13, 20) }),
      turn(2, { startedAt: at(13, 3), from: refOf("2") }),
    ];
    const view = (number: 1 | 2): PlanView =>
      shown({
        plan: plan({
          entry: `t${number}`,
          writes: [path("src/parse.js")],
          conflicts: [{ path: round, by: { ...byT2, turn: 3 - number } }],
        }),
        turn: turns[number - 1],
        history: { turns, checkpoints: [checkpoint(1), checkpoint(2)] },
      });
    expect(conflictText(view(2))).toMatchInlineSnapshot(`
      "1 conflict, so nothing was written.
      t2 and t1 wrote at the same time, so neither can be taken back from under the other.
        looprig diff t2 now -- src/round.js     what is different
        looprig undo t2 --skip-conflicts        the other file only
        looprig restore c1 -- src/round.js      as it was before both
      "
    `);
    expect(conflictText(view(1))).not.toContain("looprig undo t2");
    expect(conflictText(view(1))).toContain("looprig restore c1 -- src/round.js");
  });

  test("counts the other files, not their directories", () => {
    const others = [path("scratch"), path("src/parse.js"), path("x.js")];
    expect(conflictText(shown({ plan: { ...conflicting, writes: others } }))).toContain("the other 2 files only\n");
    expect(conflictText(shown({ plan: { ...conflicting, writes: [], deletes: [path("scratch")] } }))).toContain(
      "the other directory only\n",
    );
  });

  test("by somebody else does not suggest to undo them", () => {
    const view = shown({ plan: plan({ writes: [], conflicts: [{ path: round, by: { kind: "foreign" } }] }) });
    expect(planText(view) + conflictText(view)).toMatchInlineSnapshot(`
      "undo t1 "make the tests pass"   session 3f9a, 13:02

        conflict  src/round.js  changed since, not by looprig

      1 conflict, so nothing was written.
        looprig diff t1 now -- src/round.js     what is different
      "
    `);
  });
});

describe("a receipt", () => {
  test("ends with the command that reverses it", () => {
    expect(told({})).toBe("2 files restored. looprig redo puts them back.\n");
    expect(told({ written: [round] })).toBe("1 file restored. looprig redo puts it back.\n");
    expect(told({ action: "redo", reverse: "looprig undo" })).toBe("2 files put back. looprig undo takes that back.\n");
  });

  test("counts deletes, skipped conflicts and what was kept", () => {
    expect(
      told({
        deleted: [path("x")],
        conflicts: [{ path: path("y"), by: byT2 }],
        kept: [{ path: path("z"), reason: "foreign" }],
      }),
    ).toBe("2 files restored, 1 deleted, 1 conflict left alone, 1 kept. looprig redo puts them back.\n");
    expect(told({ written: [], deleted: [path("x")] })).toBe("1 file deleted. looprig redo puts it back.\n");
  });

  test("names what somebody wrote meanwhile, and where it is kept", () => {
    const raced = [{ path: round, by: { kind: "foreign" }, storedAs: path("src/.looprig-1-2") } as const];
    const done = receipt({ result: "partly", conflicts: raced });
    const text = receiptText(done, { lines, gone: new Set(), style: plainStyle, namesSafety: false, raced });
    expect(text).toBe(
      "2 files restored, 1 conflict left alone. looprig redo puts them back.\n" +
        "conflict: src/round.js was written meanwhile, not by looprig; that is kept as src/.looprig-1-2\n",
    );
  });

  test("names the ref of what was there, where someone else may have written it", () => {
    expect(told({}, true)).toBe(
      "2 files restored. looprig redo puts them back.\nWhat was there before is kept as cccccccc.\n",
    );
  });

  test("says that commits stay when HEAD moved", () => {
    expect(told({ headMoved: [`a1b2c3d${"0".repeat(33)}`, `9f8e7d6${"0".repeat(33)}`] })).toContain(
      "note: HEAD moved since t1 (a1b2c3d to 9f8e7d6); commits are git's and stay.\n",
    );
  });

  test("names the turns that were passed over", () => {
    expect(told({ passedOver: ["t3", "t2"] })).toContain("t3, t2 have nothing to take back and were passed over.\n");
  });
});

test("an exact restore lists every path of someone else's, however many", () => {
  const foreign = Array.from({ length: 200 }, (_, i) => path(`f${i}`));
  const text = foreignText(shown({ plan: plan({ foreign }), listed: 3 }));
  expect(text.split("\n")).toHaveLength(1 + 200 + 2);
  expect(text.startsWith("not written by looprig, and replaced or deleted all the same\n  f0\n")).toBe(true);
});

test("a long list is shortened where a dry run shows it whole", () => {
  const long = plan({ writes: Array.from({ length: 50 }, (_, i) => path(`f${i}`)) });
  expect(planText(shown({ plan: long, listed: 10 }))).toContain("… and 40 more; --dry-run lists all");
  expect(planText(shown({ plan: long }))).toContain("f49");
});

test("nothing to do is said, with what was passed over", () => {
  expect(nothingText(undefined, { kind: "redo" })).toBe("There is nothing to redo here.\n");
  const { entry, ...rest } = plan({ writes: [], passedOver: ["t2"] });
  expect(entry).toBe("t1");
  expect(nothingText(rest, { kind: "undo" })).toBe(
    "There is nothing to undo here. t2 has nothing to take back and was passed over.\n",
  );
  expect(nothingText(plan({ writes: [] }), { kind: "undo" })).toBe("t1: every file is as it would be.\n");
});

test("an entry that was named is not followed by how to name one; narrowed paths are spoken of", () => {
  const kept = [{ path: path(".env"), reason: "omitted" }] as const;
  expect(nothingText(plan({ writes: [], kept }), { kind: "undo", turn: "t1" })).not.toContain("TURN");
  const { entry: _none, ...rest } = plan({ writes: [], passedOver: ["t2"] });
  expect(nothingText(rest, { kind: "undo", paths: ["src"] })).toBe(
    "There is nothing to undo there. t2 has nothing to take back there and was passed over.\n",
  );
});

test("what stays is never called as it would be", () => {
  const kept = (...each: RestorePlan["kept"]): RestorePlan => plan({ writes: [], kept: each });
  const env = { path: path(".env"), reason: "omitted" } as const;
  const notes = { path: path("notes.md"), reason: "foreign" } as const;
  const told = (given: RestorePlan, ...gone: string[]): string => nothingText(given, { kind: "undo" }, new Set(gone));
  expect(told(kept(env))).toBe(
    "t1: nothing can be taken back. .env was not captured and stays as it is. looprig undo TURN takes back earlier ones.\n",
  );
  expect(told(kept(env), ".env")).toBe(
    "t1: nothing can be taken back. .env was not captured and is gone; it cannot be brought back. looprig undo TURN takes back earlier ones.\n",
  );
  expect(told(kept(notes, { ...notes, path: path("x") }, env), ".env")).toBe(
    "t1: nothing can be taken back. 2 paths stay as they are: not by looprig. " +
      ".env was not captured and is gone; it cannot be brought back. looprig undo TURN takes back earlier ones.\n",
  );
});

test("an uncaptured path that is gone is not said to be kept", () => {
  const kept = [
    { path: path("gone.env"), reason: "omitted" },
    { path: path("here.env"), reason: "omitted" },
  ] as const;
  const gone = new Set(["gone.env"]);
  const view = shown({ plan: plan({ kept, omitted: kept.map((each) => each.path) }), gone });
  expect(planText(view)).toContain(
    "  gone     gone.env      was not captured; it cannot be brought back\n  keep     here.env      not captured\n",
  );
  const text = receiptText(receipt({ kept, omitted: kept.map((each) => each.path) }), {
    ...{ lines, gone, style: plainStyle, namesSafety: false },
  });
  expect(text).toBe(
    "2 files restored, 1 kept. looprig redo puts them back.\nhere.env was not captured and stays as it is.\n" +
      "gone.env was not captured and is gone; it cannot be brought back.\n",
  );
});

test("a title cannot steer the terminal", () => {
  const evil = turn(1, { input: "x\u001b[2Jy\nz\u202e" });
  expect(planText(shown({ turn: evil })).split("\n")[0]).toBe('undo t1 "x\ufffd[2Jy z\ufffd"   session 3f9a, 13:02');
});
