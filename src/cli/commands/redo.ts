import { flag } from "../args.js";
import { act, nothingWithoutHistory } from "../act.js";
import { defineCommand } from "../command.js";
import { sayWhere, sessionOf, withPlace } from "../place.js";

export const command = defineCommand({
  grammar: {
    command: "redo",
    options: {
      dryRun: flag(["--dry-run"], "show what it would do; change nothing"),
      skipConflicts: flag(["--skip-conflicts"], "put back the other files when some changed since"),
    },
    operands: [],
    required: 0,
    rest: "none",
  },
  usage: "redo [--dry-run] [--skip-conflicts]",
  summary: "put back what was undone last",
  narrows: true,
  notes: ["A new turn ends what can be redone; everything stays reachable as a checkpoint (looprig log --all)."],
  run: async (context, { options }) =>
    withPlace(context, async (place) => {
      if (!place.choice.known) return nothingWithoutHistory(context, place, "redo");
      await sayWhere(context, place);
      return act(context, place, {
        dryRun: options.dryRun,
        title: "redo",
        action: (history) => ({
          ...{ kind: "redo", includeWindow: true, session: sessionOf(context, history) },
          onConflict: options.skipConflicts ? "skip" : "stop",
        }),
      });
    }),
});
