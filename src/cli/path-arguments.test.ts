import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { displayName, nameFromBytes } from "../core/index.js";
import { readName } from "./names-read-back.js";
import { pathArgument, pathArguments, typedPath } from "./path-arguments.js";
import { refArgument } from "./ref-argument.js";
import { path as workspacePath } from "./testing/samples.js";

const at = { root: "/home/ada/calc", here: "/home/ada/calc/src" };

describe("paths people type", () => {
  test("are relative to where they stand", () => {
    expect(pathArgument("parse.js", at)).toBe("src/parse.js");
    expect(pathArgument("../README.md", at)).toBe("README.md");
    expect(pathArgument("./a/../b/", at)).toBe("src/b");
    expect(pathArgument("/home/ada/calc/x", at)).toBe("x");
  });

  test("outside the root are refused", () => {
    for (const given of ["../..", "../../other", "/etc/passwd", "/home/ada/calculus", ""]) {
      expect(() => pathArgument(given, at), given).toThrow(/lies outside the root/);
    }
  });

  test("the root itself means everything", () => {
    expect(pathArgument("..", at)).toBeUndefined();
    expect(pathArguments(["parse.js", ".."], at)).toBeUndefined();
    expect(pathArguments(undefined, at)).toBeUndefined();
    expect(pathArguments(["parse.js"], at)).toEqual(["src/parse.js"]);
  });

  test("a file whose name begins with two dots is inside", () => {
    expect(pathArgument("../..x", at)).toBe("..x");
  });

  test("are suggested as they would be typed, so that a shell reads them back", () => {
    expect(typedPath(workspacePath("src/round.js"), at)).toBe("round.js");
    expect(typedPath(workspacePath("it's here"), { root: at.root, here: at.root })).toBe(`'it'\\''s here'`);
    expect(typedPath(workspacePath("-rf"), { root: at.root, here: at.root })).toBe("./-rf");
    expect(typedPath(workspacePath("x"), { root: at.root, here: "/tmp" })).toBe("/home/ada/calc/x");
  });
});

describe("names copied from our output", () => {
  test("any name is read back from its display, whatever its bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 24 }), (bytes) => {
        const name = nameFromBytes(bytes);
        expect(readName(displayName(name))).toBe(name);
      }),
    );
  });

  test("a name that only looks quoted is taken as it is", () => {
    for (const raw of ['"notes"', '"', '""', '"a', '"\\q"']) expect(readName(raw)).toBe(raw);
  });
});

describe("REF:PATH", () => {
  const full = `v1:sha256:${"a".repeat(64)}`;
  test.each([
    ["c12", { ref: "c12" }],
    ["c12:src/x", { ref: "c12", path: "src/x" }],
    ["c12:./src/", { ref: "c12", path: "src" }],
    ["c12:a:b", { ref: "c12", path: "a:b" }],
    ['c1:"a\\nb"', { ref: "c1", path: "a\nb" }],
    [full, { ref: full }],
    [`${full}:x`, { ref: full, path: "x" }],
  ])("%s", (given, wanted) => expect(refArgument("REF", given)).toEqual(wanted));

  test("a missing half is refused, and so is a path that leaves the root", () => {
    expect(() => refArgument("REF", ":x")).toThrow(/wanted a ref before the colon/);
    expect(() => refArgument("REF", "c1:")).toThrow(/wanted a path after the colon/);
    expect(() => refArgument("REF", "c1:../x")).toThrow(/as a component/);
  });
});
