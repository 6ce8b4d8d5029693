/**
 * What someone gets who installs the package: the files in it, types that compile in a strict project of their own which
 * checks its libraries too, and an entry that loads no driver before storage is opened.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../scripts/bundle.mjs";
import { codeBlocks, localLinks, programName } from "./markdown.js";
import { repositoryFiles } from "./source-tree.js";

const repository = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
/** The package as it would be after `npm run build`, made apart from `dist/` so that a run of tests disturbs nobody. */
const built = path.join(dir, "package");
/** Documents at the top. */
const pages = ["README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"];
/** A project of somebody who installed it. */
const project = path.join(dir, "project");

beforeAll(async () => {
  fs.mkdirSync(built);
  for (const name of ["package.json", ...pages, "docs", "examples"]) {
    fs.cpSync(path.join(repository, name), path.join(built, name), { recursive: true });
  }
  emitPackage();
  await bundle(path.join(built, "dist"));
  fs.mkdirSync(path.join(project, "node_modules"), { recursive: true });
  fs.writeFileSync(path.join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  install("looprig", built);
  for (const name of [...dependencies(), "@types/node", "undici-types", "zod"]) {
    install(name, path.join(repository, "node_modules", name));
  }
});
afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

describe("the packed files", () => {
  it("are the built library, its documents and nothing else", () => {
    const files = packedFiles();
    const tops = new Set(files.map((file) => file.split("/")[0] ?? ""));
    expect([...tops].sort()).toEqual([...pages, "dist", "docs", "examples", "package.json"].sort());
    // The project that the examples play in has tests of its own.
    const library = files.filter((file) => !file.startsWith("examples/"));
    expect(library.filter((file) => /\.test\.|\.test-d\.|fixtures|golden|\.tsbuildinfo/.test(file))).toEqual([]);
    // `dist/storage/testing` is the entry `looprig/testing`; what other features test themselves with stays at home.
    const own = files.filter((file) => /(^|\/)testing\//.test(file) && !file.startsWith("dist/storage/testing/"));
    expect(own).toEqual([]);
  });

  it("hold everything that `exports` and `bin` name", () => {
    const files = new Set(packedFiles());
    const manifest = JSON.parse(fs.readFileSync(path.join(built, "package.json"), "utf8")) as {
      bin: Record<string, string>;
      exports: Record<string, string | Record<string, string>>;
    };
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : Object.values(target),
    );
    const named = [...targets, ...Object.values(manifest.bin)].map((file) => file.replace(/^\.\//, ""));
    expect(named.filter((file) => !files.has(file))).toEqual([]);
  });

  it("hold everything that their documents link to", () => {
    const files = packedFiles();
    const known = new Set(files.flatMap((file) => [file, ...foldersOf(file)]));
    const links = files
      .filter((file) => file.endsWith(".md"))
      .flatMap((file) =>
        localLinks(fs.readFileSync(path.join(built, file), "utf8"))
          .map((link) => link.split("#")[0] ?? "")
          .filter((link) => link !== "")
          .map((link) => path.posix.join(path.posix.dirname(file), link).replace(/\/$/, "")),
      );
    expect(links.length).toBeGreaterThan(100);
    expect(links.filter((link) => !known.has(link))).toEqual([]);
  });

  it("have source maps that need no file outside the package", () => {
    const maps = packedFiles().filter((file) => file.endsWith(".map"));
    expect(maps.length).toBeGreaterThan(0);
    for (const file of maps) {
      const map = JSON.parse(fs.readFileSync(path.join(built, file), "utf8")) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      expect(map.sourcesContent?.filter((text) => typeof text === "string").length, file).toBe(map.sources.length);
    }
  });

  it("name no machine and no path of one", () => {
    const texts = packedFiles().filter((file) => /\.(js|ts|md|json|map)$/.test(file));
    const offending = texts.filter((file) => {
      const text = fs.readFileSync(path.join(built, file), "utf8");
      return text.includes(repository) || text.includes(os.homedir() === "/" ? repository : `${os.homedir()}/`);
    });
    expect(offending).toEqual([]);
  });
});

it("the packed types compile in a strict project that checks its libraries", () => {
  expect(diagnose([write("promises.ts", promises)], { skipLibCheck: false })).toEqual([]);
});

it("the programs of all documents compile against the packed types", () => {
  const documents = repositoryFiles().filter(({ path }) => path.endsWith(".md"));
  const files = documents.flatMap((document, i) =>
    codeBlocks(document.text)
      .filter(({ language }) => language === "ts")
      .map(({ text }, j) => write(`document-${i}/${programName(text) ?? `program-${j}.ts`}`, text)),
  );
  expect(files.length).toBeGreaterThan(10);
  expect(diagnose(files, { skipLibCheck: true })).toEqual([]);
});

function foldersOf(file: string): readonly string[] {
  const names = file.split("/").slice(0, -1);
  return names.map((_, i) => names.slice(0, i + 1).join("/"));
}

/** A module of the project. */
function write(name: string, text: string): string {
  const file = path.join(project, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `${text}\nexport {};\n`);
  return file;
}

it("importing the entry loads no storage driver", () => {
  // A loader hook says which modules are loaded; native libraries are asked of the process.
  const hook = `import fs from "node:fs";
    export async function load(url, context, next) { fs.writeSync(1, url + "\\n"); return next(url, context); }`;
  const script = `
    import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));
    await import("looprig");
    for (const file of process.report.getReport().sharedObjects) console.log(file);
  `;
  const loaded = runNode(script).split("\n");
  expect(loaded.some((url) => url.endsWith("/dist/chunks/workspace.js"))).toBe(true);
  expect(loaded.filter((url) => /storage-local|libsql|sqlite|\.node$/.test(url))).toEqual([]);
});

describe("the bundle", () => {
  const load = (...names: string[]): string =>
    `const [${names.map((_, i) => `m${i}`).join(", ")}] = await Promise.all(${JSON.stringify(names)}.map((name) => import(name)));`;

  it("starts a command with a handful of files, and without those of other commands", () => {
    const root = fs.mkdtempSync(path.join(dir, "root-"));
    fs.writeFileSync(path.join(root, "file"), "text");
    const loads = path.join(dir, "loads");
    const hook = `import fs from "node:fs";
      export async function load(url, context, next) { fs.appendFileSync(${JSON.stringify(loads)}, url + "\\n"); return next(url, context); }`;
    const register = `import { register } from "node:module"; register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));`;
    const said = execFileSync(
      process.execPath,
      [
        ...["--preserve-symlinks", "--preserve-symlinks-main"],
        ...["--import", `data:text/javascript,${encodeURIComponent(register)}`],
        ...[path.join(project, "node_modules", "looprig", "dist", "cli", "main.js"), "snapshot"],
      ],
      { cwd: root, encoding: "utf8", env: { ...process.env, LOOPRIG_HOME: path.join(dir, "home") } },
    );
    expect(said).toContain("c1, 1 file.");
    const files = fs.readFileSync(loads, "utf8").split("\n");
    const ours = files.filter((url) => url.includes("/dist/")).map((url) => url.split("/dist/")[1]);
    expect(ours).toContain("chunks/snapshot.js");
    expect(ours.length).toBeLessThan(15);
    expect(ours.filter((file) => /agent|run|undo|doctor/.test(file ?? ""))).toEqual([]);
    expect(files.filter((url) => /\/node_modules\/(diff|ignore)\//.test(url))).toEqual([]);
  });

  it("shares classes and registries between its entries", () => {
    const script = `
      ${load("looprig", "looprig/storage", "looprig/storage/local")}
      const { openLocalStorage } = m2;
      const error = await openLocalStorage({ dir: 3 }).catch((thrown) => thrown);
      const memory = m1.createMemoryStorage();
      const other = await memory.blobs.get("none").catch((thrown) => thrown);
      console.log(error instanceof m0.LooprigError, other instanceof m0.LooprigError, other instanceof m0.StorageError);
    `;
    expect(runNode(script).trim()).toBe("true true true");
  });

  it("exports from each entry what its declarations say", () => {
    const entries = ["looprig", "looprig/tools", "looprig/storage", "looprig/storage/local"];
    const exported = JSON.parse(
      runNode(`${load(...entries)} console.log(JSON.stringify([m0, m1, m2, m3].map((m) => Object.keys(m).sort())))`),
    ) as string[][];
    entries.forEach((entry, i) => {
      expect(exported[i], entry).toEqual(declaredValues(entry));
    });
  });

  it("holds the entry of helper threads where the engine looks for it", () => {
    const url = /new URL\("(.*capture-worker\.js)", import\.meta\.url\)/;
    const chunks = path.join(built, "dist", "chunks");
    const places = fs.readdirSync(chunks).flatMap((name) => {
      const found = name.endsWith(".js") ? url.exec(fs.readFileSync(path.join(chunks, name), "utf8"))?.[1] : undefined;
      return found === undefined ? [] : [path.join(chunks, found)];
    });
    expect(places).toEqual([path.join(built, "dist", "workspace-store", "capture-worker.js")]);
    // It starts by itself, and ends by itself when nobody asks anything of it.
    const script = `
      const { Worker } = await import("node:worker_threads");
      const worker = new Worker(${JSON.stringify(places[0])});
      await new Promise((resolve, reject) => worker.once("online", resolve).once("error", reject));
      console.log("online");
      await worker.terminate();
    `;
    expect(runNode(script).trim()).toBe("online");
  });
});

it("importing the local storage loads the driver only when a storage is opened", () => {
  const script = `
    const native = () => process.report.getReport().sharedObjects.filter((file) => file.endsWith(".node")).length;
    const { openLocalStorage } = await import("looprig/storage/local");
    const before = native();
    const storage = await openLocalStorage({ dir: ${JSON.stringify(path.join(dir, "state"))} });
    const opened = native();
    await storage.close();
    console.log(JSON.stringify({ before, opened }));
  `;
  expect(JSON.parse(runNode(script))).toEqual({ before: 0, opened: 1 });
});

/** The shape of the public types, as design and README promise it. Lines marked as errors must be errors. */
const promises = `
import { isLooprigError, openWorkspace, readWorkspace, createWorkspaceStore, createSessionStore } from "looprig";
import type { Change, ExecResult, RestoreReceipt, Workspace } from "looprig";
import { createMemoryStorage } from "looprig/storage";
import type { Storage } from "looprig/storage";
import { openLocalStorage } from "looprig/storage/local";
import { bash, fileTools } from "looprig/tools";

const tools: readonly ["workspace"] = fileTools().requires;
void [tools, bash({ needsApproval: ({ command }) => command.startsWith("rm") })];
// @ts-expect-error there is no such option
bash({ approval: false });

declare const runMyAgent: (dir: string) => Promise<void>;
declare const maybe: AbortSignal | undefined;

const storage: Storage = await openLocalStorage({ dir: "./state", signal: maybe });
const workspace: Workspace = await openWorkspace({ root: "./repo", storage, shared: undefined, signal: maybe });
const before = await workspace.checkpoint({ label: "before the codemod" });
await runMyAgent(workspace.root);
for (const change of await workspace.changes({ since: before.ref })) {
  if (change.by.kind === "session") void change.by.turnId;
  // @ts-expect-error a foreign change has no turn
  if (change.by.kind === "foreign") void change.by.turnId;
}
const plan = await workspace.plan({ kind: "undo", onConflict: "stop" });
if (plan.conflicts.length === 0) await workspace.apply(plan);
const receipt: RestoreReceipt = await workspace.restore("c3", { paths: ["src"] });
if (receipt.safety !== null) await workspace.restore(receipt.safety);
const { exitCode, changes }: ExecResult = await workspace.exec(["npm", "test"], { undoOnFailure: true });
process.exitCode = exitCode;
const first: Change | undefined = changes[0];
void first;
// @ts-expect-error an empty command
await workspace.exec([]);
// @ts-expect-error a plan is made by plan()
await workspace.apply({ writes: [] });
// @ts-expect-error there is no such option
await openWorkspace({ root: "./repo", exclusive: true });
await workspace.close();

const view = await readWorkspace({ root: "./repo", storage: createMemoryStorage() });
for await (const checkpoint of view.checkpoints({ limit: 3 })) void checkpoint.number;
// @ts-expect-error a view changes nothing
await view.undo();
await view[Symbol.asyncDispose]();

void createWorkspaceStore(storage, { spoolDir: undefined });
void createSessionStore(storage);
try {
  await openWorkspace({ root: "./repo" });
} catch (error) {
  if (isLooprigError(error, "workspace_root.busy")) void error.details.holder?.pid;
  // @ts-expect-error no such code
  isLooprigError(error, "workspace_root.bussy");
}
`;

/** Emits JavaScript, declarations and maps by the options of the real build; that they check is `npm run check`'s work. */
function emitPackage(): void {
  const file = path.join(repository, "tsconfig.build.json");
  const read = ts.readConfigFile(file, (name) => ts.sys.readFile(name));
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(read.config, ts.sys, repository);
  expect(errors).toEqual([]);
  const write: ts.WriteFileCallback = (target, text) => {
    // Compiled as for `dist`, so that maps say what they will say, and written apart.
    const apart = path.join(built, path.relative(repository, target));
    fs.mkdirSync(path.dirname(apart), { recursive: true });
    fs.writeFileSync(apart, text);
  };
  const result = ts.createProgram(fileNames, { ...options, noCheck: true }).emit(undefined, write);
  expect(result.diagnostics.map(message)).toEqual([]);
}

let packed: readonly string[] | undefined;

/** Without scripts: the build that `prepare` would run is the one above. */
function packedFiles(): readonly string[] {
  packed ??= (
    JSON.parse(
      execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
        cwd: built,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }),
    ) as [{ files: { path: string }[] }]
  )[0].files.map((file) => file.path);
  return packed;
}

/** What an install without development dependencies brings to this machine: nothing else may be imported, by types neither. */
function dependencies(): readonly string[] {
  const lock = JSON.parse(fs.readFileSync(path.join(repository, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; peer?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([place, { dev, devOptional, peer }]) => place !== "" && !dev && !devOptional && !peer)
    .map(([place]) => place.replace(/^node_modules\//, ""))
    .filter((name) => fs.existsSync(path.join(repository, "node_modules", name)));
}

/** As a package manager lays it out, but by a link. */
function install(name: string, from: string): void {
  const place = path.join(project, "node_modules", name);
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.symlinkSync(from, place);
}

/** Names that are values, by the declarations of an entry. */
function declaredValues(entry: string): readonly string[] {
  const file = write(`values-${entry.replaceAll("/", "-")}.ts`, `import * as all from "${entry}"; void all;`);
  const program = ts.createProgram([file], {
    ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, noEmit: true, types: [], noLib: true },
    ...{ moduleResolution: ts.ModuleResolutionKind.NodeNext, preserveSymlinks: true },
  });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const statement = source?.statements[0];
  if (statement === undefined || !ts.isImportDeclaration(statement)) throw new Error("BUG: the module has no import");
  const module = checker.getSymbolAtLocation(statement.moduleSpecifier);
  if (module === undefined) throw new Error(`BUG: "${entry}" does not resolve`);
  return checker
    .getExportsOfModule(module)
    .filter((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      return (target.flags & ts.SymbolFlags.Value) !== 0;
    })
    .map(({ name }) => name)
    .sort();
}

function diagnose(files: readonly string[], { skipLibCheck }: { readonly skipLibCheck: boolean }): string[] {
  const program = ts.createProgram(files, {
    ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext },
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true },
    ...{ skipLibCheck, preserveSymlinks: true, types: ["node"] },
    typeRoots: [path.join(project, "node_modules", "@types")],
  });
  return ts.getPreEmitDiagnostics(program).map(message);
}

function message(diagnostic: ts.Diagnostic): string {
  const at = diagnostic.file;
  const line =
    at === undefined || diagnostic.start === undefined
      ? ""
      : `${path.relative(project, at.fileName)}:${at.getLineAndCharacterOfPosition(diagnostic.start).line + 1} `;
  return `${line}${ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n")}`;
}

function runNode(script: string): string {
  const args = ["--preserve-symlinks", "--input-type=module", "--eval", script];
  return execFileSync(process.execPath, args, { cwd: project, encoding: "utf8" });
}
