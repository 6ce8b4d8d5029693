/**
 * git with a repository apart from the tree, as tools that snapshot with git use it: `add -A` and `write-tree`, each a process.
 * It syncs no loose objects, which is its default.
 */
import fs from "node:fs";
import { run, timed, versionOf } from "../measure/commands.mjs";

export const git = {
  key: "git",
  title: "git",
  version: () => versionOf("git"),
  /** A file in which a byte changed is stored whole, and packed whole first: for 1 GiB half a minute. */
  storesFilesWhole: true,
  open,
};

/** Writes every file anew, whatever differs: the way of most tools. */
export const gitCheckout = {
  key: "git-checkout",
  title: "git, `checkout-index -a -f`",
  version: () => versionOf("git"),
  only: ["restore"],
  open: (place) => {
    const { capture, restoreAll } = open(place);
    return { capture, restore: restoreAll };
  },
};

function open({ tree, store }) {
  const environment = { ...process.env, GIT_DIR: store, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const call = (...args) => run("git", args, { cwd: tree, env: { ...environment, GIT_WORK_TREE: tree } });
  run("git", ["init", "-q", "--bare", store], { env: environment });
  run("git", ["config", "core.bare", "false"], { env: environment });
  run("git", ["config", "gc.auto", "0"], { env: environment });
  let newest;
  let before;
  const capture = () => {
    call("add", "-A");
    before = newest;
    newest = call("write-tree");
  };
  return {
    first: () => timed(capture),
    capture: () => timed(capture),
    turn: ([command, ...args]) => {
      run(command, args);
      capture();
    },
    /** Looks at what differs and writes that. */
    undo: () =>
      timed(() => {
        const target = before;
        capture();
        call("read-tree", "-m", "-u", newest, target);
        newest = target;
      }),
    restore: () =>
      timed(() => {
        const target = newest;
        capture();
        call("read-tree", "-m", "-u", newest, target);
        newest = target;
      }),
    restoreAll: () =>
      timed(() => {
        call("read-tree", newest);
        call("checkout-index", "-a", "-f");
      }),
    materialize: (dest) =>
      timed(() => {
        fs.mkdirSync(dest);
        call("checkout-index", "-a", "-f", `--prefix=${dest}/`);
      }),
  };
}
