import { describe, expect, test } from "vitest";
import type { Checkpoint, TurnSummary, UndoEntry } from "../workspace/index.js";
import { logRows } from "./log-rows.js";
import { logText } from "./render-log.js";
import { sessionNames } from "./session-names.js";
import { plainStyle } from "./style.js";
import { at, checkpoint, first, home, refOf, root, second, turn } from "./testing/samples.js";

const taken = (number: number, more: Partial<Checkpoint>): Checkpoint => checkpoint(number, more);

/** The documentation's story, with what surrounds the undo and redo of t2. */
const checkpoints: readonly Checkpoint[] = [
  taken(1, { at: at(13, 1) }),
  taken(2, { at: at(13, 2), trigger: "window", turn: 1, ref: refOf("2") }),
  taken(3, { at: at(13, 20), trigger: "window", turn: 2, ref: refOf("3") }),
  taken(4, { at: at(14, 2), sessionId: second, turn: 3, ref: refOf("3") }),
  ...[5, 6, 7, 8, 9, 10, 11, 12].map((number) =>
    taken(number, {
      trigger: "interval",
      consistency: "fuzzy",
      turn: 3,
      sessionId: second,
      ref: refOf((number % 16).toString(16)),
    }),
  ),
  taken(13, { at: at(14, 43), trigger: "window", turn: 3, sessionId: second, ref: refOf("d") }),
];
const turns: readonly TurnSummary[] = [
  turn(1, { to: refOf("2"), endedAt: at(13, 2), changed: 2, order: 20 }),
  turn(2, {
    ...{ to: refOf("3"), input: "round half up", endedAt: at(13, 20), changed: 1, order: 30 },
    ...{ undoneAt: at(13, 24), redoneAt: at(13, 25) },
  }),
  turn(3, {
    ...{
      to: refOf("d"),
      input: "claude",
      kind: "command",
      sessionId: second,
      endedAt: at(14, 43),
      changed: 13,
      order: 130,
    },
  }),
];

interface Story {
  readonly checkpoints: readonly Checkpoint[];
  readonly turns: readonly TurnSummary[];
  readonly entries?: readonly UndoEntry[];
}
const text = (story: Story, { all = false, limit = 20 } = {}): string => {
  const history = { entries: [], ...story };
  return logText({ root, damaged: [], checkpoints: story.checkpoints }, logRows(history, all), {
    ...{ home, now: at(15, 0), sessionName: sessionNames([first, second]), style: plainStyle, limit, all },
    stored: { bytes: 1.8 * 1024 * 1024, shared: false },
  });
};

describe("log", () => {
  test("hides what an agent's session takes by itself where it holds the same tree again, and --all shows it", () => {
    const story = {
      checkpoints: [
        taken(1, { turn: 1 }),
        taken(2, { trigger: "window", turn: 1, ref: refOf("2") }),
        taken(3, { trigger: "idle", ref: refOf("2") }),
        taken(4, { turn: 2, ref: refOf("2") }),
        taken(5, { trigger: "window", turn: 2, ref: refOf("5") }),
        taken(6, { trigger: "idle", ref: refOf("6") }),
        taken(7, { turn: 3, sessionId: second, ref: refOf("6") }),
      ],
      turns: [
        turn(1, { to: refOf("2"), order: 20 }),
        turn(2, { to: refOf("5"), order: 50, input: "once more" }),
        turn(3, { state: "running", order: 71, sessionId: second }),
      ],
    };
    const names = (all: boolean): string[] =>
      [...text(story, { all }).matchAll(/^ {2}(c\d+) /gm)].map(([, name]) => name ?? "");
    expect(names(false)).toEqual(["c7", "c6", "c5", "c2", "c1"]);
    expect(text(story)).toContain("baseline, equal to c6");
    expect(text(story, { all: true })).toMatch(
      / c5 .* 2 files {3}quiescent\n.* c4 .* baseline, equal to c3 {2,}quiescent\n/,
    );
    expect(names(true)).toEqual(["c7", "c6", "c5", "c4", "c3", "c2", "c1"]);
  });

  test("shows turns and checkpoints, newest first, and folds what was taken while a command ran", () => {
    expect(text({ checkpoints, turns })).toMatchInlineSnapshot(`
      "~/calc   2 sessions, 13 checkpoints, 1.8 MiB

        c13      14:43  b71c  t3  exec claude              13 files
        c5~-c12~        b71c      8 taken while it ran    log --all shows them
        c4       14:02  b71c      baseline, equal to c3
        c3       13:20  3f9a  t2  "round half up"           1 file    undone 13:24, redone 13:25
        c2       13:02  3f9a  t1  "make the tests pass"     2 files
        c1       13:01  3f9a      baseline                214 files
      "
    `);
  });

  test("folds what was captured after each command of a turn, also where another turn ran at the same time", () => {
    const story = {
      checkpoints: [
        taken(1, { turn: 1 }),
        ...[2, 4, 5].map((number) => taken(number, { trigger: "window", turn: 1, ref: refOf(String(number)) })),
        taken(3, { trigger: "window", turn: 2, sessionId: second, ref: refOf("3") }),
        taken(6, { trigger: "window", turn: 2, sessionId: second, ref: refOf("6") }),
        taken(7, { trigger: "window", turn: 1, ref: refOf("7") }),
      ].sort((a, b) => a.order - b.order),
      turns: [
        turn(2, { to: refOf("6"), order: 60, sessionId: second, input: "beside it" }),
        turn(1, { to: refOf("7"), order: 70 }),
      ],
    };
    expect(text(story)).toMatchInlineSnapshot(`
      "~/calc   2 sessions, 7 checkpoints, 1.8 MiB

        c7       13:02  3f9a  t1  "make the tests pass"     2 files
        c6       13:02  b71c  t2  "beside it"               2 files
        c2-c5           3f9a      3 taken while it ran    log --all shows them
        c3              b71c      1 taken while it ran    log --all shows them
        c1       13:01  3f9a      baseline                214 files
      "
    `);
  });

  test("--all shows each of them", () => {
    const shown = text({ checkpoints, turns }, { all: true });
    expect(shown.split("\n").filter((line) => line.includes("while it ran"))).toHaveLength(8);
  });

  test("says how to see what was left out", () => {
    expect(text({ checkpoints, turns }, { limit: 2 })).toContain("\n4 older rows; looprig log -n 6 shows all\n");
  });

  test("what surrounds an undo is shown only when everything is, and names its entry", () => {
    const undo = taken(14, { trigger: "post-restore", ref: refOf("2"), restored: { action: "undo", entry: "t2" } });
    const story = { checkpoints: [...checkpoints, undo], turns };
    expect(text(story)).not.toContain("c14");
    expect(text(story, { all: true })).toContain("undo t2, equal to c2");
  });

  test("a restore is an entry, with what became of it", () => {
    const restore = taken(14, {
      trigger: "post-restore",
      ref: refOf("e"),
      restored: { action: "restore", entry: "c14" },
    });
    const entry: UndoEntry = {
      ...{ name: "c14", kind: "restore", sessionId: first, order: 140, at: at(14, 50), title: "restore c1" },
      ...{ state: "undone", from: refOf("d"), to: refOf("e") },
    };
    expect(text({ checkpoints: [...checkpoints, restore], turns, entries: [entry] })).toMatch(
      /^ {2}c14 .* restore c1 .* undone$/m,
    );
  });

  test("marks an unprotected turn, a failed one, and a partial checkpoint", () => {
    const story = {
      checkpoints: [taken(1, { completeness: "partial", at: at(13, 1) })],
      turns: [
        turn(1, { protected: false, order: 20, changed: 3 }),
        turn(2, { state: "failed", order: 30, changed: 0, protected: false }),
      ],
    };
    expect(text(story)).toMatchInlineSnapshot(`
      "~/calc   1 session, 1 checkpoint, 1.8 MiB

        x        13:02  3f9a  t2  "make the tests pass"               failed, not protected: undo is refused
        !        13:02  3f9a  t1  "make the tests pass"     3 files   not protected: undo is refused
        c1!      13:01  3f9a      baseline                214 files   partial: some files could not be read
      "
    `);
  });

  test("a turn that changed nothing has a row of its own", () => {
    const idle = turn(4, {
      kind: "command",
      input: "true",
      changed: 0,
      order: 200,
      endedAt: at(14, 50),
      from: refOf("d"),
      to: refOf("d"),
    });
    expect(text({ checkpoints, turns: [...turns, idle] })).toMatch(
      /14:50 {2}3f9a {2}t4 {2}exec true .* changed nothing$/m,
    );
  });

  test("a turn that only made directories is not said to have changed nothing", () => {
    const made = turn(4, {
      ...{ kind: "command", input: "mkdir x", changed: 0, order: 200, endedAt: at(14, 50) },
      ...{ from: refOf("d"), to: refOf("e") },
    });
    expect(text({ checkpoints, turns: [...turns, made] })).toMatch(/t4 {2}exec mkdir x .* changed no files$/m);
  });

  test("what a program did by itself is no command that was run", () => {
    const own = turn(4, { kind: "command", input: "this program", order: 200, to: refOf("d") });
    expect(text({ checkpoints, turns: [...turns, own] })).toContain("  t4  this program ");
  });
});
