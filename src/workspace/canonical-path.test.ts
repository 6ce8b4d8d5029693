import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { interceptFileSystem, isLooprigError, nodeFileSystem } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { assertNarrowRoot, isBroadRoot } from "./broad-root.js";
import { canonicalPath } from "./canonical-path.js";

let dir: string;
beforeEach(() => {
  dir = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), "looprig-")));
});
afterEach(() => fs.rmSync(dir, { recursive: true, force: true }));

const refusal = (given: string, options?: Parameters<typeof canonicalPath>[1]): string => {
  try {
    return `canonical: ${canonicalPath(given, options)}`;
  } catch (error) {
    return isLooprigError(error) ? `${error.code}: ${error.message}` : String(error);
  }
};

describe("all spellings of a place are one path", () => {
  /** Ways to write the same path, each applied to an absolute one whose directories exist as far as `real` says. */
  const spellings: readonly ((absolute: string) => string)[] = [
    (absolute) => `${absolute}/`,
    (absolute) => `${absolute}/.`,
    (absolute) => absolute.replaceAll("/", "//"),
    (absolute) => absolute.replaceAll("/", "/./"),
    (absolute) => `${path.dirname(absolute)}/nowhere/../${path.basename(absolute)}`,
    (absolute) => `${absolute}/..//${path.basename(absolute)}`,
    (absolute) => path.relative(path.dirname(dir), absolute),
    (absolute) => `./${path.relative(path.dirname(dir), absolute)}//`,
  ];

  test("lexical ones, through links and with missing tails", () => {
    fs.mkdirSync(path.join(dir, "real/one/two"), { recursive: true });
    fs.symlinkSync(path.join(dir, "real"), path.join(dir, "absolute"));
    fs.symlinkSync("real/one", path.join(dir, "relative"));
    fs.symlinkSync("absolute/one/../one/two", path.join(dir, "chain"));
    const aliases: Readonly<Record<string, readonly string[]>> = {
      real: ["real", "absolute"],
      "real/one": ["real/one", "absolute/one", "relative"],
      "real/one/two": ["real/one/two", "absolute/one/two", "relative/two", "chain"],
    };
    const name = fc.constantFrom("x", "new", "ü", "with space", "...", "a\\b");
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(aliases)),
        fc.array(name, { maxLength: 3 }),
        fc.nat(),
        fc.array(fc.nat(), { maxLength: 3 }),
        (base, tail, which, how) => {
          const list = aliases[base] as readonly string[];
          const alias = path.join(dir, list[which % list.length] as string, ...tail);
          const given = how.reduce(
            (now, n) =>
              (spellings[n % spellings.length] as (typeof spellings)[number])(path.resolve(path.dirname(dir), now)),
            alias,
          );
          const wanted = path.join(dir, base, ...tail);
          expect(canonicalPath(given, { cwd: path.dirname(dir) })).toBe(wanted);
          expect(canonicalPath(wanted)).toBe(wanted);
        },
      ),
    );
  });

  test("before and after what a dangling link points to is made", () => {
    fs.symlinkSync("later/inner", path.join(dir, "dangling"));
    fs.symlinkSync(path.join(dir, "dangling"), path.join(dir, "second"));
    const wanted = path.join(dir, "later/inner/x");
    for (const spelling of ["dangling/x", "second/x", "later/inner/x"]) {
      expect(canonicalPath(path.join(dir, spelling))).toBe(wanted);
    }
    fs.mkdirSync(path.join(dir, "later/inner"), { recursive: true });
    for (const spelling of ["dangling/x", "second/x", "later/inner/x"]) {
      expect(canonicalPath(path.join(dir, spelling))).toBe(wanted);
    }
  });

  test("through a dangling link whose target leaves the directory of the link upwards", () => {
    fs.mkdirSync(path.join(dir, "a/b"), { recursive: true });
    fs.symlinkSync("b", path.join(dir, "a/to-b"));
    fs.symlinkSync("to-b/../../c/new", path.join(dir, "a/up"));
    expect(canonicalPath(path.join(dir, "a/up/x"))).toBe(path.join(dir, "c/new/x"));
  });

  test("relative to the current directory, also when that is reached through a link", () => {
    fs.mkdirSync(path.join(dir, "real"));
    fs.symlinkSync("real", path.join(dir, "link"));
    expect(canonicalPath("x", { cwd: path.join(dir, "link") })).toBe(path.join(dir, "real/x"));
    expect(canonicalPath(".")).toBe(fs.realpathSync.native(process.cwd()));
  });

  test("`..` after a link is the directory that holds the link", () => {
    fs.mkdirSync(path.join(dir, "deep/er"), { recursive: true });
    fs.symlinkSync("deep/er", path.join(dir, "link"));
    expect(canonicalPath(`${dir}/link/../x`)).toBe(path.join(dir, "x"));
  });

  test("files have one path as directories have", () => {
    fs.writeFileSync(path.join(dir, "file"), "");
    fs.symlinkSync("file", path.join(dir, "alias"));
    expect(canonicalPath(path.join(dir, "alias"))).toBe(path.join(dir, "file"));
    expect(canonicalPath("/")).toBe("/");
  });
});

describe("a path without a canonical form is refused", () => {
  test.each(["", " ", "\t\n"])("%j is blank", (given) => {
    expect(refusal(given)).toMatch(/^workspace_placement\.empty_root: Cannot use .* as root: it is blank/);
  });

  test("a NUL, a loop of links, a file on the way, an overlong name", () => {
    fs.symlinkSync("b", path.join(dir, "a"));
    fs.symlinkSync("a", path.join(dir, "b"));
    fs.symlinkSync("self/x", path.join(dir, "self"));
    fs.writeFileSync(path.join(dir, "file"), "");
    fs.symlinkSync("gone/../here", path.join(dir, "through-missing"));
    const cases: Readonly<Record<string, RegExp>> = {
      "x\0y": /holds a NUL/,
      a: /loop of symbolic links/,
      "a/x": /loop of symbolic links/,
      "self/y": /loop of symbolic links/,
      "file/x": /a file stands where a directory is needed/,
      [`${"n".repeat(300)}/x`]: /it is too long/,
      "through-missing": /goes through a missing directory/,
    };
    for (const [given, reason] of Object.entries(cases)) {
      const text = refusal(`${dir}/${given}`, { option: "baseDir" });
      expect(text).toMatch(/^workspace_placement\.canonicalize_failed: Cannot resolve baseDir /);
      expect(text).toMatch(reason);
    }
  });

  test("bytes that are not UTF-8: as an escape, in an existing name, in a link, and lost by argv", () => {
    const bytes = Buffer.concat([Buffer.from(`${dir}/bad`), Buffer.of(0xff)]);
    fs.mkdirSync(bytes);
    fs.symlinkSync(bytes, path.join(dir, "to-bad"));
    fs.symlinkSync(Buffer.concat([bytes, Buffer.from("/gone")]), path.join(dir, "to-bad-gone"));
    for (const given of ["bad\udcff", "bad\udcff/x", "to-bad", "to-bad/x", "to-bad-gone", "bad\ufffd", "new\ufffd/x"]) {
      expect(refusal(`${dir}/${given}`)).toMatch(/canonicalize_failed: .* it is not valid UTF-8/);
    }
    // The replacement character is a character like others where a name really has it.
    fs.mkdirSync(`${dir}/really\ufffd`);
    expect(canonicalPath(`${dir}/really\ufffd/`)).toBe(`${dir}/really\ufffd`);
  });

  test("a directory that may not be searched", () => {
    const denied = interceptFileSystem(nodeFileSystem, ({ name, args }) => {
      if ((name === "realpath" || name === "lstat") && String(args[0]).startsWith(`${dir}/locked/`)) {
        throw Object.assign(new Error("denied"), { code: "EACCES" });
      }
    });
    fs.mkdirSync(path.join(dir, "locked"));
    expect(refusal(`${dir}/locked/x`, { fileSystem: denied })).toMatch(/may not be searched/);
  });
});

test("nothing is changed by looking", () => {
  fs.symlinkSync("gone", path.join(dir, "link"));
  const effects: string[] = [];
  const watched = interceptFileSystem(nodeFileSystem, ({ name, effect }) => {
    if (effect) effects.push(name);
  });
  canonicalPath(path.join(dir, "link/a/b"), { fileSystem: watched });
  expect(effects).toEqual([]);
});

describe("C064: a root that is too broad", () => {
  const homes = ["/home/ana", "/srv/homes/ben"];
  const at = (root: string): CanonicalRoot => root as CanonicalRoot;

  test.each([
    ["/", "the root of the file system"],
    ["/home/ana", "a home directory"],
    ["/home", "above the home directory /home/ana"],
    ["/srv", "above the home directory /srv/homes/ben"],
  ])("%s is refused: it is %s", (root, reason) => {
    expect(isBroadRoot(at(root), { homes })).toBe(true);
    expect(() => assertNarrowRoot(at(root), { homes })).toThrow(
      expect.objectContaining({ code: "workspace_placement.root_too_broad", details: { root, reason } }),
    );
  });

  test.each(["/home/ana/project", "/home/anabel", "/srv/homes/ben/x/y", "/tmp", "/ho"])("%s is not", (root) => {
    expect(isBroadRoot(at(root), { homes })).toBe(false);
    assertNarrowRoot(at(root), { homes });
  });
});
