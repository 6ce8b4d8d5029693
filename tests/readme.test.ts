/**
 * The README can be followed literally: its tour is run in order, in one home directory, by the command line of the present
 * sources, and its TypeScript against the present library; what it shows is compared with what comes out.
 *
 * `console` blocks are a shell session: `$ ` begins a command, `> ` goes on with it, the rest is what it prints. The `text`
 * block after a `ts` block is what that program prints. `sh` blocks (installing) are not run here.
 */
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, expect, it } from "vitest";
import { builtFile } from "./build.js";
import { codeBlocks, localLinks } from "./markdown.js";

const repository = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const readme = fs.readFileSync(path.join(repository, "README.md"), "utf8");
const blocks = codeBlocks(readme);

const dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
const home = path.join(dir, "home");
const bin = path.join(dir, "bin");
const environment: NodeJS.ProcessEnv = {
  ...process.env,
  HOME: home,
  LOOPRIG_HOME: path.join(dir, "state"),
  PATH: `${bin}${path.delimiter}${process.env["PATH"] ?? ""}`,
};
for (const name of ["LOOPRIG_ROOT", "LOOPRIG_SESSION", "NODE_OPTIONS"]) Reflect.deleteProperty(environment, name);

beforeAll(() => {
  fs.mkdirSync(home);
  fs.mkdirSync(bin);
  const command = `#!/bin/sh\nexec '${process.execPath}' '${builtFile("src/cli/main.ts")}' "$@"\n`;
  fs.writeFileSync(path.join(bin, "looprig"), command, { mode: 0o755 });
  installLibrary();
});
afterAll(() => fs.rmSync(dir, { recursive: true, force: true }));

it("the tour shows what really happens, command by command", () => {
  let cwd = home;
  const shown: string[] = [];
  const happened: string[] = [];
  for (const [i, { language, text }] of blocks.entries()) {
    if (language === "console") {
      const commands = parseSession(text);
      const session = runSession(
        commands.map(({ command }) => command),
        cwd,
      );
      cwd = session.cwd;
      for (const [j, { command, output }] of commands.entries()) {
        shown.push(`$ ${command}\n${normalized(output)}`);
        happened.push(`$ ${command}\n${normalized(session.outputs[j] ?? "")}`);
      }
    } else if (language === "ts") {
      const printed = blocks[i + 1];
      expect(printed?.language, "a `text` block follows each `ts` block").toBe("text");
      shown.push(`ts ${i}\n${normalized(printed?.text ?? "")}`);
      happened.push(`ts ${i}\n${normalized(runTypeScript(text))}`);
    }
  }
  expect(shown.length).toBeGreaterThan(15);
  expect(happened).toEqual(shown);
});

it("has every command of the command line in its tour", () => {
  const tour = blocks.filter(({ language }) => language === "console").map(({ text }) => text);
  const used = new Set([...tour.join("\n").matchAll(/looprig ([a-z]+)/g)].map(([, name]) => name));
  const help = execFileSync(path.join(bin, "looprig"), ["--help"], { env: environment, encoding: "utf8" });
  const commands = [...help.matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name);
  expect(commands.length).toBeGreaterThan(5);
  expect(commands.filter((name) => !used.has(name))).toEqual([]);
});

it("installs and tests by scripts that exist, the ones CI runs", () => {
  const { scripts } = JSON.parse(fs.readFileSync(path.join(repository, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
  const named = [...shell.join("\n").matchAll(/npm (?:run )?(start|test|bench)\b/g)].map(([, name]) => name ?? "");
  expect(named).toContain("start");
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([]);
  expect(shell.some((text) => text.startsWith("npm ci && npm test"))).toBe(true);
  const ci = fs.readFileSync(path.join(repository, ".ci", "run"), "utf8");
  expect(ci.split("\n").filter((line) => line.startsWith("npm "))).toEqual(["npm ci", "npm test"]);
});

it("links to files that exist", () => {
  expect(localLinks(readme).filter((target) => !fs.existsSync(path.join(repository, target)))).toEqual([]);
});

interface SessionCommand {
  readonly command: string;
  readonly output: string;
}

function parseSession(text: string): readonly SessionCommand[] {
  const commands: { command: string; output: string }[] = [];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const last = commands.at(-1);
    if (line.startsWith("$ ")) commands.push({ command: line.slice(2), output: "" });
    else if (last === undefined) throw new Error(`A session begins with a command, not with ${JSON.stringify(line)}`);
    else if (line.startsWith("> ") && last.output === "") last.command += `\n${line.slice(2)}`;
    else last.output += `${line}\n`;
  }
  return commands;
}

const separator = "\n\u001e\n";

/** One shell for the whole session, as for the reader; standard output and errors in one stream, as on a terminal. */
function runSession(commands: readonly string[], cwd: string): { outputs: readonly string[]; cwd: string } {
  const script = ["umask 022", ...commands.flatMap((command) => [command, "printf '\\n\\036\\n'"]), "pwd -P"].join(
    "\n",
  );
  const result = spawnSync("sh", ["-c", `exec 2>&1\n${script}\n`], {
    ...{ cwd, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
  });
  const outputs = result.stdout.split(separator);
  return { cwd: outputs.pop()?.trim() ?? cwd, outputs };
}

function runTypeScript(text: string): string {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  });
  const file = path.join(home, "snippet.mjs");
  fs.writeFileSync(file, outputText);
  const result = spawnSync(process.execPath, [file], { cwd: home, env: environment, encoding: "utf8" });
  return result.stdout + result.stderr;
}

/** The package as an install would have it: its manifest, and the present sources as its `dist`. */
function installLibrary(): void {
  const installed = path.join(home, "node_modules", "looprig");
  fs.mkdirSync(installed, { recursive: true });
  fs.copyFileSync(path.join(repository, "package.json"), path.join(installed, "package.json"));
  fs.symlinkSync(path.dirname(builtFile("src/index.ts")), path.join(installed, "dist"));
}

/** What differs from run to run and from machine to machine; columns shift with it. */
function normalized(text: string): string {
  return text
    .replaceAll(home, "~")
    .replace(/\b[0-9a-f]{8}\b/g, "<ref>")
    .replace(/\b[0-9a-f]{4,7}\b/g, "<id>")
    .replace(/\b\d{1,2}:\d{2}\b/g, "<time>")
    .replace(/\bin \d+(\.\d+)? (ms|s|min)\b/g, "in <duration>")
    .replace(/\bjust now\b|\b\d+ (s|min) ago\b/g, "<ago>")
    .replace(/\b\d+(\.\d+)? (B|KiB|MiB)\b/g, "<size>")
    .replace(/ {2,}/g, "  ");
}
