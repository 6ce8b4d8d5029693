/**
 * `node bench/checkout.mjs [DIR]`: a day with looprig on a real checkout. A copy of DIR (default: this repository as it stands, with
 * `node_modules`) becomes a git repository in a fresh directory; a command edits sources, deletes a dependency and commits;
 * then status, diff, undo, redo, restore and more, each timed as a new process, and the tree compared with what it should be.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));
const source = path.resolve(process.argv[2] ?? repository);
const left = new Set([".git", ".looprig-bench", ".cache", "coverage"]);

const place = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-checkout-"));
const root = path.join(place, "project");
const env = {
  ...process.env,
  LOOPRIG_HOME: path.join(place, "state"),
  ...{
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@example.org",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@example.org",
  },
};
try {
  fs.cpSync(source, root, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (name) => !left.has(path.basename(name)),
  });
  git("init", "-q");
  git("add", "-A");
  git("commit", "-q", "-m", "as it was");
  spawnSync("sync");
  day();
} finally {
  fs.rmSync(place, { recursive: true, force: true });
}

function day() {
  const before = readTree(root);
  const counts = (kind) => Object.values(before.entries).filter((entry) => entry.startsWith(kind)).length;
  console.log(
    `${counts("file")} files, ${counts("directory")} directories, ${counts("link")} links, ${(before.bytes / 2 ** 20).toFixed(0)} MiB without .git; load ${os.loadavg()[0].toFixed(1)}\n`,
  );
  console.log("| step | time | what it said last |\n|---|---:|---|");
  timed("node -e 0, for comparison", process.execPath, ["-e", "0"]);
  const careless =
    'for f in $(find src -name "*.js" -o -name "*.ts" | head -20); do echo "// touched" >> "$f"; done; rm README.md; rm -rf node_modules/prettier; mkdir -p notes/deep; echo idea > notes/deep/a.txt; git commit -qam agent';
  looprig("exec", "--", "sh", "-c", careless);
  const after = readTree(root);
  looprig("status");
  looprig("diff", "--stat");
  looprig("undo", "--dry-run");
  looprig("undo", "--yes");
  expectTree(before, "undo");
  looprig("redo", "--yes");
  expectTree(after, "redo");
  looprig("restore", "c1", "--yes");
  expectTree(before, "restore");
  looprig("undo", "--yes");
  expectTree(after, "undo of the restore");
  looprig("exec", "--", "sh", "-c", "echo >> package.json");
  looprig("snapshot");
  looprig("show", "c1:package.json");
  looprig("log");
  const dest = path.join(place, "elsewhere");
  looprig("restore", "c1", "--to", dest);
  expectTree(before, "restore elsewhere", dest);
  const fsck = git("fsck", "--no-dangling");
  const commits = git("rev-list", "--count", "HEAD").trim();
  const stored = readTree(env.LOOPRIG_HOME).bytes;
  const packed = Number(
    spawnSync("sh", ["-c", 'tar -C "$0" --exclude=./.git -cf - . | gzip | wc -c', root], { encoding: "utf8" }).stdout,
  );
  console.log(
    `\nEach tree was compared with what it should be. .git holds its ${commits} commits${fsck.trim() === "" ? ", and git fsck finds nothing" : ""}.`,
  );
  console.log(
    `State directory: ${(stored / 2 ** 20).toFixed(1)} MiB; tar and gzip of the files once: ${(packed / 2 ** 20).toFixed(1)} MiB.`,
  );
}

function looprig(...args) {
  const entry = path.join(repository, "dist", "cli", "main.js");
  timed(
    `looprig ${args.map((word) => (word.length > 30 ? "…" : word)).join(" ")}`.replace(place, ""),
    process.execPath,
    [entry, ...args],
  );
}

function timed(title, command, args) {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: "utf8" });
  const ms = performance.now() - start;
  if (status !== 0) throw new Error(`${title} ended with ${status}: ${stderr}`);
  const said = (stdout + stderr).trim().replaceAll(place, "").split("\n");
  const last = said.find((line) => line.startsWith("looprig: t")) ?? said.at(-1) ?? "";
  console.log(`| ${title} | ${(ms / 1000).toFixed(2)} s | ${last.replaceAll("|", " ").slice(0, 110)} |`);
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, env, encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`git ${args.join(" ")} ended with ${status}: ${stderr}`);
  return stdout;
}

/** Kinds, permission bits, link targets and digests of everything but the root's own `.git`. */
function readTree(top) {
  const entries = {};
  let bytes = 0;
  const visit = (dir) => {
    for (const name of fs.readdirSync(path.join(top, dir))) {
      const at = path.join(dir, name);
      if (at === ".git") continue;
      const stat = fs.lstatSync(path.join(top, at));
      const mode = (stat.mode & 0o777).toString(8);
      if (stat.isDirectory()) {
        entries[at] = `directory ${mode}`;
        visit(at);
      } else if (stat.isSymbolicLink()) entries[at] = `link ${fs.readlinkSync(path.join(top, at))}`;
      else if (stat.isFile()) {
        const content = fs.readFileSync(path.join(top, at));
        bytes += content.length;
        entries[at] = `file ${mode} ${createHash("sha256").update(content).digest("hex")}`;
      }
    }
  };
  visit("");
  return { entries, bytes };
}

function expectTree(expected, step, top = root) {
  const found = readTree(top).entries;
  const names = new Set([...Object.keys(expected.entries), ...Object.keys(found)]);
  const wrong = [...names].filter((name) => expected.entries[name] !== found[name]);
  if (wrong.length > 0) throw new Error(`after ${step} ${wrong.length} paths differ, ${wrong[0]} first`);
}
