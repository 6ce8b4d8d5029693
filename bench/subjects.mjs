/**
 * What is measured: looprig in this process, looprig as a command, and the tools people have instead. Each subject has its
 * own store beside the tree and answers the same questions:
 *
 *   first()             captures the tree for the first time
 *   capture()           captures it again, whatever happened since
 *   turn(edit)          lets `edit` change the tree as one undoable step, not timed; absent where `edit` then `capture` is it
 *   undo()              takes the edits back
 *   materialize(dest)   writes the newest capture into an empty directory
 */
import fs from "node:fs";
import path from "node:path";
import { spawnSync } from "node:child_process";

const dist = new URL("../dist/", import.meta.url);
const here = (name) => new URL(name, import.meta.url).pathname;

function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (result.error) throw result.error;
  if (result.status !== 0)
    throw new Error(`${command} ${args.join(" ")} ended with ${result.status}: ${result.stderr || result.stdout}`);
  return result.stdout.trim();
}

export const isInstalled = (command) => spawnSync(command, ["--version"]).error === undefined;

/** The library in a process that goes on: an agent, a server. */
export async function looprigInProcess({ tree, store }) {
  const { openWorkspace } = await import(new URL("index.js", dist));
  const { openLocalStorage } = await import(new URL("storage-local/index.js", dist));
  const storage = await openLocalStorage({ dir: store });
  let workspace;
  return {
    name: "looprig, in process",
    first: async () => {
      workspace = await openWorkspace({ root: tree, storage });
    },
    capture: () => workspace.checkpoint(),
    turn: (edit) => workspace.exec([process.execPath, here("edit.mjs"), tree, edit], { stdio: "ignore", everyMs: 0 }),
    undo: async () => expectDone(await workspace.undo()),
    materialize: (dest) => workspace.materialize("last", dest),
    close: async () => {
      await workspace?.close();
      await storage.close();
    },
  };
}

/** One new process per command. */
export function looprigCommand({ tree, store }) {
  const looprig = (...args) =>
    run(process.execPath, [new URL("cli/main.js", dist).pathname, ...args], {
      cwd: tree,
      env: { ...process.env, LOOPRIG_HOME: store },
    });
  return {
    name: "looprig, command",
    first: () => looprig("snapshot"),
    capture: () => looprig("snapshot"),
    turn: (edit) => looprig("exec", "--every", "0", "--", process.execPath, here("edit.mjs"), tree, edit),
    undo: () => looprig("undo", "--yes"),
    materialize: (dest) => looprig("restore", "last", "--to", dest),
  };
}

/** A repository apart from the tree, as tools that snapshot with git use it. `undo` looks at what differs first. */
export function git({ tree, store }) {
  const environment = { ...process.env, GIT_DIR: store, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const call = (args, more = {}) =>
    run("git", args, { cwd: tree, env: { ...environment, GIT_WORK_TREE: tree, ...more } });
  const capture = () => {
    call(["add", "-A"]);
    return call(["write-tree"]);
  };
  let newest;
  let before;
  run("git", ["init", "-q", "--bare", store]);
  run("git", ["config", "core.bare", "false"], { env: environment });
  run("git", ["config", "gc.auto", "0"], { env: environment });
  return {
    name: "git add + write-tree",
    first: () => void (newest = capture()),
    capture: () => {
      before = newest;
      newest = capture();
    },
    undo: () => {
      const now = capture();
      call(["read-tree", "-m", "-u", now, before]);
      newest = before;
    },
    /** What most agents do: every file is written anew, and added ones stay. */
    undoByRewriting: () => {
      call(["read-tree", before]);
      call(["checkout-index", "-a", "-f"]);
      newest = before;
    },
    materialize: (dest) => {
      fs.mkdirSync(dest);
      call(["checkout-index", "-a", "-f", `--prefix=${dest}/`]);
    },
  };
}

/** A full copy each time. Undo is unpacking over the tree: it leaves added files. */
export function tar({ tree, store }) {
  fs.mkdirSync(store);
  let count = 0;
  const archive = (number) => path.join(store, `${number}.tar.gz`);
  const pack = () => run("sh", ["-c", 'tar -C "$0" -cf - . | gzip > "$1"', tree, archive(count++)]);
  const unpack = (number, dest) => run("tar", ["-xzf", archive(number), "-C", dest]);
  return {
    name: "tar and gzip",
    first: pack,
    capture: pack,
    undo: () => unpack(count - 2, tree),
    materialize: (dest) => {
      fs.mkdirSync(dest);
      unpack(count - 1, dest);
    },
  };
}

export function restic({ tree, store }) {
  const environment = {
    ...process.env,
    RESTIC_PASSWORD: "bench",
    RESTIC_REPOSITORY: store,
    RESTIC_CACHE_DIR: `${store}-cache`,
  };
  const call = (...args) => run("restic", args, { cwd: tree, env: environment });
  call("init", "-q");
  const backup = () => call("backup", "-q", ".");
  return {
    name: "restic",
    first: backup,
    capture: backup,
    materialize: (dest) => call("restore", "-q", "latest", "--target", dest),
  };
}

function expectDone(receipt) {
  if (receipt.result !== "done") throw new Error(`undo ended with "${receipt.result}"`);
  return receipt;
}
