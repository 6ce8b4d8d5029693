import { describe, expect, test } from "vitest";
import { choices, questionFor, readAnswer } from "./consent.js";
import type { Question } from "./consent.js";
import { path, plan } from "./testing/samples.js";

const none = new Map<string, never>();
const paths = (n: number): ReturnType<typeof path>[] => Array.from({ length: n }, (_, i) => path(`f${i}`));

describe("the default answer", () => {
  test.each([
    ["undo of exactly what a turn did", plan(), "yes"],
    ["redo of exactly what a turn did", plan({ action: "redo" }), "yes"],
    ["exactly a hundred paths", plan({ writes: paths(100) }), "yes"],
    ["more than a hundred paths", plan({ writes: paths(101) }), "no"],
    ["deletes", plan({ deletes: [path("x")] }), "no"],
    ["a restore", plan({ action: "restore" }), "no"],
    ["window changes in a shared root", plan({ window: [path("src/parse.js")] }), "no"],
    ["skipped conflicts", plan({ conflicts: [{ path: path("y"), by: { kind: "foreign" } }] }), "no"],
    ["replacing what someone else wrote", plan({ foreign: [path("src/parse.js")] }), "no"],
  ])("%s: %s", (_, given, wanted) => expect(questionFor(given, none).default).toBe(wanted));
});

describe("the question", () => {
  test("says how much is written and deleted", () => {
    expect(questionFor(plan(), none).text).toBe("Restore 2 files?");
    expect(questionFor(plan({ deletes: [path("x")] }), none).text).toBe("Restore 2 files and delete 1 file?");
    expect(questionFor(plan({ writes: [], deletes: paths(3) }), none).text).toBe("Delete 3 files?");
    expect(questionFor(plan({ action: "redo" }), none).text).toBe("Put back 2 files?");
  });

  test("shows its default", () => {
    expect(choices({ text: "", default: "yes" })).toBe("[Y/n]");
    expect(choices({ text: "", default: "no" })).toBe("[y/N]");
  });
});

describe("the answer", () => {
  const yes: Question = { text: "", default: "yes" };
  const no: Question = { text: "", default: "no" };

  test.each([
    ["", yes, "yes"],
    ["", no, "no"],
    ["y", no, "yes"],
    [" YES ", no, "yes"],
    ["n", yes, "no"],
    ["No", yes, "no"],
  ])("%j", (line, question, wanted) => expect(readAnswer(line, question)).toBe(wanted));

  test("anything else is asked again", () => {
    for (const line of ["yy", "ja", "1", "yes please", "\u001b[A"]) expect(readAnswer(line, yes)).toBeUndefined();
  });

  test("the end of input is a no, whatever the default", () => expect(readAnswer(undefined, yes)).toBe("no"));
});
