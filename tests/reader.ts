/**
 * A reader who follows one of our documents literally: has looprig installed, types its commands into one shell, saves its
 * programs and runs them. What comes out is compared with what the document shows.
 *
 * `console` blocks are a shell session: `$ ` begins a command, `> ` goes on with it, the rest is what it prints. A `ts` block
 * is a program; the `text` block after it is what that prints, and without one it prints nothing. If its first line is
 * `// name.ts`, it is saved under that name, and later programs can import it. Other blocks are for reading.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import ts from "typescript";
import { builtFile } from "./build.js";
import { codeBlocks, programName } from "./markdown.js";
import { repository } from "./source-tree.js";

/** What a document shows and what happened, step by step, without what differs from run to run. */
export interface Reading {
  readonly shown: readonly string[];
  readonly happened: readonly string[];
}

export class Reader {
  readonly #dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
  readonly home = path.join(this.#dir, "home");
  readonly bin = path.join(this.#dir, "bin");
  readonly environment: NodeJS.ProcessEnv = {
    ...process.env,
    HOME: this.home,
    LOOPRIG_HOME: path.join(this.#dir, "state"),
    PATH: `${this.bin}${path.delimiter}${process.env["PATH"] ?? ""}`,
  };

  constructor() {
    for (const name of ["LOOPRIG_ROOT", "LOOPRIG_SESSION", "NODE_OPTIONS"]) {
      Reflect.deleteProperty(this.environment, name);
    }
    fs.mkdirSync(this.home);
    fs.mkdirSync(this.bin);
    const command = `#!/bin/sh\nexec '${process.execPath}' '${builtFile("src/cli/main.ts")}' "$@"\n`;
    fs.writeFileSync(path.join(this.bin, "looprig"), command, { mode: 0o755 });
    installLooprig(this.home);
  }

  close(): void {
    fs.rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Another package that the programs use, from those the repository has. */
  install(name: string): void {
    fs.symlinkSync(path.join(repository, "node_modules", name), path.join(this.home, "node_modules", name));
  }

  follow(markdown: string): Reading {
    const blocks = codeBlocks(markdown);
    let cwd = this.home;
    const shown: string[] = [];
    const happened: string[] = [];
    for (const [i, { language, text }] of blocks.entries()) {
      if (language === "console") {
        const commands = parseSession(text);
        const session = this.#type(
          commands.map(({ command }) => command),
          cwd,
        );
        cwd = session.cwd;
        for (const [j, { command, output }] of commands.entries()) {
          shown.push(`$ ${command}\n${this.#normalized(output)}`);
          happened.push(`$ ${command}\n${this.#normalized(session.outputs[j] ?? "")}`);
        }
      } else if (language === "ts") {
        const next = blocks[i + 1];
        const file = this.#save(text);
        // A module that shows nothing of its own runs in the programs that import it.
        if (programName(text) !== undefined && next?.language !== "text") continue;
        shown.push(`program ${i + 1}\n${this.#normalized(next?.language === "text" ? next.text : "")}`);
        happened.push(`program ${i + 1}\n${this.#normalized(this.#run(file))}`);
      }
    }
    return { shown, happened };
  }

  /** One shell for the whole session, as for the reader; standard output and errors in one stream, as on a terminal. */
  #type(commands: readonly string[], cwd: string): { outputs: readonly string[]; cwd: string } {
    const lines = ["umask 022", ...commands.flatMap((command) => [command, "printf '\\n\\036\\n'"]), "pwd -P"];
    const result = spawnSync("sh", ["-c", `exec 2>&1\n${lines.join("\n")}\n`], {
      ...{ cwd, env: this.environment, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
    });
    const outputs = result.stdout.split("\n\u001e\n");
    return { cwd: outputs.pop()?.trim() ?? cwd, outputs };
  }

  #save(text: string): string {
    const { outputText } = ts.transpileModule(text, {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    });
    const file = path.join(this.home, programName(text)?.replace(/\.ts$/, ".js") ?? "program.js");
    fs.writeFileSync(file, outputText);
    return file;
  }

  #run(file: string): string {
    const result = spawnSync(process.execPath, [file], { cwd: this.home, env: this.environment, encoding: "utf8" });
    return result.stdout + result.stderr;
  }

  /** What differs from run to run and from machine to machine; columns shift with it. */
  #normalized(text: string): string {
    return text
      .replaceAll(this.home, "~")
      .replace(/\b[0-9a-f]{8}\b/g, "<ref>")
      .replace(/\b[0-9a-f]{4,7}\b/g, "<id>")
      .replace(/\b\d{1,2}:\d{2}\b/g, "<time>")
      .replace(/\bin \d+(\.\d+)? (ms|s|min)\b/g, "in <duration>")
      .replace(/\bjust now\b|\b\d+ (s|min) ago\b/g, "<ago>")
      .replace(/\b\d+(\.\d+)? (B|KiB|MiB)\b/g, "<size>")
      .replace(/ {2,}/g, "  ");
  }
}

/** The package as an install in `project` would have it: its manifest, and the present sources as its `dist`. */
export function installLooprig(project: string): void {
  const installed = path.join(project, "node_modules", "looprig");
  fs.mkdirSync(installed, { recursive: true });
  fs.writeFileSync(path.join(project, "package.json"), '{ "type": "module", "private": true }\n');
  fs.copyFileSync(path.join(repository, "package.json"), path.join(installed, "package.json"));
  fs.symlinkSync(path.dirname(builtFile("src/index.ts")), path.join(installed, "dist"));
}

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
