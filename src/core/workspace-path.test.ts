import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { baseName, components, isWithin, joinPath, parentOf, parseWorkspacePath, rootPath } from "./workspace-path.js";
import type { WorkspacePath } from "./workspace-path.js";

const name = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 4 })
  .filter((text) => !/[/\0]/.test(text) && text !== "." && text !== "..");
const path = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => names.join("/"));

describe("a path in the workspace", () => {
  test.each(["", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/../b", "../a", "a\0b"])("is not %j", (text) => {
    expect(() => parseWorkspacePath(text)).toThrow(expect.objectContaining({ code: "path.invalid" }));
  });

  test.each(["a", "a/b", "...", ".git", "a b", "-", "\\", "bad\udcff"])("may be %j", (text) => {
    expect(parseWorkspacePath(text)).toBe(text);
  });

  test("comes apart and together again", () => {
    fc.assert(
      fc.property(path, (text) => {
        const parsed = parseWorkspacePath(text);
        expect(joinPath(parentOf(parsed), baseName(parsed))).toBe(parsed);
        expect(components(parsed).reduce<WorkspacePath>((at, part) => joinPath(at, part), rootPath)).toBe(parsed);
      }),
    );
  });

  test("is within itself, its parents and the root, and in nothing that only begins alike", () => {
    fc.assert(
      fc.property(path, name, (text, more) => {
        const parsed = parseWorkspacePath(text);
        for (let at = parsed; at !== rootPath; at = parentOf(at)) expect(isWithin(parsed, at)).toBe(true);
        expect(isWithin(parsed, rootPath)).toBe(true);
        expect(isWithin(joinPath(parsed, more), parsed)).toBe(true);
        expect(isWithin(parsed, joinPath(parsed, more))).toBe(false);
        expect(isWithin((text + more) as WorkspacePath, parsed)).toBe(false);
      }),
    );
  });
});

test("the root has no components and is its own parent", () => {
  expect(components(rootPath)).toEqual([]);
  expect(parentOf(rootPath)).toBe(rootPath);
});
