import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluate } from "../src/evaluate.js";
import { format } from "../src/format.js";
import { parse } from "../src/parse.js";
import { round } from "../src/round.js";

const calc = (text) => evaluate(parse(text));

test("products bind closer than sums", () => assert.equal(calc("2 + 3 * 4"), 14));
test("parentheses bind closest", () => assert.equal(calc("2 * (3 + 4)"), 14));
test("a sign on the left is kept", () => assert.equal(calc("-2 + 5"), 3));
test("a sign on the right of a product is kept", () => assert.equal(calc("2 * -3"), -6));
test("dividing by zero is refused", () => assert.throws(() => calc("1 / 0"), RangeError));
test("half is rounded away from zero", () => assert.equal(round(2.5, 0), 3));
test("half is rounded away from zero below zero too", () => assert.equal(round(-2.5, 0), -3));
test("thousands are grouped", () => assert.equal(format(1234567.5), "1 234 567.5"));
