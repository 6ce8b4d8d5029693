import { describe, expect, test } from "vitest";
import { statusDocument } from "./documents.js";
import { statusText } from "./render-status.js";
import type { StatusData } from "./render-status.js";
import type { Change } from "../workspace/index.js";
import { sessionNames } from "./session-names.js";
import { plainStyle } from "./style.js";
import {
  at,
  checkpoint,
  fileDiff,
  first,
  foreignChange,
  holder,
  home,
  path,
  plan,
  root,
  second,
  turn,
} from "./testing/samples.js";

const history: StatusData["history"] = {
  checkpoints: [checkpoint(1, { at: at(13, 1) }), checkpoint(2, { at: at(13, 2), turn: 1, trigger: "window" })],
  turns: [turn(1)],
  damaged: [],
};
const undoable: StatusData["undoable"] = {
  plan: plan(),
  turn: turn(1),
  changed: [fileDiff("src/parse.js", 2, 1), fileDiff("src/round.js", 1, 1)],
  more: false,
  authors: new Map(),
};
const changes = [foreignChange("README.md"), foreignChange("notes.md", "added")];

const data: StatusData = {
  ...{ root, history, holder: undefined, changes: [], undoable: undefined, unsettled: undefined },
  waiting: new Set(),
};
const text = (more: Partial<StatusData>): string =>
  statusText(
    { ...data, ...more },
    { home, now: at(13, 6), sessionName: sessionNames([first, second]), style: plainStyle },
  );

describe("status", () => {
  test("shows what changed since the last checkpoint, by whom, and what can be undone", () => {
    expect(text({ changes, undoable })).toMatchInlineSnapshot(`
      "~/calc   free, last used by 3f9a 4 min ago   c2 4 min ago

      not by looprig, since c2
        M README.md
        A notes.md
      t1 "make the tests pass", 3f9a, can be undone
        M src/parse.js  +2 -1
        M src/round.js  +1 -1

      looprig undo takes back t1; README.md and notes.md stay.
      "
    `);
  });

  test("names the tool that made a change", () => {
    const by = {
      kind: "session",
      strength: "recorded",
      sessionId: first,
      turnId: turn(1).turnId,
      turn: 1,
      tool: "Edit",
    } as const;
    expect(
      text({ changes: [{ path: path("src/parse.js"), kind: "edited", entry: "file", captured: true, by }] }),
    ).toContain('t1 "make the tests pass", 3f9a, since c2\n  M src/parse.js            Edit\n');
  });

  test("tells an agent's own writes by their tool, and what its commands left as not proven ours", () => {
    const of = { kind: "other-session", sessionId: first, turn: 1 } as const;
    const authors = new Map([
      [path("src/parse.js"), { ...of, strength: "recorded", tool: "Edit" } as const],
      [path("src/round.js"), { ...of, strength: "window" } as const],
    ]);
    expect(text({ undoable: { ...undoable, authors } })).toContain(
      [
        't1 "make the tests pass", 3f9a, can be undone',
        "  M src/parse.js  +2 -1     Edit",
        "  M src/round.js  +1 -1     in the window, not proven ours\n",
      ].join("\n"),
    );
  });

  test("tells which command of an agent a path changed under, on one line, and who else was at work there", () => {
    const window = { kind: "other-session", strength: "window", sessionId: first, turn: 1, tool: "Bash" } as const;
    const command = "npm run format -- --write src\ntests and much more";
    const overlaps = [{ sessionId: second, turn: 3 }];
    const changed = (name: string, by: Change["by"]): Change => ({ ...foreignChange(name), by });
    expect(
      text({ changes: [changed("a.js", { ...window, command }), changed("b.js", { ...window, command, overlaps })] }),
    ).toContain(
      [
        't1 "make the tests pass", 3f9a, in the window, not proven ours, since c2',
        "  M a.js            Bash: npm run format -- --write src tests and…",
        "  M b.js            Bash: npm run format -- --write src tests and…, b71c t3 at the same time\n",
      ].join("\n"),
    );
    // Seen from the other turn, it is this one that was there at the same time.
    const authors = new Map([
      [path("src/round.js"), { ...window, turn: 3, sessionId: second, overlaps: [{ sessionId: first, turn: 1 }] }],
    ]);
    expect(text({ undoable: { ...undoable, authors } })).toContain(
      "  M src/round.js  +1 -1     in the window, not proven ours, b71c t3 at the same time\n",
    );
  });

  test("says of a command's changes that they are not proven ours", () => {
    const command = { ...undoable, turn: turn(1, { kind: "command", input: "claude" }) };
    expect(text({ undoable: command })).toContain(
      "t1 exec claude, 3f9a, in the window, not proven ours, can be undone\n",
    );
  });

  test("names the holder when the root is in use", () => {
    expect(text({ holder })).toBe('~/calc   in use: exec "claude", session b71c, pid 4121, since 14:02\n');
  });

  test("says that nothing changed", () => {
    expect(text({})).toBe("~/calc   nothing changed since c2, 4 min ago\n");
  });

  test("warns of an undo that would stop, and marks the paths", () => {
    const conflicts = [{ path: path("src/round.js"), by: { kind: "foreign" } as const }];
    const stopped = { ...undoable, plan: plan({ writes: [path("src/parse.js")], conflicts }) };
    const shown = text({ undoable: stopped });
    expect(shown).toContain("  M src/round.js  +1 -1     changed since\n");
    expect(shown).toContain("looprig undo would stop at 1 conflict; --dry-run shows them.\n");
  });

  test("names two of many files that stay", () => {
    const many = ["a", "b", "c", "d", "e"].map((name) => foreignChange(name));
    expect(text({ undoable, changes: many })).toContain("looprig undo takes back t1; a, b and 3 more stay.\n");
  });

  test("shortens long lists and says what lists all", () => {
    const many = Array.from({ length: 60 }, (_, i) => foreignChange(`f${i}`));
    const shown = text({ changes: many, undoable: { ...undoable, more: true } });
    expect(shown).toContain("  M f49\n  … and 10 more; --json lists all\n");
    expect(shown).toContain("  … and more; looprig diff --stat lists all\n");
  });

  test("reports a restore that was cut short and a damaged journal", () => {
    const shown = text({ unsettled: { planId: "p", action: "undo" }, history: { ...history, damaged: [second] } });
    expect(shown).toContain("! an undo was cut short here");
    expect(shown).toContain("! the journal of session b71c is damaged");
  });

  test("names a turn that was cut short, and that undo asks", () => {
    const turns = [turn(1), turn(2, { kind: "command", input: "claude", state: "unsettled" })];
    expect(text({ history: { ...history, turns } })).toContain(
      "\n! t2 exec claude was cut short; the next command that writes settles it, and looprig undo asks before it takes it back\n",
    );
    expect(statusDocument({ ...data, history: { ...history, turns } })).toMatchObject({ unsettledTurns: ["t2"] });
  });

  test("names a turn that was cut short at a question, and what asks it again", () => {
    const turns = [turn(1), turn(2, { sessionId: second, state: "unsettled" })];
    const asked = { history: { ...history, turns }, waiting: new Set([turn(2).turnId]) };
    expect(text(asked)).toContain(
      '\n! t2 "make the tests pass" was cut short at a question; looprig run --resume b71c asks it again, any other command that writes ends the turn\n',
    );
    expect(statusDocument({ ...data, ...asked })).toMatchObject({ unsettledTurns: ["t2"], waitingTurns: ["t2"] });
  });

  test("lists what a turn that was cut short left with that turn alone", () => {
    const cut = turn(1, { state: "unsettled" });
    const by = { kind: "other-session", strength: "window", sessionId: first, turn: 1 } as const;
    const left = { ...foreignChange("src/parse.js"), by };
    const shown = text({
      changes: [left, { ...left, path: path("later.js") }],
      history: { ...history, turns: [cut] },
      undoable: { ...undoable, turn: cut },
    });
    expect(shown.match(/src\/parse\.js/g)).toHaveLength(1);
    expect(shown).toContain("in the window, not proven ours, since c2\n  M later.js\n");
  });

  test("says of every path that undo asks about in an agent's turn that it is not proven ours", () => {
    const asks = { ...undoable, plan: plan({ window: [path("src/round.js")] }) };
    expect(text({ undoable: asks })).toMatch(
      /^ {2}M src\/parse\.js {2}\+2 -1\n {2}M src\/round\.js .* in the window, not proven ours$/m,
    );
  });

  test("marks what was left out of the captures", () => {
    const shown = text({ changes: [{ ...foreignChange("x.log", "added"), captured: false }, foreignChange("y")] });
    expect(shown).toMatch(/^ {2}A x\.log +not captured\n {2}M y$/m);
  });

  test("promises no undo of what was not captured", () => {
    const env = path(".env");
    const changed = [fileDiff(".env", 0, 0), fileDiff("src/parse.js", 1, 1)];
    const partly = plan({ writes: [path("src/parse.js")], kept: [{ path: env, reason: "omitted" }], omitted: [env] });
    const some = text({ undoable: { plan: partly, turn: turn(1), changed, more: false, authors: new Map() } });
    expect(some).toMatch(/^ {2}M \.env +not captured$/m);
    expect(some).toMatch(/\nlooprig undo takes back t1; 1 path was not captured\.\n$/);
    const none = { ...partly, writes: [] };
    const shown = { plan: none, turn: turn(1), changed, more: false, authors: new Map() };
    expect(text({ undoable: shown })).toMatch(
      /3f9a, not captured\n[^]*\nlooprig undo cannot take back t1: 1 path was not captured\.\n$/,
    );
    expect(statusDocument({ ...data, undoable: shown })).not.toHaveProperty("undoable");
  });
});
