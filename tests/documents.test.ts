/**
 * The pages under docs/ can be followed like the README: their programs run against the present library, their shell sessions
 * against the present command line, and print what is shown. Links of all documents lead somewhere.
 */
import path from "node:path";
import { describe, expect, test } from "vitest";
import { codeBlocks, headingAnchors, localLinks } from "./markdown.js";
import { Reader } from "./reader.js";
import { repositoryFiles } from "./source-tree.js";

const documents = repositoryFiles().filter(({ path }) => path.endsWith(".md") && !path.includes("/fixtures/"));
const followed = documents.filter(
  ({ path, text }) =>
    path.startsWith("docs/") && codeBlocks(text).some(({ language }) => ["ts", "console"].includes(language)),
);

describe("a reader who follows", () => {
  test.each(followed)("$path sees what it shows", ({ text }) => {
    const reader = new Reader();
    try {
      reader.install("zod");
      const { shown, happened } = reader.follow(text);
      expect(happened).toEqual(shown);
    } finally {
      reader.close();
    }
  });

  test("the concepts finds a program on most pages", () => {
    expect(followed.filter(({ path }) => path.startsWith("docs/concepts/")).length).toBeGreaterThan(4);
  });
});

test("links lead to files and headings that exist", () => {
  const known = new Map(repositoryFiles().map(({ path, text }) => [path, text]));
  const folders = new Set([...known.keys()].flatMap((file) => parents(file)));
  const broken = documents.flatMap((document) =>
    localLinks(document.text)
      .filter((link) => {
        const [target = "", fragment] = link.split("#");
        const file = target === "" ? document.path : path.posix.join(path.posix.dirname(document.path), target);
        if (fragment !== undefined) return !headingAnchors(known.get(file) ?? "").includes(fragment);
        return !known.has(file) && !folders.has(file.replace(/\/$/, ""));
      })
      .map((link) => `${document.path}: ${link}`),
  );
  expect(documents.length).toBeGreaterThan(20);
  expect(broken).toEqual([]);
});

test("links are found, with and without a heading", () => {
  expect(localLinks("[a](b.md) [c](d/e.md#f-g) [h](#i) [j](https://k.example) `[l](m)`")).toEqual([
    ...["b.md", "d/e.md#f-g", "#i"],
  ]);
  expect(headingAnchors("# The life of one `exec`\n\n## A: b, c\n\ntext\n\n## A: b, c\n")).toEqual([
    ...["the-life-of-one-exec", "a-b-c", "a-b-c-1"],
  ]);
});

function parents(file: string): string[] {
  const dir = path.posix.dirname(file);
  return dir === "." ? ["."] : [dir, ...parents(dir)];
}
