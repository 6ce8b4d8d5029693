import { flag, value } from "../args.js";
import { defineCommand } from "../command.js";
import { logDocument } from "../documents.js";
import { exit } from "../exit-codes.js";
import { logRows } from "../log-rows.js";
import { sayWithoutHistory, sessionOf, withPlace, withView } from "../place.js";
import { logText } from "../render-log.js";
import { sessionNames } from "../session-names.js";

const limitDefault = 20;

export const command = defineCommand({
  grammar: {
    command: "log",
    options: {
      limit: value(["-n"], {
        value: "20",
        wanted: "a number from 1 to 1000000",
        parse: (given) => (/^[1-9]\d{0,6}$/.test(given) && Number(given) <= 1_000_000 ? Number(given) : undefined),
        help: `rows at most; default ${limitDefault}`,
      }),
      all: flag(["--all"], "also checkpoints taken while a command ran or around an undo; with cause and consistency"),
    },
    operands: [],
    required: 0,
    rest: "none",
  },
  usage: "log [-n 20] [--all]",
  summary: "turns and checkpoints, newest first",
  narrows: true,
  notes: [
    "Marks stand only for what is not normal: ~ captured while files may have moved, ! partial or not protected, x failed.",
  ],
  run: async (context, { options }) =>
    withPlace(context, async (place) => {
      const { environment, globals, now, signal, style } = context;
      const limit = options.limit ?? limitDefault;
      return withView(context, place, async (view) => {
        const whole = await view.history({ signal });
        const session = sessionOf(context, whole);
        const history = {
          ...whole,
          checkpoints: whole.checkpoints.filter((each) => session === undefined || each.sessionId === session),
          turns: whole.turns.filter((each) => session === undefined || each.sessionId === session),
          sessions: session === undefined ? whole.sessions : [session],
        };
        if (globals.json) await context.document("log", place.root, logDocument(history, limit));
        else if (!place.choice.known) await sayWithoutHistory(context, place);
        else {
          const stored = { bytes: await view.storedBytes({ signal }), shared: place.shared };
          const sessionName = sessionNames(whole.sessions);
          const rows = logRows(history, options.all);
          await context.print(
            logText(history, rows, {
              home: environment.home,
              now,
              sessionName,
              style,
              stored,
              limit,
              all: options.all,
            }),
          );
        }
        return exit.done;
      });
    }),
});
