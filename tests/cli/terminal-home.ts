/** A home directory with a root and a state of its own, in which the real command line is run as a person would. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { ScriptStep } from "../../src/loop/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";
import { openWorkspace } from "../../src/workspace/index.js";
import { builtFile } from "../build.js";
import { listTree } from "../playground.js";
import { startProcess } from "../processes.js";
import type { TestProcess } from "../processes.js";

export interface Ran {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The bytes of stdout. */
  readonly bytes: Buffer;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** A shell command that reads its stdout; what that prints is the stdout. */
  readonly pipe?: string;
  /** The command line that is run; the present sources' when absent. */
  readonly main?: string;
}

export interface Utterance {
  /** Words on the terminal, or whatever else has to be so. */
  readonly when: string | (() => boolean);
  readonly type?: string;
  /** Ends the command line, which is the terminal's only process. */
  readonly kill?: NodeJS.Signals;
  readonly afterwards?: (() => void) | undefined;
}

const program = "src/cli/main.ts";

export class TerminalHome implements Disposable {
  readonly home: string;
  readonly root: string;

  constructor() {
    this.home = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
    this.root = path.join(this.home, "calc");
    fs.mkdirSync(this.root);
  }

  at(name: string): string {
    return path.join(this.root, name);
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.dirname(this.at(name)), { recursive: true });
      fs.writeFileSync(this.at(name), content);
    }
  }

  read(name: string): string {
    return fs.readFileSync(this.at(name), "utf8");
  }

  tree(root = this.root): Readonly<Record<string, string>> {
    return listTree(root);
  }

  env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    return {
      PATH: process.env["PATH"],
      HOME: this.home,
      LOOPRIG_HOME: path.join(this.home, "state"),
      TERM: "xterm",
      ...more,
    };
  }

  /** A script for the scripted model, beside the root; returns what `--model` is given. */
  script(steps: readonly ScriptStep[], name = "script.json"): string {
    const file = path.join(this.home, name);
    fs.writeFileSync(file, JSON.stringify(steps));
    return `script:${file}`;
  }

  /** `looprig …words`, without a terminal. */
  async run(
    words: readonly string[],
    { cwd = this.root, env, input, pipe, main = builtFile(program) }: RunOptions = {},
  ): Promise<Ran> {
    if (pipe !== undefined) {
      const command = [process.execPath, main, ...words].map(quoted).join(" ");
      return collect("sh", ["-c", `${command} | ${pipe}`], { cwd, env: this.env(env), input });
    }
    return collect(process.execPath, [main, ...words], { cwd, env: this.env(env), input });
  }

  /** `looprig exec -- sh -c script`. */
  sh(script: string, options: readonly string[] = []): Promise<Ran> {
    return this.run(["exec", ...options, "--", "sh", "-c", script]);
  }

  /** What that does to the files and the history, without the cost of a process of ours. */
  async did(script: string): Promise<void> {
    const storage = await openLocalStorage({ dir: path.join(this.home, "state") });
    const workspace = await openWorkspace({ root: this.root, storage, baseline: false, command: "test" });
    try {
      await workspace.exec(["sh", "-c", script], { stdio: "ignore" });
    } finally {
      await workspace.close();
      await storage.close();
    }
  }

  async json(words: readonly string[]): Promise<Record<string, unknown>> {
    return JSON.parse((await this.run([...words, "--json"])).stdout) as Record<string, unknown>;
  }

  /** Runs without waiting for the end, to be spoken with. */
  start(words: readonly string[]): TestProcess {
    return startProcess(program, words, { cwd: this.root, env: this.env() });
  }

  /** The same on a pseudo-terminal, made by util-linux's `script`; `input` is what is typed. stdout and stderr come together. */
  async onTerminal(words: readonly string[], input: string): Promise<Ran> {
    return collect("script", scriptOf(words), { cwd: this.root, env: this.env(), input });
  }

  /** The same, typed when the terminal shows `text`; `afterwards` is called when it was. */
  async onTerminalWhen(words: readonly string[], text: string, input: string, afterwards?: () => void): Promise<Ran> {
    return this.onTerminalDialogue(words, [{ when: text, type: input, afterwards }]);
  }

  /** The same, with several turns of the dialogue: each begins when the terminal shows its words, after what was typed before. */
  async onTerminalDialogue(words: readonly string[], dialogue: readonly Utterance[]): Promise<Ran> {
    return collect("script", scriptOf(words), { cwd: this.root, env: this.env(), dialogue });
  }

  [Symbol.dispose](): void {
    fs.rmSync(this.home, { recursive: true, force: true });
  }
}

/** The shell gives way to the command: it would hear Ctrl-C too and have a status of its own. */
const scriptOf = (words: readonly string[]): string[] => {
  const command = [process.execPath, builtFile(program), ...words].map(quoted).join(" ");
  return ["-qec", `exec ${command}`, "/dev/null"];
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

interface Collecting {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly input?: string | undefined;
  /** What is said meanwhile; the input stays open. */
  readonly dialogue?: readonly Utterance[];
}

function collect(file: string, args: readonly string[], { cwd, env, input, dialogue }: Collecting): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const takesInput = input !== undefined || dialogue !== undefined;
    const child = spawn(file, args, { cwd, env, stdio: [takesInput ? "pipe" : "ignore", "pipe", "pipe"] });
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.stdin?.on("error", () => undefined);
    if (dialogue === undefined) child.stdin?.end(input);
    else {
      // The terminal stays open afterwards: an end of input of its own would race with what was typed.
      const over = converse(child, dialogue, () => Buffer.concat(stdout).toString("utf8"));
      child.on("exit", () => {
        over();
        child.stdin?.destroy();
      });
    }
    child.on("error", reject);
    child.on("close", (status, signal) => {
      const bytes = Buffer.concat(stdout);
      resolve({
        status,
        signal,
        stdout: bytes.toString("utf8"),
        stderr: Buffer.concat(stderr).toString("utf8"),
        bytes,
      });
    });
  });
}

/** Says each utterance when its time has come. Returns what ends it. */
function converse(child: ChildProcess, dialogue: readonly Utterance[], shown: () => string): () => void {
  const left = [...dialogue];
  let seen = 0;
  const look = (): void => {
    const [next] = left;
    if (next === undefined) return;
    if (typeof next.when === "string") {
      const at = shown().indexOf(next.when, seen);
      if (at === -1) return;
      seen = at + next.when.length;
    } else if (!next.when()) return;
    left.shift();
    if (next.kill !== undefined) process.kill(onlyChildOf(child), next.kill);
    child.stdin?.write(next.type ?? "", () => next.afterwards?.());
  };
  // Conditions outside of the terminal are not announced by it.
  const timer = setInterval(look, 20);
  return () => clearInterval(timer);
}

/** The process on the terminal that `script` made. */
function onlyChildOf({ pid }: ChildProcess): number {
  return Number(fs.readFileSync(`/proc/${pid ?? 0}/task/${pid ?? 0}/children`, "utf8").trim());
}
