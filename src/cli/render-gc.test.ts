import { expect, it } from "vitest";
import type { CollectReport } from "../workspace-store/index.js";
import { gcQuestion } from "./render-gc.js";

const question = (bytes: number): string => {
  const report = { freed: { objects: 0, bytes, packs: 21 } } as CollectReport;
  return gcQuestion({ drops: [], report }, undefined).text;
};

it("the question of gc names what is freed, and nothing that packing small files together takes", () => {
  expect(question(3684)).toBe("Free 3.6 KiB?");
  expect(question(0)).toBe("Tidy the store?");
  expect(question(-3684)).toBe("Tidy the store?");
});
