import { describe, expect, test } from "vitest";
import { LooprigError } from "../core/index.js";
import type { Change, ExecResult } from "../workspace/index.js";
import { coverageLine, execLine } from "./render-exec.js";
import { plainStyle } from "./style.js";
import { checkpoint, foreignChange, home, root } from "./testing/samples.js";

const changes = (edited: number, deleted: number): Change[] => [
  ...Array.from({ length: edited }, (_, i) => foreignChange(`e${i}`)),
  ...Array.from({ length: deleted }, (_, i) => foreignChange(`d${i}`, "deleted")),
];
const line = (more: Partial<ExecResult>, undoOnFailure = false): string =>
  execLine(
    {
      ...{ exitCode: 0, signal: undefined, turn: 3, changes: changes(12, 1), durationMs: 41 * 60_000 },
      ...{ checkpoints: Array.from({ length: 9 }, (_, i) => checkpoint(i + 1)), protected: true, undone: false },
      ...more,
    },
    undoOnFailure,
    plainStyle,
  );

describe("the line after a command", () => {
  test("says what changed and how to take it back", () => {
    expect(line({})).toBe(
      "looprig: t3, 12 files changed, 1 deleted, in 41 min, 9 checkpoints. looprig undo takes it back.\n",
    );
  });

  test("leaves out what is as always", () => {
    const short = { checkpoints: [checkpoint(1), checkpoint(2)], durationMs: 2_100 };
    expect(line({ ...short, changes: changes(1, 0) })).toBe(
      "looprig: t3, 1 file changed, in 2.1 s. looprig undo takes it back.\n",
    );
    expect(line({ ...short, changes: changes(0, 2) })).toContain("t3, 2 files deleted, in");
    expect(line({ ...short, changes: [{ ...foreignChange("new", "added"), entry: "directory" }] })).toContain(
      "t3, 1 directory changed, in",
    );
  });

  test("is absent when nothing changed", () => expect(line({ changes: [] })).toBe(""));

  test("says so when the turn could not be captured, also when no change is known", () => {
    expect(line({ protected: false })).toContain(" Not protected: it could not be captured completely");
    expect(line({ protected: false, changes: [] })).toContain("looprig: t3, changes unknown, in 41 min");
  });

  test("promises no undo of what was not captured", () => {
    const lost = (name: string): Change => ({ ...foreignChange(name), captured: false });
    expect(line({ changes: [lost(".env"), ...changes(1, 0)] })).toContain(
      "2 files changed, in 41 min, 9 checkpoints. looprig undo takes back the rest: .env was not captured.\n",
    );
    expect(line({ changes: [lost("a\nb")] })).toContain('. Undo cannot take it back: "a\\nb" was not captured.\n');
    expect(line({ changes: [lost("a"), lost("b")] })).toContain(
      "Undo cannot take it back: 2 paths were not captured.\n",
    );
    expect(line({ exitCode: 2, changes: [lost("a"), ...changes(1, 0)] }, true)).toContain(
      "Not all of it was taken back, though it ended with 2: a was not captured.\n",
    );
  });

  test("says why --undo-on-failure could not undo", () => {
    const undoFailure = new LooprigError("storage.full", "Cannot write: the disk is full", { path: "/x" });
    expect(line({ exitCode: 2, undoFailure }, true)).toContain(
      "Not taken back, though it ended with 2: Cannot write: the disk is full.\n",
    );
    const consent = new LooprigError("undo.needs_consent", "Cannot", { turn: "t3", paths: [] });
    expect(line({ exitCode: 2, undoFailure: consent }, true)).toContain("looprig undo says why and asks.\n");
  });

  test("tells what became of --undo-on-failure", () => {
    expect(line({ exitCode: 2, undone: true }, true)).toContain(
      "Taken back, because it ended with 2. looprig redo puts it back.",
    );
    expect(line({ exitCode: 2 }, true)).toContain(
      "Not taken back, though it ended with 2: looprig undo says why and asks.",
    );
    expect(line({ exitCode: 0 }, true)).toContain("looprig undo takes it back.");
  });
});

test("what is covered is said in one line", () => {
  expect(coverageLine(root, home)).toBe(
    "looprig: only files below ~/calc are covered; .git is not. This line is shown once.\n",
  );
});
