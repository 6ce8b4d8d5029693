/**
 * The current sources as JavaScript, for tests that start real processes: `dist/` may be older than what is being tested.
 * Files are transpiled one by one (`isolatedModules` makes that sound) into a directory named by the hash of all of them,
 * which appears in one rename: runs at the same time share it or make it twice, and never see half of one. The directory lies
 * in `node_modules/`, so that bare imports resolve.
 */
import fs from "node:fs";
import path from "node:path";
import { createHash, randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const repository = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const cache = path.join(repository, "node_modules", ".cache", "looprig-test-builds");
const staleMs = 60 * 60 * 1000;

let built: string | undefined;

/** The path of the JavaScript made from `source`, a path like "src/cli/main.ts" or "tests/processes/append.ts". */
export function builtFile(source: string): string {
  built ??= build();
  return path.join(built, source.replace(/\.ts$/, ".js"));
}

function build(): string {
  const sources = ["src", "tests"].flatMap((folder) => listSources(folder)).sort();
  const texts = sources.map((source) => fs.readFileSync(path.join(repository, source), "utf8"));
  const hash = createHash("sha256");
  sources.forEach((source, i) => hash.update(`${source}\0${texts[i] ?? ""}\0`));
  hash.update(fs.readFileSync(path.join(repository, "package.json")));
  const target = path.join(cache, hash.digest("hex").slice(0, 20));
  if (fs.existsSync(target)) {
    // In use again: not to be removed as stale by another run.
    fs.utimesSync(target, new Date(), new Date());
    return target;
  }

  const staging = path.join(cache, `.staging-${randomUUID()}`);
  sources.forEach((source, i) => {
    const file = path.join(staging, source.replace(/\.ts$/, ".js"));
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, transpile(source, texts[i] ?? ""));
  });
  // The manifest with its real name and version: sources may read it, and `type` makes the files modules.
  fs.copyFileSync(path.join(repository, "package.json"), path.join(staging, "package.json"));
  try {
    fs.renameSync(staging, target);
  } catch (error) {
    fs.rmSync(staging, { recursive: true, force: true });
    if (!fs.existsSync(target)) throw error;
  }
  removeStale(target);
  return target;
}

function listSources(folder: string): string[] {
  return fs
    .readdirSync(path.join(repository, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.(test|test-d|d)\.ts$/.test(name))
    .map((name) => path.join(folder, name));
}

function transpile(source: string, text: string): string {
  return ts.transpileModule(text, {
    fileName: source,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      isolatedModules: true,
    },
  }).outputText;
}

function removeStale(current: string): void {
  for (const name of fs.readdirSync(cache)) {
    const dir = path.join(cache, name);
    try {
      if (dir !== current && Date.now() - fs.statSync(dir).mtimeMs > staleMs) fs.rmSync(dir, { recursive: true });
    } catch {
      // Another run removes it.
    }
  }
}
