/** The decision records are numbered, listed and complete (docs/decisions/0001-record-decisions.md). */
import { expect, test } from "vitest";
import { repositoryFiles } from "./source-tree.js";

const folder = "docs/decisions/";
const files = repositoryFiles().filter(({ path }) => path.startsWith(folder));
const records = files.filter(({ path }) => path !== `${folder}README.md`);
const index = files.find(({ path }) => path === `${folder}README.md`)?.text ?? "";

test("every record is listed once, with the title, date and status it bears itself", () => {
  expect(records.length).toBeGreaterThan(0);
  const rows = [...index.matchAll(/^\| \[(\d{4})\]\((.+?)\) +\| (.+?) +\| (.+?) +\| (.+?) +\|$/gm)].map((row) =>
    row.slice(1),
  );
  const own = records.map(({ path, text }) => {
    const [, number, title] = /^# (\d{4}): (.+)$/m.exec(text) ?? [];
    const [, status, date] = /^Status: ([^·\n]+?) · (\d{4}-\d\d-\d\d)/m.exec(text) ?? [];
    return [number, path.slice(folder.length), title, date, status];
  });
  expect(rows).toEqual(own.sort());
});

test("numbers are not used twice, and lead the names of the files", () => {
  const numbers = records.map(({ path }) => path.slice(folder.length, folder.length + 4));
  expect(new Set(numbers).size).toBe(numbers.length);
  for (const { path } of records) expect(path).toMatch(/\/\d{4}-[a-z0-9-]+\.md$/);
});

test("every record says its context, its decision and the consequences", () => {
  for (const { path, text } of records) {
    const headings = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1]);
    for (const wanted of ["Context", "Decision", "Consequences"]) {
      expect([path, headings]).toEqual([path, expect.arrayContaining([wanted])]);
    }
  }
});
