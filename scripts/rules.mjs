// Which tests cite which rule of docs/rules.md: `npm run docs:rules`. Rules without a citation come last; a citation without
// a rule (of the letters that rules have) ends it with status 1. tests/rules.test.ts holds the tree to both.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));

/** The rules in the order of the page: { name, mark }, where the mark says what is not built. */
export function readRules(page) {
  return [...page.matchAll(/^- \*\*([A-Z]\d{1,2})\*\* (.*)$/gm)].map(([, name, text]) => ({
    name,
    mark: /\*\*(Partly|Later)\*\*/.exec(text)?.[1].toLowerCase() ?? "",
  }));
}

/**
 * The rules a text cites, in the forms that citations have: in parentheses, or in front of a comment or a test's name.
 * `U11–U13` cites three. Cases (`C036`) are none, nor is a text that is nothing else (`"C2"`).
 */
export function citedRules(text, letters) {
  const cited = new Set();
  const before = "(?<=[(\"'`]|\\/\\/ |\\/\\*\\* | \\* |, |@ts-expect-error )";
  const citation = new RegExp(`${before}([${letters}])(\\d{1,2})(?:[–-]\\1(\\d{1,2}))?\\b(?!["'\`])`, "g");
  for (const [, letter, first, last = first] of text.matchAll(citation)) {
    for (let number = Number(first); number <= Number(last); number++) cited.add(`${letter}${number}`);
  }
  return cited;
}

/** The names of tests and of groups of them, as they stand in a file, with their quotes. */
export function testNames(text) {
  const opening = /(?:\b(?:it|test|describe)(?:\.\w+)*\(|\]\)\(|\}\)\(|\w\)\()\s*(?=["'`])/g;
  const name = /(["'`])(?:\\.|(?!\1)[^\\])*\1/y;
  return [...text.matchAll(opening)].flatMap(({ 0: found, index }) => {
    name.lastIndex = index + found.length;
    return name.exec(text)?.[0] ?? [];
  });
}

function filesBelow(folder, pattern) {
  return readdirSync(path.join(repository, folder), { recursive: true })
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .filter((name) => pattern.test(name))
    .sort();
}

/** Every rule with the tests that cite it, and the citations that are of no rule. */
export function readCitations() {
  const rules = readRules(readFileSync(path.join(repository, "docs", "rules.md"), "utf8"));
  const known = new Set(rules.map(({ name }) => name));
  const letters = [...new Set(rules.map(({ name }) => name[0]))].join("");
  const files = ["src", "tests"]
    .flatMap((folder) => filesBelow(folder, /\.(?:ts|mts)$/))
    .map((file) => {
      const text = readFileSync(path.join(repository, file), "utf8");
      const names = testNames(text).map((name) => ({ name: name.slice(1, -1), cited: citedRules(name, letters) }));
      return { file, cited: citedRules(text, letters), names };
    });
  const tests = files.filter(({ file }) => file.startsWith("tests/") || /\.test(?:-d)?\.ts$/.test(file));
  return {
    rules: rules.map(({ name: rule, mark }) => ({
      rule,
      mark,
      tests: tests
        .filter(({ cited }) => cited.has(rule))
        .map(({ file, names }) => ({
          file,
          names: names.filter(({ cited }) => cited.has(rule)).map(({ name }) => name),
        })),
    })),
    strays: files.flatMap(({ file, cited }) =>
      [...cited].filter((rule) => !known.has(rule)).map((rule) => ({ file, rule })),
    ),
  };
}

function main() {
  const { rules, strays } = readCitations();
  const shown = ({ rule, mark }) => (mark === "" ? rule : `${rule} (${mark})`);
  for (const each of rules.filter(({ tests }) => tests.length > 0)) {
    console.log(shown(each));
    for (const { file, names } of each.tests) console.log([`  ${file}`, ...names].join("\n      "));
  }
  const uncited = rules.filter(({ tests }) => tests.length === 0);
  console.log(`\nCited by no test: ${uncited.map(shown).join(", ") || "none"}`);
  if (strays.length === 0) return;
  console.error(
    `\nCited, and no rule of docs/rules.md:\n${strays.map(({ file, rule }) => `  ${rule} in ${file}`).join("\n")}`,
  );
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
