import { describe, expect, test } from "vitest";
import { chooseRoot, withoutHistory, withoutHistoryHint } from "./root-choice.js";

const day = (n: number): Date => new Date(2026, 10, n);
const known = [
  { root: "/home/ada/calc", lastAt: day(1) },
  { root: "/home/ada/calc/vendor/lib", lastAt: day(2) },
  { root: "/home/ada/other", lastAt: day(3) },
];
const same = (root: string): string => root;

describe("the root a command speaks of", () => {
  test("is the nearest known directory at or above the current one", () => {
    expect(chooseRoot(undefined, "/home/ada/calc", known)).toMatchObject({ root: "/home/ada/calc", foundAbove: false });
    expect(chooseRoot(undefined, "/home/ada/calc/src", known)).toMatchObject({
      root: "/home/ada/calc",
      foundAbove: true,
    });
    expect(chooseRoot(undefined, "/home/ada/calc/vendor/lib/src", known).root).toBe("/home/ada/calc/vendor/lib");
  });

  test("is the current directory where none is known above it", () => {
    expect(chooseRoot(undefined, "/home/ada", known)).toMatchObject({ root: "/home/ada", known: false });
  });

  test("a name that only begins alike is another directory", () => {
    expect(chooseRoot(undefined, "/home/ada/calculus", known).root).toBe("/home/ada/calculus");
  });

  test("is what --root says, known or not", () => {
    expect(chooseRoot("/tmp/x", "/home/ada/calc", known)).toMatchObject({
      root: "/tmp/x",
      known: false,
      foundAbove: false,
    });
    expect(chooseRoot("/home/ada/other", "/home/ada/calc", known)).toMatchObject({ known: true, foundAbove: false });
  });

  test("the root of the file system can be the one above", () => {
    expect(chooseRoot(undefined, "/srv", [{ root: "/", lastAt: day(1) }])).toMatchObject({ root: "/", known: true });
  });
});

describe("a root without a history", () => {
  test("names the directory above that has one", () => {
    const choice = chooseRoot("/home/ada/calc/src", "/tmp", known);
    expect(withoutHistory(choice, same)).toBe(
      "looprig has no history of /home/ada/calc/src; it has one of /home/ada/calc above it",
    );
    expect(withoutHistoryHint(choice)).toBe("--root /home/ada/calc");
  });

  test("names the one below that was used last, and how many more there are", () => {
    const choice = chooseRoot(undefined, "/home/ada", known);
    expect(withoutHistory(choice, same)).toBe(
      "looprig has no history of /home/ada; it has one of /home/ada/other below it and of 2 more",
    );
    expect(withoutHistoryHint(choice)).toBe("--root /home/ada/other");
  });

  test("is typed as a shell reads it back", () => {
    const choice = chooseRoot(undefined, "/srv", [{ root: "/srv/a b\n", lastAt: new Date(0) }]);
    expect(withoutHistoryHint(choice)).toBe("--root $'/srv/a b\\x0a'");
  });

  test("says how to begin where there is none at all", () => {
    const choice = chooseRoot(undefined, "/home/ada", []);
    expect(withoutHistory(choice, same)).toBe("looprig has no history of /home/ada");
    expect(withoutHistoryHint(choice)).toBe("looprig exec -- <command>");
  });
});
