/** The page of errors says what the table says, and the table says what is thrown. */
import { describe, expect, test } from "vitest";
import { readClasses, readRows, render } from "../scripts/errors-doc.mjs";
import { isTestSide, repositoryFiles, sourceFiles } from "./source-tree.js";

const table = "src/core/errors.ts";
const textOf = (path: string): string => repositoryFiles().find((file) => file.path === path)?.text ?? "";

/** Codes that nothing throws yet, and what will. */
const reserved: Readonly<Record<string, string>> = {};

describe("docs/errors.md", () => {
  test("is what `npm run docs:errors` makes of the table", () => {
    expect(textOf("docs/errors.md")).toBe(render(textOf(table)));
  });

  test("has every code once, under a heading, with a text of its own", () => {
    const rows = readRows(textOf(table));
    expect(rows.length).toBeGreaterThan(50);
    expect(
      rows.filter(({ section, text }) => section === "" || !/^[A-Z].*[.]$/.test(text.replace(/^looprig/, "L"))),
    ).toEqual([]);
    expect(new Set(rows.map(({ code }) => code)).size).toBe(rows.length);
    expect(new Set(rows.map(({ text }) => text)).size).toBe(rows.length);
    for (const { code } of rows) expect(code).toMatch(/^[a-z_]+\.[a-z_]+$/);
  });

  test("names the class of an area where there is one", () => {
    const areas = readClasses(textOf(table)).flatMap((entry) => entry.areas);
    const codes = readRows(textOf(table)).map(({ code }) => code);
    for (const area of areas) expect(codes.some((code) => code === area || code.startsWith(`${area}.`))).toBe(true);
    expect(render(textOf(table))).toContain("Class `WorkspaceRootBusyError`.");
  });
});

describe("the table of errors", () => {
  const product = (): string =>
    sourceFiles()
      .filter(({ path }) => path !== table && !isTestSide(path))
      .map(({ text }) => text)
      .join("\n");

  test("has no code that nothing throws, except those reserved", () => {
    const text = product();
    const unused = readRows(textOf(table))
      .map(({ code }) => code)
      .filter((code) => !text.includes(`"${code}"`) && !(code in reserved));
    expect(unused).toEqual([]);
  });

  test("reserves no code that is thrown or gone", () => {
    const text = product();
    const codes = new Set(readRows(textOf(table)).map(({ code }) => code));
    expect(Object.keys(reserved).filter((code) => text.includes(`"${code}"`) || !codes.has(code))).toEqual([]);
  });
});

test("a row without a comment, and one whose comment changed, are noticed", () => {
  const source = `export interface ErrorDetails {
    // ── things ───
    /** A thing broke. Mend it. */
    "thing.broken": {
      /** Which one. */
      readonly thing: string;
      readonly at?: readonly number[];
    };
    "thing.silent": NoDetails;
  }
  export class ThingError extends LooprigError<CodesOf<"thing">> {}`;
  expect(readRows(source)).toEqual([
    {
      code: "thing.broken",
      section: "things",
      text: "A thing broke. Mend it.",
      fields: [
        { name: "thing", type: "string", optional: false, text: "Which one." },
        { name: "at", type: "number[]", optional: true, text: "" },
      ],
    },
    { code: "thing.silent", section: "things", text: "", fields: [] },
  ]);
  expect(render(source)).toContain("A thing broke. Mend it. Class `ThingError`.");
  expect(render(source.replace("Mend it", "Leave it"))).not.toBe(render(source));
});
