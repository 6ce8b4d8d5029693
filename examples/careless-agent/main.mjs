#!/usr/bin/env node
/**
 * The tour of looprig, about twenty seconds with its installation: a careless agent works on a copy of broken-calculator,
 * and everything it did is shown, undone, redone and restored, through the real command line. Every step is checked against
 * the files themselves; the first one that did not do what it says ends the tour with status 1.
 *
 * Nothing of the user's is touched: the copy and looprig's state live in a temporary directory that is removed at the end.
 */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../", import.meta.url));
/** The command line that is shown; another build of it can be named as the first argument. */
const looprigEntry = process.argv[2] ?? path.join(repository, "dist", "cli", "main.js");
const agent = path.join(repository, "examples", "careless-agent", "agent.sh");

class StepFailed extends Error {}

function main() {
  if (!fs.existsSync(looprigEntry)) throw new StepFailed("looprig is not built; run: npm run build");
  const temporary = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-tour-"));
  try {
    tour(temporary);
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
}

function tour(temporary) {
  const home = path.join(temporary, "home");
  const root = path.join(home, "calc");
  fs.mkdirSync(home);
  fs.cpSync(path.join(repository, "examples", "broken-calculator"), root, { recursive: true });
  fs.copyFileSync(agent, path.join(home, "agent.sh"));

  const env = { ...process.env, HOME: home, LOOPRIG_HOME: path.join(temporary, "state"), NO_COLOR: "1" };
  for (const inherited of ["LOOPRIG_ROOT", "LOOPRIG_SESSION", "NODE_TEST_CONTEXT", "NODE_OPTIONS"])
    delete env[inherited];
  const looprig = (...words) => run(root, env, process.execPath, [looprigEntry, ...words]);
  const testsPass = () => run(root, env, process.execPath, ["test/calculator.test.js"]).status === 0;
  const before = readTree(root);

  say("A small project with a failing test, and an agent that mends it carelessly.");
  check(!testsPass(), "the tests fail to begin with");

  step("looprig exec -- sh ../agent.sh", looprig("exec", "--", "sh", "../agent.sh"), 0);
  const after = readTree(root);
  check(!("src/format.js" in after), "the agent deleted src/format.js");
  check("scratch/ideas/todo.txt" in after, "the agent made a file nobody asked for");
  check(after["src/parse.js"] !== before["src/parse.js"], "the agent edited src/parse.js");

  step("looprig status", looprig("status"), 0);
  const stat = step("looprig diff --stat -- src", looprig("diff", "--stat", "--", "src"), 0);
  check(/^3 files, /m.test(stat), "the diff names the three files below src");

  step("looprig undo --yes", looprig("undo", "--yes"), 0, { only: receipt });
  checkTree(root, before, "every file is as it was before the agent");

  step("looprig redo --yes", looprig("redo", "--yes"), 0, { only: receipt });
  checkTree(root, after, "every file is as the agent left it");

  const shown = step("looprig show c1:src/round.js", looprig("show", "c1:src/round.js"), 0);
  check(shown === before["src/round.js"].text, "the bytes shown are those from before the agent");

  // The one good thing the agent did is kept: only what it broke is brought back.
  step(
    "looprig restore c1 --yes -- src/format.js scratch",
    looprig("restore", "c1", "--yes", "--", "src/format.js", "scratch"),
    0,
    { only: receipt },
  );
  const kept = { ...after, "src/format.js": before["src/format.js"] };
  for (const name of ["scratch", "scratch/ideas", "scratch/ideas/todo.txt"]) delete kept[name];
  checkTree(root, kept, "the deleted file is back, the litter gone, the mended files kept");
  check(testsPass(), "the tests pass");
  say("The tests pass now, and only what the agent broke was brought back.");

  step("looprig log", looprig("log"), 0);
  say("\nIn your own directory, around any command or agent:\n\n  looprig exec -- <command>");
}

/** The line that says what was done, without the plan before it. */
const receipt = /^\d+ files? .*\.$/;

/** Prints a command as typed with what it said, or only some lines of it, and returns its stdout. */
function step(typed, { status, stdout, stderr }, wanted, { only = /(?:)/ } = {}) {
  say(`\n$ ${typed}`);
  const lines = (stdout + stderr).replace(/\n$/, "").split("\n");
  // What went wrong is shown whole.
  say((status === wanted ? lines.filter((line) => only.test(line)) : lines).join("\n"));
  check(status === wanted, `\`${typed}\` exits ${wanted}; it exited ${status}`);
  return stdout;
}

function run(cwd, env, program, args) {
  const done = spawnSync(program, args, {
    cwd,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  if (done.error) throw done.error;
  return done;
}

/** Every entry below `root`: kind, permission bits, and what is in a file. */
function readTree(root) {
  const tree = {};
  for (const entry of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    const { mode } = fs.lstatSync(file);
    const text = entry.isFile() ? fs.readFileSync(file, "utf8") : "";
    tree[path.relative(root, file)] = { directory: entry.isDirectory(), mode: mode & 0o777, text };
  }
  return tree;
}

function checkTree(root, wanted, claim) {
  const found = readTree(root);
  const names = [...new Set([...Object.keys(found), ...Object.keys(wanted)])];
  const wrong = names.filter((name) => JSON.stringify(found[name]) !== JSON.stringify(wanted[name]));
  check(wrong.length === 0, `${claim}; different: ${wrong.join(", ")}`);
}

function check(holds, claim) {
  if (!holds) throw new StepFailed(`not true: ${claim}`);
}

function say(text) {
  console.log(text);
}

try {
  main();
} catch (error) {
  console.error(error instanceof StepFailed ? `\ntour: ${error.message}` : error);
  process.exitCode = 1;
}
