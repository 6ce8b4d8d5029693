#!/usr/bin/env node
/** The program: makes an environment of the real process, and nothing else. */
import os from "node:os";
import tty from "node:tty";
import { nodeFileSystem } from "../core/index.js";
import { answersFrom } from "./answers.js";
import { runCommandLine } from "./command-line.js";
import { currentDirectory } from "./current-directory.js";
import { Output } from "./output.js";
import { rawWords } from "./raw-words.js";

/** The home of the account, also where $HOME names another directory. */
function accountHome(): readonly string[] {
  try {
    return [os.userInfo().homedir];
  } catch {
    // An account without an entry has none.
    return [];
  }
}

process.exitCode = await runCommandLine({
  words: rawWords(process.argv.slice(2), nodeFileSystem),
  env: process.env,
  platform: process.platform,
  nodeVersion: process.versions.node,
  uid: process.geteuid?.(),
  // Asked for when it is needed: it may be gone, and that is told like any other failure.
  get cwd() {
    return currentDirectory(() => process.cwd(), process.env);
  },
  home: os.homedir(),
  homes: [os.homedir(), ...accountHome()],
  now: () => new Date(),
  // The streams are only opened when they are used: a child that inherits them finds them untouched.
  stdin: answersFrom(tty.isatty(0), () => process.stdin),
  stdout: new Output(tty.isatty(1), () => process.stdout),
  stderr: new Output(tty.isatty(2), () => process.stderr),
  fileSystem: nodeFileSystem,
  signals: process,
  stop: (exitCode) => process.exit(exitCode),
});
