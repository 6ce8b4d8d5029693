import { expect, it } from "vitest";
import { mintCallId } from "../core/index.js";
import { OutputShelf, keptCharsMax } from "./output-shelf.js";

it("keeps outputs whole under names of their own, up to a bound of one and of all", () => {
  const shelf = new OutputShelf();
  const first = shelf.keep(mintCallId(), "first");
  expect(first).toMatch(/^output:[0-9a-f]{8}$/);
  expect(shelf.read(first)).toBe("first");
  expect(shelf.read("output:00000000")).toBeUndefined();
  const long = "x".repeat(keptCharsMax + 1_000);
  const names = Array.from({ length: 4 }, () => shelf.keep(mintCallId(), long));
  expect(shelf.read(first)).toBeUndefined();
  expect(shelf.read(names[0] ?? "")).toBeUndefined();
  expect(shelf.read(names[3] ?? "")).toMatch(/^x+\n\[1000 of \d+ characters are left out here\]\nx+$/);
});
