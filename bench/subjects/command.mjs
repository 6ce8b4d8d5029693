/** looprig as people call it in a shell: a new process for each command. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { run, timed } from "../measure/commands.mjs";

const peakReporter = new URL("../measure/report-peak-memory.mjs", import.meta.url).href;

/** Space a state directory holds back for a full disk, once, however many snapshots it keeps. It is no part of a store's size. */
export const reserve = "reserve";

export const commandOf = ({ dist }) => ({
  key: "command",
  title: "looprig, new process",
  version: () => "this build",
  open: (place) => open({ ...place, entry: path.join(dist, "cli", "main.js") }),
});

function open({ tree, store, entry }) {
  const looprig = (args, { nodeOptions = [], home = store, more = {} } = {}) =>
    run(process.execPath, [...nodeOptions, entry, ...args], {
      cwd: tree,
      env: { ...process.env, LOOPRIG_HOME: home, ...more },
    });
  return {
    first: () => timed(() => looprig(["snapshot"])),
    capture: () => timed(() => looprig(["snapshot"])),
    turn: (argv) => void looprig(["exec", "--every", "0", "--", ...argv]),
    undo: () => timed(() => looprig(["undo", "--yes"])),
    materialize: (dest) => timed(() => looprig(["restore", "last", "--to", dest])),
    apart: [reserve],
    /** A first capture once more, into a store of its own and not timed, only for the memory it takes. */
    peakMemory: () => {
      const report = `${store}-peak-memory`;
      looprig(["snapshot"], {
        nodeOptions: ["--import", peakReporter],
        home: `${store}-for-memory`,
        more: { BENCH_PEAK_MEMORY_FILE: report },
      });
      return Number(fs.readFileSync(report, "utf8"));
    },
  };
}

/** What every process of node costs before a line of ours runs. */
export const nodeStart = {
  key: "node",
  title: "`node -e 0`",
  version: () => process.version,
  only: ["unchanged"],
  open: () => ({
    capture: () => timed(() => void spawnSync(process.execPath, ["-e", "0"])),
  }),
};
