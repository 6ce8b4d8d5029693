import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nameToBytes } from "../core/index.js";
import { bytes, count, duration, number } from "./amounts.js";
import { changeLines } from "./change-lines.js";
import { columns, displayWidth, fit } from "./columns.js";
import { colourDiff, statText } from "./render-diff.js";
import { displayRoot, shellWord } from "./spelling.js";
import { plainStyle, styleFor } from "./style.js";
import { at, fileDiff, home } from "./testing/samples.js";
import { ago, clock } from "./times.js";

describe("amounts", () => {
  test("carry their noun and group their digits", () => {
    expect([count(1, "file"), count(2, "file"), count(0, "directory", "directories")]).toEqual([
      "1 file",
      "2 files",
      "0 directories",
    ]);
    expect([number(9_999), number(12_480), number(1_234_567)]).toEqual(["9999", "12 480", "1 234 567"]);
  });

  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [1.8 * 2 ** 20, "1.8 MiB"],
    [512 * 2 ** 20, "512 MiB"],
    [5 * 2 ** 40, "5.0 TiB"],
  ])("%i bytes are %s", (n, wanted) => expect(bytes(n)).toBe(wanted));

  test.each([
    [350, "0.3 s"],
    [4, "0.1 s"],
    [2_100, "2.1 s"],
    [38_000, "38 s"],
    [41 * 60_000, "41 min"],
    [3 * 3_600_000, "3 h"],
    [3 * 3_600_000 + 5 * 60_000, "3 h 5 min"],
  ])("%i ms are %s", (ms, wanted) => expect(duration(ms)).toBe(wanted));
});

describe("times", () => {
  test("are clock times today and dates before", () => {
    expect(clock(at(9, 5), at(23, 59))).toBe("09:05");
    expect(clock(new Date(2026, 10, 29, 23, 59), at(0, 0))).toBe("2026-11-29");
  });

  test.each([
    [0, "just now"],
    [12, "12 s ago"],
    [240, "4 min ago"],
    [7_200, "2 h ago"],
    [172_800, "2 d ago"],
    [90 * 86_400, "2026-09-01"],
    [-60, "just now"],
  ])("%i seconds are %s", (seconds, wanted) => {
    const now = at(12, 0);
    expect(ago(new Date(now.getTime() - seconds * 1000), now)).toBe(wanted);
  });
});

describe("columns", () => {
  test("count what a terminal shows", () => {
    expect([displayWidth("abc"), displayWidth("日本"), displayWidth("e\u0301"), displayWidth("📁")]).toEqual([
      3, 4, 1, 2,
    ]);
    expect(
      columns([
        ["日本", "x"],
        ["abc", "y"],
      ]),
    ).toEqual(["日本  x", "abc   y"]);
  });

  test("leave no space at the end of a line and paint after padding", () => {
    expect(
      columns([
        ["a", ""],
        ["bb", "c"],
      ]),
    ).toEqual(["a", "bb  c"]);
    expect(
      columns([
        [{ text: "a", paint: (text) => `<${text}>` }, "b"],
        ["ccc", "d"],
      ])[0],
    ).toBe("<a>    b");
  });

  test("one very long name does not move the other rows", () => {
    const long = "x".repeat(61);
    expect(
      columns([
        [long, "1"],
        ["a", "2"],
        ["bcd", "3"],
      ]),
    ).toEqual([`${long}  1`, "a    2", "bcd  3"]);
  });

  test("cut what is too wide with an ellipsis", () => {
    expect(fit("abcdef", 4)).toBe("abc…");
    expect(fit("日本語", 4)).toBe("日…");
    expect(fit("abcd", 4)).toBe("abcd");
  });
});

describe("roots and words", () => {
  test("a root below the home directory is shown from there", () => {
    expect(displayRoot("/home/ada/calc", home)).toBe("~/calc");
    expect(displayRoot("/home/adam", home)).toBe("/home/adam");
    expect(displayRoot("/srv/x", "/")).toBe("/srv/x");
  });

  test("a word is quoted only where a shell needs it", () => {
    expect([shellWord("src/a-b.js"), shellWord("a b"), shellWord("it's")]).toEqual([
      "src/a-b.js",
      "'a b'",
      `'it'\\''s'`,
    ]);
  });

  test("a word that a terminal could not show is still one that a shell reads back", () => {
    expect(shellWord("a\nb")).toBe("$'a\\x0ab'");
    expect(shellWord("caf\udce9 it's")).toBe("$'caf\\xe9 it\\'s'");
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "0", "'", " ", "\\", "\n", "\u001b", "\u202e", "\udce9", "é", "$")),
        (characters) => {
          const word = characters.join("");
          const read = execFileSync("bash", ["-c", `printf %s ${shellWord(word)}`]);
          expect(read.equals(nameToBytes(word))).toBe(true);
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe("colour", () => {
  const wish = { terminal: true, noColor: false, env: {} };

  test("is for terminals that want it only", () => {
    expect(styleFor(wish).red("x")).toBe("\u001b[31mx\u001b[39m");
    for (const without of [
      { terminal: false },
      { noColor: true },
      { env: { NO_COLOR: "1" } },
      { env: { TERM: "dumb" } },
    ]) {
      expect(styleFor({ ...wish, ...without }).red("x")).toBe("x");
    }
    expect(styleFor({ ...wish, env: { NO_COLOR: "" } }).red("x")).not.toBe("x");
  });

  test("changes no character of a difference", () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n c\n";
    const coloured = colourDiff(diff, styleFor(wish));
    expect(coloured).not.toBe(diff);
    expect(coloured.replace(/\u001b\[\d+m/g, "")).toBe(diff);
  });
});

describe("changed paths", () => {
  test("are aligned with their lines", () => {
    const changes = [
      { path: "src/parse.js", kind: "edited", lines: { added: 2, removed: 1, binary: false }, note: "Edit" },
      { path: "new", kind: "added", entry: "directory" },
      { path: "logo.png", kind: "deleted", lines: { added: 0, removed: 0, binary: true } },
    ] as const;
    expect(changeLines(changes, plainStyle)).toEqual([
      "  M src/parse.js  +2 -1     Edit",
      "  A new/",
      "  D logo.png      binary",
    ]);
  });

  test("are summed up", () => {
    const dir = fileDiff("new", 0, 0, { entry: "directory", kind: "added" });
    expect(statText([fileDiff("a", 2, 1), fileDiff("b", 1, 1), dir], plainStyle)).toBe(
      "  M a     +2 -1\n  M b     +1 -1\n  A new/\n2 files, +3 -2\n",
    );
    expect(statText([], plainStyle)).toBe("");
  });
});
