/** What the system's own tools take for a part of the work: reference points, not rivals. */
import { run, timed, versionOf } from "../measure/commands.mjs";

/** Looks at every file, as a capture must, and does nothing else. */
export const find = {
  key: "find",
  title: "`find -printf`",
  version: () => {
    const version = versionOf("find");
    return version?.includes("GNU") ? version : undefined;
  },
  only: ["unchanged"],
  open: ({ tree }) => ({
    capture: () => timed(() => run("find", [tree, "-printf", "%p %s %T@ %C@ %i %m\\n"])),
  }),
};

/** Reads and writes every file, and compresses, hashes and syncs nothing. */
export const copy = {
  key: "copy",
  title: "`cp -a`",
  version: () => versionOf("cp"),
  only: ["materialize"],
  open: ({ tree }) => ({
    materialize: (dest) => timed(() => run("cp", ["-a", tree, dest])),
  }),
};
