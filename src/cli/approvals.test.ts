import { expect, test } from "vitest";
import { readApproval } from "./approvals.js";

test.each<[string, ReturnType<typeof readApproval>]>([
  ["y", { approve: true }],
  [" YES ", { approve: true }],
  ["a", "always"],
  ["always", "always"],
  ["n", { approve: false }],
  ["no, use the other script ", { approve: false, reason: "use the other script" }],
  ["n: not now", { approve: false, reason: "not now" }],
  ["", undefined],
  ["yes but", undefined],
  ["yep", undefined],
  ["nothing", undefined],
  ["1", undefined],
])("%j is %j: Enter alone, and what is not understood, runs nothing", (line, wanted) => {
  expect(readApproval(line)).toEqual(wanted);
});
