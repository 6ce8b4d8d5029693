/** What a reviewer would otherwise have to look for in every file. */
import { describe, expect, test } from "vitest";
import { importsOf, isTestSide, repositoryFiles, sourceFiles } from "./source-tree.js";
import type { SourceFile } from "./source-tree.js";

const self = "tests/tidy.test.ts";
const isCode = ({ path }: SourceFile): boolean => /\.(ts|mts|js|mjs)$/.test(path);
const isProduct = ({ path }: SourceFile): boolean => path.startsWith("src/") && !isTestSide(path);

/** Lines of the files that match, as `path:line: text`. */
function matches(files: readonly SourceFile[], pattern: RegExp): readonly string[] {
  return files.flatMap(({ path, text }) =>
    path === self || path === "package-lock.json"
      ? []
      : text
          .split("\n")
          .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim().slice(0, 160)}`] : [])),
  );
}

const code = (): readonly SourceFile[] => repositoryFiles().filter(isCode);

describe("the code", () => {
  test("exports names, never everything", () => {
    expect(matches(code(), /^\s*export \*/)).toEqual([]);
  });

  test("leaves no test out or alone", () => {
    const tests = code().filter(({ path }) => path.endsWith(".test.ts"));
    expect(tests.length).toBeGreaterThan(10);
    expect(
      matches(
        tests,
        /\b(?:test|it|describe|suite|bench)\s*\.\s*(?:only|skip|todo|fails)\b|\b(?:xit|xdescribe|fdescribe)\(/,
      ),
    ).toEqual([]);
  });

  test("keeps notes of work to be done in the tracker", () => {
    expect(matches(code(), /\b(?:TODO|FIXME|XXX|HACK)\b/)).toEqual([]);
  });

  test("does not quieten the compiler or the linter", () => {
    expect(matches(code(), /@ts-(?:ignore|nocheck)|eslint-disable(?!-next-line [\w@/-]+ -- \S)/)).toEqual([]);
  });

  test("has files that can be read in one sitting", () => {
    const long = sourceFiles()
      .filter(isProduct)
      .map(({ path, text }) => ({ path, lines: text.split("\n").length }))
      .filter(({ lines }) => lines > 500);
    expect(long).toEqual([]);
  });

  test("has no file that nobody imports", () => {
    const entries = new Set([
      "src/index.ts",
      "src/testing.ts",
      "src/tools.ts",
      "src/storage/index.ts",
      "src/storage-local/index.ts",
      "src/cli/main.ts",
      "src/workspace-store/capture-worker.ts",
    ]);
    const files = sourceFiles();
    const everything = code();
    const imported = new Set(everything.flatMap((file) => importsOf(file).map(({ target }) => target)));
    // A program that a test starts as a process of its own is named there, not imported.
    const isStarted = (path: string): boolean => {
      const name = path.replace(/^src\//, "").replace(/\.ts$/, ".");
      return path.includes("/testing/") && everything.some(({ text }) => text.includes(name));
    };
    const alone = files
      .map(({ path }) => path)
      .filter(
        (path) => !entries.has(path) && !/\.test(-d)?\.ts$/.test(path) && !imported.has(path) && !isStarted(path),
      );
    expect(alone).toEqual([]);
  });
});

describe("effects", () => {
  /** Files that touch the disk without the seam, and why. */
  const besideTheSeam: Readonly<Record<string, string>> = {
    "src/core/file-system.ts": "it is the seam",
    "src/workspace-store/stamps.ts": "the quickest look at the real file system; another one is asked itself",
    "src/workspace-store/lanes.ts": "looks whether the program of its threads is there",
    "src/workspace/command-process.ts": "looks for a command in PATH as the kernel would; changes nothing",
    "src/cli/version.ts": "reads the package's own version, before anything is opened",
    "src/cli/raw-words.ts": "reads the kernel's record of this process's arguments",
  };

  test("on the file system go through the seam", () => {
    const bypassing = sourceFiles()
      .filter(isProduct)
      .filter(({ path }) => !(path in besideTheSeam))
      .filter((file) => {
        const loads = importsOf(file).some(
          ({ target, kind }) => kind !== "type" && /^(?:node:)?fs(?:\/promises)?$/.test(target),
        );
        // The constants of `node:fs` are values, not effects.
        return (
          loads && /(?<![#.\w])fs\.(?!constants\b)|import \{(?!\s*constants\s*\})[^}]*\} from "node:fs/.test(file.text)
        );
      })
      .map(({ path }) => path);
    expect(bypassing).toEqual([]);
  });

  /** Files below the edge that look at the process they run in, and why. */
  const besideTheEdge: Readonly<Record<string, string>> = {
    "src/storage-local/open.ts": "the default state directory is the environment's to choose",
    "src/workspace/exec-turn.ts": "a command inherits the environment",
    "src/builtin-tools/bash.ts": "a command inherits the environment",
  };

  test("on the terminal, the environment and the process belong to the edges", () => {
    const product = sourceFiles().filter(
      (file) => isProduct(file) && !file.path.startsWith("src/cli/") && !(file.path in besideTheEdge),
    );
    const ofCode = product.map(({ path, text }) => ({
      path,
      text: text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, (comment) => comment.replaceAll(/[^\n]/g, " ")),
    }));
    expect(matches(ofCode, /\bconsole\.|\bprocess\.(?:env|exit|exitCode|stdout|stderr|stdin)\b/)).toEqual([]);
  });

  test("are listed as exceptions only where they are needed", () => {
    const paths = new Set(sourceFiles().map(({ path }) => path));
    for (const path of [...Object.keys(besideTheSeam), ...Object.keys(besideTheEdge)]) expect(paths).toContain(path);
  });
});

describe("the repository", () => {
  test("names no directory of anybody's machine", () => {
    const examples = "(?!(?:ada|ana|ben|me|u|user|you)\\b)";
    const pattern = new RegExp(
      `/work/(?:main|shared)\\b|/tmp/briefs|/(?:home|Users)/${examples}[a-z]\\w*/|(?<![\\w.}])/root/\\w`,
    );
    expect(
      matches(
        repositoryFiles().filter(({ path }) => !/\/fixtures\//.test(path)),
        pattern,
      ),
    ).toEqual([]);
  });

  test("names no package registry, so it installs from whichever is configured", () => {
    expect(matches(repositoryFiles(), /registry\.npmjs|registry\.yarnpkg|verdaccio|artifactory/i)).toEqual([]);
    const lock = repositoryFiles().find(({ path }) => path === "package-lock.json");
    expect(lock?.text).not.toMatch(/"resolved"/);
  });

  test("speaks without emojis", () => {
    const prose = repositoryFiles().filter((file) => /\.(?:md|ts|mjs)$/.test(file.path) && !isTestSide(file.path));
    expect(matches(prose, /\p{Emoji_Presentation}/u)).toEqual([]);
  });
});

test("the checks find what they look for", () => {
  const forged: readonly SourceFile[] = [
    { path: "src/x/a.ts", text: ["ok", 'export * from "./b.js";', "test.only(1)"].join("\n") },
  ];
  expect(matches(forged, /^\s*export \*/)).toEqual(['src/x/a.ts:2: export * from "./b.js";']);
  expect(matches(forged, /\btest\.only\b/)).toHaveLength(1);
});
