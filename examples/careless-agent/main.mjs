#!/usr/bin/env node
/**
 * The tour of looprig, about ten seconds, on a copy of broken-calculator and through the real command line. First a careless
 * agent of somebody else runs under `looprig exec`, and what it did is undone. Then an agent of looprig's own mends the
 * project with `looprig run`; what it did is shown, undone and redone, and a second process goes on with its session. Its
 * model plays a script, which is all that is staged. Every step is checked against the files themselves; the first one that
 * did not do what it says ends the tour with status 1.
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
const here = path.join(repository, "examples", "careless-agent");

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
  for (const name of ["agent.sh", "mend.json", "go-on.json"])
    fs.copyFileSync(path.join(here, name), path.join(home, name));

  const env = environment(home, path.join(temporary, "state"));
  const looprig = (...words) => run(root, env, process.execPath, [looprigEntry, ...words]);
  const testsPass = () => run(root, env, process.execPath, ["test/calculator.test.js"]).status === 0;
  const before = readTree(root);

  say("A small project with failing tests. First, any agent or script, and what it did taken back:");
  check(!testsPass(), "the tests fail to begin with");

  step("looprig exec -- sh ../agent.sh", looprig("exec", "--", "sh", "../agent.sh"), 0);
  check(!("src/format.js" in readTree(root)), "the agent deleted src/format.js");

  const stat = step("looprig diff --stat", looprig("diff", "--stat"), 0);
  check(/^ {2}D src\/format\.js /m.test(stat), "the diff names the deleted file");

  step("looprig undo --yes", looprig("undo", "--yes"), 0, { only: receipt });
  checkTree(root, before, "every file is as it was before the agent");

  say("\nNow an agent of looprig's own. Only what its model says is from a script:");

  const mend = "make the tests pass";
  const ran = step(
    `looprig run --model script:../mend.json --allow bash "${mend}"`,
    looprig("run", "--model", "script:../mend.json", "--allow", "bash", mend),
    0,
  );
  const after = readTree(root);
  check(testsPass(), "the tests pass");
  check(after["src/parse.js"].text !== before["src/parse.js"].text, "the agent edited src/parse.js");
  check(after["src/round.js"].text !== before["src/round.js"].text, "the agent edited src/round.js");
  const [, session] = /session ([0-9a-f]+)/.exec(ran) ?? [];

  const log = step(`looprig log --all --session ${session}`, looprig("log", "--all", "--session", session), 0);
  check(/baseline .* quiescent/.test(log) && /idle.* quiescent/.test(log), "the log tells cause and consistency");

  const diff = step("looprig diff", looprig("diff"), 0);
  check(/^-.*take\(\);$/m.test(diff) && /^\+.*Math\.sign/m.test(diff), "the diff shows both edits");

  step("looprig undo --yes", looprig("undo", "--yes"), 0, { only: receipt });
  checkTree(root, before, "every file is as it was before the agent");

  step("looprig redo --yes", looprig("redo", "--yes"), 0, { only: receipt });
  checkTree(root, after, "every file is as the agent left it");

  say("\nAnother process goes on with the session, which knows what was said and done in it:");

  const more = "add a test for two signs";
  step(
    `looprig run --resume ${session} --model script:../go-on.json --allow bash "${more}"`,
    looprig("run", "--resume", session, "--model", "script:../go-on.json", "--allow", "bash", more),
    0,
  );
  check(readTree(root)["test/calculator.test.js"].text.includes("two signs"), "the agent added a test");
  check(testsPass(), "the tests pass still");

  const whole = step("looprig log", looprig("log"), 0);
  check(whole.includes(`"${mend}"`) && whole.includes(`"${more}"`), "the log has both turns of the session");

  say("\nIn your own directory, around any command or agent, or with a model of your own:");
  say('\n  looprig exec -- <command>\n  looprig run --model <provider>/<name> "<what to do>"');
}

/** The user's, without what would make another npm, looprig or test runner of ours out of those that are started. */
function environment(home, state) {
  const ours = /^(?:npm_|LOOPRIG_|NODE_TEST_CONTEXT$|NODE_OPTIONS$|INIT_CWD$)/i;
  const kept = Object.entries(process.env).filter(([name]) => !ours.test(name));
  const own = { HOME: home, LOOPRIG_HOME: state, NO_COLOR: "1", npm_config_update_notifier: "false" };
  return { ...Object.fromEntries(kept), ...own };
}

/** The line that says what was done, without the plan before it. */
const receipt = /^\d+ files? .*\.$/;

/** Prints a command as typed with what it said, or only some lines of it, and returns what it said. */
function step(typed, { status, said }, wanted, { only = /(?:)/ } = {}) {
  say(`\n$ ${typed}`);
  const lines = said.replace(/\n$/, "").split("\n");
  // What went wrong is shown whole.
  say((status === wanted ? lines.filter((line) => only.test(line)) : lines).join("\n"));
  check(status === wanted, `\`${typed}\` exits ${wanted}; it exited ${status}`);
  return said;
}

/** Both streams in one, in the order in which they were written, as on a terminal. */
function run(cwd, env, program, args) {
  const file = path.join(env.HOME, "said");
  const said = fs.openSync(file, "w+");
  try {
    const done = spawnSync(program, args, { cwd, env, stdio: ["ignore", said, said], timeout: 60_000 });
    if (done.error) throw done.error;
    return { status: done.status, said: fs.readFileSync(file, "utf8") };
  } finally {
    fs.closeSync(said);
  }
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
