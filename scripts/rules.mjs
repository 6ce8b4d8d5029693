// Which tests cite which rule of docs/rules.md: `npm run docs:rules`. Rules without a citation come last; a citation without
// a rule (of the letters that rules have) ends it with status 1.
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

function filesBelow(folder, pattern) {
  return readdirSync(path.join(repository, folder), { recursive: true })
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .filter((name) => pattern.test(name))
    .sort();
}

function main() {
  const rules = readRules(readFileSync(path.join(repository, "docs", "rules.md"), "utf8"));
  const known = new Set(rules.map(({ name }) => name));
  const letters = [...new Set(rules.map(({ name }) => name[0]))].join("");
  const citations = ["src", "tests"]
    .flatMap((folder) => filesBelow(folder, /\.(?:ts|mts)$/))
    .map((file) => ({ file, cited: citedRules(readFileSync(path.join(repository, file), "utf8"), letters) }));
  const tests = citations.filter(({ file }) => file.startsWith("tests/") || /\.test(?:-d)?\.ts$/.test(file));

  const uncited = [];
  for (const { name, mark } of rules) {
    const files = tests.filter(({ cited }) => cited.has(name)).map(({ file }) => file);
    const shown = mark === "" ? name : `${name} (${mark})`;
    if (files.length === 0) uncited.push(shown);
    else console.log(`${shown}\n${files.map((file) => `  ${file}`).join("\n")}`);
  }
  console.log(`\nCited by no test: ${uncited.join(", ") || "none"}`);

  const strays = citations.flatMap(({ file, cited }) =>
    [...cited].filter((name) => !known.has(name)).map((name) => `  ${name} in ${file}`),
  );
  if (strays.length === 0) return;
  console.error(`\nCited, and no rule of docs/rules.md:\n${strays.join("\n")}`);
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
