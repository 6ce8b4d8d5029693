/** The rules of docs/rules.md and the tests that prove them hold on to each other: `npm run docs:rules` lists which is whose. */
import { expect, test } from "vitest";
import { citedRules, readCitations, testNames } from "../scripts/rules.mjs";

const { rules, strays } = readCitations();

test("every rule is cited by a test", () => {
  expect(rules.filter(({ tests }) => tests.length === 0).map(({ rule }) => rule)).toEqual([]);
});

test("every citation is of a rule", () => {
  expect(strays).toEqual([]);
});

test("the rules of a letter are numbered without a gap, each once", () => {
  const letters = [...new Set(rules.map(({ rule }) => rule.slice(0, 1)))];
  expect(letters).toEqual(["P", "R", "B", "S", "T", "C", "E", "K", "U", "G"]);
  for (const letter of letters) {
    const numbers = rules.filter(({ rule }) => rule.startsWith(letter)).map(({ rule }) => Number(rule.slice(1)));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  }
});

// With letters that no rule has, since this file is read for citations too.
test("citations are known by their form, and cases and other words are none", () => {
  expect([...citedRules('it("waits (X1, Y11–Y13)") // Z2: why\n/** W4: a seed', "WXYZ")]).toEqual([
    ...["X1", "Y11", "Y12", "Y13", "Z2", "W4"],
  ]);
  expect([...citedRules('"X036 (b)", `X2`, of Y2 and AZ3', "XYZ")]).toEqual([]);
  expect(testNames('it("a (X1)", f); test.each([1])("b %s", f); describe(`c`, f); each("no")')).toEqual([
    ...['"a (X1)"', '"b %s"', "`c`"],
  ]);
});
