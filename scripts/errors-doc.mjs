// Makes docs/errors.md from the table in src/core/errors.ts: `node scripts/errors-doc.mjs`. The comment above a row is the
// text of its error; the section comments are the headings. tests/errors-doc.test.ts fails when the page is stale.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const table = new URL("../src/core/errors.ts", import.meta.url);
const page = new URL("../docs/errors.md", import.meta.url);

/** The rows of the interface `ErrorDetails` in order: { code, section, text, fields: [{ name, type, optional, text }] }. */
export function readRows(source) {
  const file = ts.createSourceFile("errors.ts", source, ts.ScriptTarget.ESNext, true);
  const details = file.statements.find((node) => ts.isInterfaceDeclaration(node) && node.name.text === "ErrorDetails");
  if (details === undefined) throw new Error('Cannot make the page of errors: there is no interface "ErrorDetails"');
  let section = "";
  return details.members.map((row) => {
    const before = source.slice(row.getFullStart(), row.getStart(file));
    section = /^\s*\/\/ ── (.*?) ─/m.exec(before)?.[1] ?? section;
    return { code: row.name.text, section, text: docOf(row), fields: fieldsOf(row.type, file) };
  });
}

/** The classes for whole areas: { name, areas }. */
export function readClasses(source) {
  const file = ts.createSourceFile("errors.ts", source, ts.ScriptTarget.ESNext, true);
  return file.statements
    .filter((node) => ts.isClassDeclaration(node) && node.name.text !== "LooprigError")
    .map((node) => {
      const argument = node.heritageClauses[0].types[0].typeArguments[0].getText(file);
      return { name: node.name.text, areas: [...argument.matchAll(/"([^"]+)"/g)].map((match) => match[1]) };
    });
}

function docOf(node) {
  const docs = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return docs
    .map((doc) => (typeof doc.comment === "string" ? doc.comment : ""))
    .join(" ")
    .replace(/\s+/g, " ")
    .trim();
}

function fieldsOf(type, file) {
  if (!ts.isTypeLiteralNode(type)) return [];
  return type.members.map((member) => ({
    name: member.name.getText(file),
    type: member.type
      .getText(file)
      .replace(/\breadonly /g, "")
      .replace(/\s+/g, " "),
    optional: member.questionToken !== undefined,
    text: docOf(member),
  }));
}

export function render(source) {
  const rows = readRows(source);
  const classes = readClasses(source);
  const classOf = (code) =>
    classes.find(({ areas }) => areas.some((area) => code === area || code.startsWith(`${area}.`)))?.name;
  const out = [
    "# Errors",
    "",
    "<!-- Generated from src/core/errors.ts by `npm run docs:errors`. Change it there. -->",
    "",
    "Every error looprig throws on purpose is a `LooprigError` with a stable `code`. Branch on the code, show the message, act on `details`;",
    "`hint` says what to do next, `retryable` whether the same call can succeed later, `cause` what lay beneath.",
    '`isLooprigError(error, "workspace_root.busy")` narrows `details` and works across duplicate installs. Messages and details are safe to log.',
  ];
  for (const section of new Set(rows.map((row) => row.section))) {
    out.push("", `## ${section[0].toUpperCase()}${section.slice(1)}`);
    for (const { code, text, fields } of rows.filter((row) => row.section === section)) {
      const area = classOf(code);
      out.push("", `### \`${code}\``, "", area === undefined ? text : `${text} Class \`${area}\`.`);
      if (fields.length > 0) out.push("");
      for (const field of fields) {
        const doc = field.text === "" ? "" : `: ${field.text}`;
        out.push(`- \`${field.name}${field.optional ? "?" : ""}: ${field.type}\`${doc}`);
      }
    }
  }
  return `${out.join("\n")}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, render(readFileSync(table, "utf8")));
