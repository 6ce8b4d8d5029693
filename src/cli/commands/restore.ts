import { act } from "../act.js";
import { flag, text, usage, value } from "../args.js";
import { defineCommand } from "../command.js";
import { pathArguments } from "../path-arguments.js";
import { assertKnown, sayWhere, withPlace } from "../place.js";
import { isGone, rebuild } from "../rebuild.js";
import { refArgument } from "../ref-argument.js";
import { writeElsewhere } from "../restore-elsewhere.js";

export const command = defineCommand({
  grammar: {
    command: "restore",
    options: {
      dryRun: flag(["--dry-run"], "show what it would do; change nothing"),
      exact: flag(["--exact"], "also replace and delete what looprig did not write; lists those paths first"),
      to: value(["--to"], {
        value: "DIR",
        wanted: "an absent or empty directory",
        parse: text,
        help: "write the files there instead, into an absent or empty directory",
      }),
    },
    operands: ["REF"],
    required: 1,
    rest: "paths",
  },
  usage: "restore REF [--dry-run] [--exact] [--to DIR] [-- PATH…]",
  summary: "make files as they were in a checkpoint",
  narrows: false,
  notes: [
    "REF is c12, t4, t4^, last, a label, or eight or more hex digits; REF:PATH names one file. Files that no record of looprig explains are kept and listed, unless --exact. .git is never written.",
    "A root that is gone is built again, after a question or with --yes. What was there before is kept: looprig undo takes a restore back.",
  ],
  run: async (context, { options, operands: [given = ""], rest }) => {
    if (options.to !== undefined && options.exact) {
      throw usage(
        "--exact",
        "Cannot use --exact with --to: an empty directory has nothing to replace; leave it out",
        "no --exact",
      );
    }
    const { ref, path } = refArgument("REF", given);
    if (path !== undefined && rest !== undefined) {
      throw usage(
        "PATH",
        `Cannot use paths after "--" with ${JSON.stringify(given)}: it names one already`,
        "one of both",
      );
    }
    return withPlace(context, async (place) => {
      const paths = path === undefined ? pathArguments(rest, place) : [path];
      assertKnown(context, place, ref);
      await sayWhere(context, place);
      if (options.to !== undefined) {
        return writeElsewhere(context, place, { ref, paths, to: options.to, dryRun: options.dryRun });
      }
      return isGone(context, place)
        ? rebuild(context, place, { ref, paths, dryRun: options.dryRun })
        : act(context, place, {
            dryRun: options.dryRun,
            title: `restore ${given}`,
            ref,
            action: () => ({ kind: "restore", ref, paths, exact: options.exact, includeWindow: true }),
          });
    });
  },
});
