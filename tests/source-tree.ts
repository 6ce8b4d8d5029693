/** The repository as the self-checks read it: its files, and what each source file imports. */
import fs from "node:fs";
import path from "node:path";
import ts from "typescript";

export const repository = path.resolve(import.meta.dirname, "..");

export interface SourceFile {
  /** Relative to the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

const unread = new Set([".git", "node_modules", "dist", "coverage", ".looprig-bench", ".looprig-api"]);

let files: readonly SourceFile[] | undefined;

/** All files of the tree that are ours, read as text, once. */
export const repositoryFiles = (): readonly SourceFile[] => (files ??= readFiles());

function readFiles(): readonly SourceFile[] {
  const found: SourceFile[] = [];
  const visit = (directory: string): void => {
    for (const entry of fs.readdirSync(path.join(repository, directory), { withFileTypes: true })) {
      const at = directory === "" ? entry.name : `${directory}/${entry.name}`;
      if (unread.has(entry.name)) continue;
      if (entry.isDirectory()) visit(at);
      else if (entry.isFile()) found.push({ path: at, text: fs.readFileSync(path.join(repository, at), "utf8") });
    }
  };
  visit("");
  return found;
}

export const sourceFiles = (): readonly SourceFile[] =>
  repositoryFiles().filter(({ path }) => path.startsWith("src/") && path.endsWith(".ts"));

/** Tests, and what lies in a `testing/` folder for them and for others' tests. */
export const isTestSide = (file: string): boolean =>
  /\.test(-d)?\.ts$/.test(file) || file.includes("/testing/") || file === "src/testing.ts";

export interface Import {
  /** The file in the repository, or the package. */
  readonly target: string;
  /** "static" runs the target; "type" is erased; "dynamic" is `import()`. */
  readonly kind: "static" | "type" | "dynamic";
  readonly line: number;
}

const known = new WeakMap<SourceFile, readonly Import[]>();

export function importsOf(file: SourceFile): readonly Import[] {
  let imports = known.get(file);
  if (imports === undefined) known.set(file, (imports = readImports(file)));
  return imports;
}

function readImports({ path: file, text }: SourceFile): readonly Import[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext);
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, kind: Import["kind"]): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const { line } = source.getLineAndCharacterOfPosition(specifier.getStart(source));
    found.push({ target: resolve(file, specifier.text), kind, line: line + 1 });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, "type");
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], "dynamic");
    }
    ts.forEachChild(node, visit);
  };
  for (const statement of source.statements) {
    if (ts.isImportDeclaration(statement)) {
      add(
        statement.moduleSpecifier,
        statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword ? "type" : "static",
      );
    } else if (ts.isExportDeclaration(statement)) {
      add(statement.moduleSpecifier, statement.isTypeOnly ? "type" : "static");
    }
  }
  // The other forms can stand anywhere in a file, and stand in few.
  if (text.includes("import(")) visit(source);
  return found;
}

const resolve = (file: string, specifier: string): string =>
  specifier.startsWith(".")
    ? path.posix.join(path.posix.dirname(file), specifier.replace(/\?.*$/, "")).replace(/\.js$/, ".ts")
    : specifier;
