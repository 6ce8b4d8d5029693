import { flag, usage } from "../args.js";
import { act, nothingWithoutHistory } from "../act.js";
import { defineCommand } from "../command.js";
import { pathArguments } from "../path-arguments.js";
import { sayWhere, sessionOf, withPlace } from "../place.js";

export const command = defineCommand({
  grammar: {
    command: "undo",
    options: {
      dryRun: flag(["--dry-run"], "show what it would do; change nothing"),
      skipConflicts: flag(["--skip-conflicts"], "take back the other files when some changed since"),
    },
    operands: ["TURN"],
    required: 0,
    rest: "paths",
  },
  usage: "undo [TURN] [--dry-run] [--skip-conflicts] [-- PATH…]",
  summary: "take back what the last turn changed; TURN is t4",
  narrows: true,
  notes: [
    "Only files the turn changed are touched, and only where they are still as it left them; where somebody changed one since, nothing is written and looprig says who. What was there before is kept, so every undo can be redone.",
    "Without TURN it takes the newest turn or restore of the root, whatever its session, that still has something to take back. PATH is relative to the current directory; the quoted spelling looprig prints is understood too.",
    "Exit: 3 nothing to undo, 4 conflict, 6 the turn, or what it changed, was not captured.",
  ],
  run: async (context, { options, operands: [turn], rest }) => {
    if (turn !== undefined && !/^t[1-9]\d*$/.test(turn)) {
      throw usage(
        "TURN",
        `Cannot undo ${JSON.stringify(turn)}: wanted a turn such as t4`,
        "a turn such as t4",
        "looprig log",
      );
    }
    return withPlace(context, async (place) => {
      const paths = pathArguments(rest, place);
      if (!place.choice.known) return nothingWithoutHistory(context, place, "undo");
      await sayWhere(context, place);
      return act(context, place, {
        dryRun: options.dryRun,
        title: ["undo", turn].filter((part) => part !== undefined).join(" "),
        action: (history) => ({
          ...{ kind: "undo", turn, paths, includeWindow: true, session: sessionOf(context, history) },
          onConflict: options.skipConflicts ? "skip" : "stop",
        }),
      });
    });
  },
});
